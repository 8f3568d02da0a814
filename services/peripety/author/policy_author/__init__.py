"""Rules and scenarios from the sentences of a written policy."""
