"""The next version of a stored scenario from an instruction."""
