"""Rendering of results on a terminal."""
