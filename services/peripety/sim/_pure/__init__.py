"""The reference core: what the engine means, in plain Python.

Nothing here is fast on purpose and nothing is clever: it is what the native core is compared with, byte for
byte. The one exception is `compiled`, which plays the runs of a dry-run as the rest would, only faster.
"""
