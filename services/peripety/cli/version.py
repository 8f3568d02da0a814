"""What `--version` says."""

from __future__ import annotations

from peripety import __version__, sim

__all__ = ["version"]


def version() -> str:
    """Name the version of the package, and the core that runs."""
    return f"peripety {__version__} (core: {sim.BACKEND} {sim.BACKEND_VERSION})"
