"""Record and replay: what was answered becomes a scenario that answers the same."""
