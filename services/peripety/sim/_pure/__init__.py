"""Reference implementation of the engine in plain Python.

It is the yardstick for the native backend, which must equal it byte for byte. So it is written for clarity,
without optimisation. The one exception is `compiled`, a code generator that speeds up dry-runs with the same
results.
"""
