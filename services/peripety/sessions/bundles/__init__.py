"""Sessions as bundles: files that hold all of a session, and that anyone can verify."""
