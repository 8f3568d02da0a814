"""Baseline tests of a Python program: calls that follow from its sources and its documentation."""
