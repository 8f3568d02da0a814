"""Streaming writer of bundles: one line at a time, so that no bundle is held in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety import sim
from peripety.sessions.bundles.format import Seal, header_fields, turn_fields

if TYPE_CHECKING:
    from peripety.sessions.bundles.format import BundledTurn, Header

__all__ = ["Writer"]


class Writer:
    """Encoder of the lines of one bundle; its methods must be called in this order."""

    def __init__(self) -> None:
        self._seal = Seal()

    def header(self, header: Header) -> bytes:
        """Return the first line."""
        return self._line(sim.canonical(header_fields(header)))

    def document(self, document: bytes) -> bytes:
        """Return the line of the specification or of its certificate, both in canonical form."""
        return self._line(document)

    def turn(self, turn: BundledTurn) -> bytes:
        """Return the line of the next turn."""
        return self._line(sim.canonical(turn_fields(turn)))

    def end(self) -> bytes:
        """Return the last line."""
        return self._seal.line()

    def _line(self, text: bytes) -> bytes:
        line = text + b"\n"
        self._seal.over(line)
        return line
