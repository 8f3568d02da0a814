"""What Redis does in one step, in Lua: times are its own, in milliseconds since 1970."""
