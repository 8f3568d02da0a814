"""The narrator: prompt, tools, prose stream, secret filter, fallback."""
