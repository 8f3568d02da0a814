"""Stored scenarios changed by a text: by a model, or by rules where there is none."""
