"""Claims of prose that the engine can decide, compared with the record of the turn."""
