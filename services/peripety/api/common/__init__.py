"""The contract as Python: generated from `protos/` by `protos/generate.py`, never edited."""
