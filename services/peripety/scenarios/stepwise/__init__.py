"""Outline authoring for weak models: an outline, then section after section; rules derive the specification.
"""
