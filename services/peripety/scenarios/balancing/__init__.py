"""Balancing: moves the numbers of a specification into its budget, or into any requested band."""
