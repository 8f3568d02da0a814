"""Questions about a session that are answered from its record, without a model and without a turn."""
