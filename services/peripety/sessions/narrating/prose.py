"""Prose stream: releases the prose of an answer while the answer is still being written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.objects import salvaging
from peripety.gateway.objects.partial import StringFieldReader
from peripety.sessions.events import Dialogue, NarrativeChunk, NarrativeRetracted
from peripety.sessions.narrating.outcome import NARRATIVE_CHARACTERS, clean, looks_like_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.sessions.narrating.tripwire import Tripwire

__all__ = ["Draft", "dialogue_of"]


class Draft:
    """The prose of an answer, and how much of it the reader has received.

    Prose is held back until its release is allowed: only the caller knows whether the fields before it are
    acceptable. Text that starts like code is not released before it is known to be prose. Text that may still
    become a secret is not released before it cannot.
    """

    def __init__(self) -> None:
        self._released = 0
        self.restart()

    def restart(self) -> None:
        """Start with another answer; the prose of the previous one was retracted."""
        self._reader = StringFieldReader("narrative")
        self._before: list[str] = []
        self._narrative = ""
        self._followed = 0
        self._tripwire: Tripwire | None = None
        self._decided = False

    def feed(self, text: str) -> None:
        """Add the next piece of the answer."""
        if not self._reader.begun:
            self._before.append(text)
        self._narrative += clean(self._reader.feed(text))

    @property
    def waits(self) -> bool:
        """True if there is prose and its release is undecided."""
        return not self._decided and bool(self._narrative.strip()) and not looks_like_code(self._narrative)

    def whole_members(self) -> Mapping[str, Any]:
        """Return the members of the answer that were complete when its prose began."""
        return salvaging.whole_members("".join(self._before), ()) or {}

    def open(self, tripwire: Tripwire) -> None:
        """Allow the release of this answer's prose while it is written, filtered for secrets."""
        self._decided, self._tripwire = True, tripwire

    def hold(self) -> None:
        """Hold back the prose of this answer until it is complete."""
        self._decided, self._tripwire = True, None

    def release(self) -> Iterator[NarrativeChunk]:
        """Release the prose that is safe and not released yet."""
        if self._tripwire is not None:
            text = self._narrative[self._followed : NARRATIVE_CHARACTERS]
            self._followed += len(text)
            piece = self._tripwire.feed(text)
            if self._tripwire.leaked:
                self.hold()
            self._released += len(piece)
            if piece:
                yield NarrativeChunk(piece)

    def finish(self, narrative: str) -> Iterator[NarrativeChunk | NarrativeRetracted]:
        """Release the rest of a complete narrative."""
        if self._narrative[: self._released] != narrative[: self._released]:
            yield from self.retract("the complete narrative differs from the streamed text")
        piece = narrative[self._released :]
        self._released += len(piece)
        if piece:
            yield NarrativeChunk(piece)

    def retract(self, reason: str) -> Iterator[NarrativeRetracted]:
        """Retract the released prose, if any."""
        if self._released:
            self._released = 0
            yield NarrativeRetracted(reason)

    def void(self) -> None:
        """Reset after a restart of the turn, which voids the released prose."""
        self._released = 0


def dialogue_of(outcome: Mapping[str, Any]) -> Iterator[Dialogue]:
    """Yield the dialogue of an Outcome."""
    for line in outcome.get("visible_dialogue") or ():
        yield Dialogue(line["entity_id"], clean(line["utterance"]))
