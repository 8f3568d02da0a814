"""Gateway types to and from proto."""
