"""The event store (Photon, section 3.4): landing records of both streams, and looking primary events up.

What writes or reads `primary`, `foreign` and `quarantine` for a batch enters here.
"""
