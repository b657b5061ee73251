"""Forgetting a person's events for the law's sake: which they are, in what order they go, what is waited for.

Anyone who asks for it enters here; what landing and verification have to know of it is in `forgotten`.
"""
