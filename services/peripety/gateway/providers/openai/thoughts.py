"""Parser of reasoning between tags in an answer's text, for servers that leave it there.

Reasoning is at the start of an answer. Later tags are content, such as those in generated code. A closing tag
quoted inside the reasoning ends it too early.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from peripety.gateway.model import Reasoning, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["InlineThoughts"]

_CLOSING = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<mm:think>": "</mm:think>",
    "[THINK]": "[/THINK]",
}


class _Place(Enum):
    """Position within an answer."""

    BEFORE = "before"
    """Nothing is known yet."""
    UNMARKED = "unmarked"
    """It started without a tag, and may be reasoning."""
    THINKING = "thinking"
    AFTER = "after"
    """Only whitespace has followed the reasoning."""
    ANSWER = "answer"


class InlineThoughts:
    """Incremental splitter of an answer into reasoning and text.

    The template of some models opens the reasoning, so that only its closing tag is in the answer. For a
    model known to reason, everything is therefore held back until a closing tag or the end resolves it.

    Args:
        thinks: whether the model is known to reason before it answers.
    """

    def __init__(self, *, thinks: bool) -> None:
        self._thinks = thinks
        self._place = _Place.BEFORE
        self._closing: Sequence[str] = ()
        self._aside: list[str] = []
        self._held = ""

    def feed(self, text: str) -> list[Text | Reasoning]:
        """Add a piece of text; return the parts that are resolved."""
        self._held += text
        found: list[Text | Reasoning] = []
        while self._held and (piece := self._step()) is not None:
            found.append(piece)
        return [piece for piece in found if piece.text]

    def stop(self) -> None:
        """Treat all further input as text: the server separates the reasoning itself."""
        self._held = "".join([*self._aside, self._held])
        self._aside, self._place = [], _Place.ANSWER

    def finish(self, *, cut: bool) -> list[Text | Reasoning]:
        """Return the text that was held back.

        Args:
            cut: whether the answer ended at its limit; an answer that started without a tag is then
                reasoning.
        """
        held = "".join([*self._aside, self._held])
        self._aside, self._held = [], ""
        if not held:
            return []
        thought = self._place is _Place.THINKING or (self._place is _Place.UNMARKED and cut)
        return [Reasoning(held) if thought else Text(held)]

    def _step(self) -> Text | Reasoning | None:
        """Take one step through the buffer; return None if more input is needed."""
        match self._place:
            case _Place.BEFORE:
                return self._begin()
            case _Place.UNMARKED | _Place.THINKING:
                return self._search()
            case _Place.AFTER:
                self._held = self._held.lstrip()
                self._place = _Place.ANSWER if self._held else _Place.AFTER
                return Text("")
            case _Place.ANSWER:
                said, self._held = self._held, ""
                return Text(said)

    def _begin(self) -> Text | None:
        start = self._held.lstrip()
        for opening, closing in _CLOSING.items():
            if start.startswith(opening):
                self._place, self._closing = _Place.THINKING, (closing,)
                self._held = start.removeprefix(opening)
                return Text("")
        if any(opening.startswith(start) for opening in _CLOSING):
            return None
        self._place = _Place.UNMARKED if self._thinks else _Place.ANSWER
        self._closing = tuple(_CLOSING.values())
        return Text("")

    def _search(self) -> Reasoning | None:
        """Find the end of the reasoning."""
        ends = [(self._held.find(tag), tag) for tag in self._closing if tag in self._held]
        if ends:
            place, tag = min(ends)
            thought = "".join([*self._aside, self._held[:place]])
            self._aside, self._held = [], self._held[place + len(tag) :]
            self._place = _Place.AFTER
            return Reasoning(thought)
        certain = len(self._held) - max(_begun(tag, self._held) for tag in self._closing)
        piece, self._held = self._held[:certain], self._held[certain:]
        if self._place is _Place.THINKING:
            return Reasoning(piece) if piece else None
        self._aside.append(piece)
        return None


def _begun(tag: str, text: str) -> int:
    """Return the length of the longest suffix of a text that is a prefix of a tag."""
    sizes = range(min(len(tag) - 1, len(text)), 0, -1)
    return next((size for size in sizes if text.endswith(tag[:size])), 0)
