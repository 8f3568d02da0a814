"""Several players: turn order and time-outs."""
