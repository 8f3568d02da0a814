"""Text analysis in any language and script."""
