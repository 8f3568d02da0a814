"""Sessions: turns, narration, seats, branches, bundles, watchers."""
