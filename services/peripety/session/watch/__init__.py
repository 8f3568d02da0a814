"""Live and recorded events for watchers."""
