"""The reference backend in plain Python."""
