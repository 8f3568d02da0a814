"""Following sessions: what is recorded, then what happens now, worked out once for all who see the same."""
