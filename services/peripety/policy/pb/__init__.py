"""Policy types to and from proto."""
