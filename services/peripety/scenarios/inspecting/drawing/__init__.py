"""Drawings of a rule graph: SVG for files, Mermaid for pages that render it."""
