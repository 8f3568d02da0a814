"""A scenario as subject."""
