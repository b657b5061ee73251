"""The joiner (Photon, section 3.3): looks up, adapts, claims the outcome, publishes it, writes side outputs.

What becomes of an event is `kernel.resolving`; here a batch's work is dealt out to tasks, and its outcome put together.
"""
