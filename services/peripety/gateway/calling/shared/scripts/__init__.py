"""Lua scripts that Redis runs atomically. Times are those of the server, in milliseconds since 1970."""
