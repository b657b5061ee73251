"""Events that were forgotten on request: the list of them, and taking their records out of the tables.

What has to know that an event is forgotten enters here; who asks for it, and what is waited for, is in `erasure`.
"""
