"""The text of `--version`."""

from __future__ import annotations

from peripety import __version__, sim

__all__ = ["version"]


def version() -> str:
    """Return the version of the package and the active core."""
    return f"peripety {__version__} (core: {sim.BACKEND} {sim.BACKEND_VERSION})"
