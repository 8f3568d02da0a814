"""Drawing primitives: well-formed markup, and a frame with an accessible description."""
