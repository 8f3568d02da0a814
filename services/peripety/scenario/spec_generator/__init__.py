"""Random valid specifications from a seed."""
