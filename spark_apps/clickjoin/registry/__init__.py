"""The id registry (Photon, section 2.2): who owns an event id, permanently; its shards, its timeline and its boundary.

The claim protocol enters here, and nothing else decides who may publish.
"""
