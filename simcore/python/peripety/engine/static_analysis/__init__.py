"""Abstract interpretation: what holds in every run."""
