"""The dispatcher (Photon, section 3.2): decides what each batch reads, and writes that down before any work.

The journal, planning, and what replicas learn of one another from it enter here; no record is read.
"""
