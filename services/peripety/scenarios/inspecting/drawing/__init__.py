"""Drawings of a rule graph: SVG for people, Mermaid for pages that render it."""
