"""Session types to and from proto."""
