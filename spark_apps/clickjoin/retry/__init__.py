"""Retries of events whose primary event is late (Photon, section 3.2.1), and sending unjoinable ones again.

The state of a pending event is defined here, in `pending`, once.
"""
