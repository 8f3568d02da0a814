"""Sessions: scenarios played turn by turn, with exactly-once turns."""
