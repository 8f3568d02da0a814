"""The prose of an answer, released while the answer is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.objects import salvaging
from peripety.gateway.objects.partial import StringFieldReader
from peripety.sessions.events import Dialogue, NarrativeChunk, NarrativeRetracted
from peripety.sessions.narrating.outcome import NARRATIVE_CHARACTERS, clean, looks_like_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Draft", "dialogue_of"]


class Draft:
    """What of an answer a reader has before them.

    Prose is held until `open` is called: only its caller knows whether what stands before it in the answer
    will do. What starts like code is never shown before it was found to be prose.
    """

    def __init__(self) -> None:
        self._released = 0
        self.restart()

    def restart(self) -> None:
        """Begin with another answer; what was released of the one before has been taken back."""
        self._reader = StringFieldReader("narrative")
        self._before: list[str] = []
        self._narrative = ""
        self._open: bool | None = None

    def feed(self, text: str) -> None:
        """Take the next piece of the answer."""
        if not self._reader.begun:
            self._before.append(text)
        self._narrative += clean(self._reader.feed(text))

    @property
    def waits(self) -> bool:
        """Whether there is prose, and nobody has said yet whether it may be shown."""
        return self._open is None and bool(self._narrative.strip()) and not looks_like_code(self._narrative)

    def whole_members(self) -> Mapping[str, Any]:
        """The members of the answer that were whole when its prose began."""
        return salvaging.whole_members("".join(self._before), ()) or {}

    def open(self) -> None:
        """Let the prose of this answer be shown while it is written."""
        self._open = True

    def hold(self) -> None:
        """Let no prose of this answer be shown before it is whole."""
        self._open = False

    def release(self) -> Iterator[NarrativeChunk]:
        """Show what may be shown and was not."""
        if self._open:
            yield from self._show(self._narrative[:NARRATIVE_CHARACTERS])

    def finish(self, narrative: str) -> Iterator[NarrativeChunk | NarrativeRetracted]:
        """Show the rest of a whole narrative."""
        if self._narrative[: self._released] != narrative[: self._released]:
            yield from self.retract("the narrator's account reads otherwise as a whole")
        yield from self._show(narrative)

    def retract(self, reason: str) -> Iterator[NarrativeRetracted]:
        """Take back what was shown, if anything was."""
        if self._released:
            self._released = 0
            yield NarrativeRetracted(reason)

    def void(self) -> None:
        """Note that the turn began anew: what was shown is gone."""
        self._released = 0

    def _show(self, text: str) -> Iterator[NarrativeChunk]:
        piece = text[self._released :]
        self._released += len(piece)
        if piece:
            yield NarrativeChunk(piece)


def dialogue_of(outcome: Mapping[str, Any]) -> Iterator[Dialogue]:
    """What is said aloud in a turn."""
    for line in outcome.get("visible_dialogue") or ():
        yield Dialogue(line["entity_id"], clean(line["utterance"]))
