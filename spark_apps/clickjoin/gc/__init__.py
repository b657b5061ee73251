"""Garbage collection (Photon, section 2.3): old claims, rows and history go; compaction and vacuum.

What removes or rewrites what is no longer needed enters here.
"""
