"""Languages, keywords, people and terms of a text."""
