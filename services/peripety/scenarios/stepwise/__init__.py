"""Outline authoring for weak models: an outline, then sections; rules derive the specification."""
