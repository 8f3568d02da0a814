"""Dramatic plots of the offline author: patterns as data, the scenario of a plot, and its prose."""
