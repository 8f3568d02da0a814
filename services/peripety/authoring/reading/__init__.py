"""What a text is about, in any language and script."""
