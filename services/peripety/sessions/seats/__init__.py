"""Sessions with several players: turn order, submissions and seat timeouts."""
