"""HTTP server of the scripted LLM: one base URL for the paths of every provider."""

from __future__ import annotations

from peripety.simulator.server.runner import LOOPBACK, Server, serve, serve_in_thread

__all__ = ["LOOPBACK", "Server", "serve", "serve_in_thread"]
