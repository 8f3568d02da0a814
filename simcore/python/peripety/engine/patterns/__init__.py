"""Regular expressions, globs and the first matching rule."""
