"""Verification and recovery: what is promised, proven id by id and record by record (Photon, section 3.3.3).

What compares tables with one another, with the journal or with the sources enters here.
"""
