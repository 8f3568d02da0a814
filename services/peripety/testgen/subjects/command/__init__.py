"""A command as subject."""
