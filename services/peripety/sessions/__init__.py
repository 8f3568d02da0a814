"""Sessions: scenarios being played, turn by turn, each turn exactly once."""
