"""Recording proxy: a real provider's answers as a script."""
