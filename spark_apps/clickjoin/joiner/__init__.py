"""What a pipeline says of its output (Photon, section 3.3): the adapter it names, typed columns, how its table is made.

How events are joined is the engine's (engines).
"""
