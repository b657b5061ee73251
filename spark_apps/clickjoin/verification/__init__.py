"""Verification and recovery: what is promised, proven id by id and byte by byte (Photon, section 3.3.3)."""
