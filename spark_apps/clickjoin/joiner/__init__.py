"""The joiner (Photon, section 3.3): looks up, adapts, claims the outcome, publishes it, writes side outputs.

Two joiners stand behind `port.Joiner`, one on Arrow and one on Spark's operators; another one enters here.
"""
