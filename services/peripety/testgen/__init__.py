"""Generated tests, streamed and measured."""
