"""Generated from `protos/` by `protos/generate.py`; never edited."""
