"""A standalone cluster whose workers share no disk with the driver and have no clickjoin."""
