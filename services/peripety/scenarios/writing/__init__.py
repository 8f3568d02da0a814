"""Generation of specifications: a conversation with a model, until one passes or a limit is reached."""
