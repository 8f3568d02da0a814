"""Bundles as they are written: line after line, so that none is ever held whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety import sim
from peripety.sessions.bundles.format import Seal, header_fields, turn_fields

if TYPE_CHECKING:
    from peripety.sessions.bundles.format import BundledTurn, Header

__all__ = ["Writer"]


class Writer:
    """Gives the lines of one bundle, with their ends; they are to be asked for in this order."""

    def __init__(self) -> None:
        self._seal = Seal()

    def header(self, header: Header) -> bytes:
        """The first line."""
        return self._line(sim.canonical(header_fields(header)))

    def document(self, document: bytes) -> bytes:
        """The specification, then its certificate, if there is one: both in canonical form."""
        return self._line(document)

    def turn(self, turn: BundledTurn) -> bytes:
        """The line of the next turn."""
        return self._line(sim.canonical(turn_fields(turn)))

    def end(self) -> bytes:
        """The last line."""
        return self._seal.line()

    def _line(self, text: bytes) -> bytes:
        line = text + b"\n"
        self._seal.over(line)
        return line
