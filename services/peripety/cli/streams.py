"""Robust standard streams: streams that are closed at start, or that cannot be written."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["discard_output", "open_closed_streams"]


def open_closed_streams() -> None:
    """Connect each standard stream that was closed at the start (`>&-`) to the null device.

    Otherwise the next opened file, perhaps a database, would get its file descriptor.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open until the end


def discard_output() -> None:
    """Discard buffered standard output, because the interpreter would fail on it again at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
