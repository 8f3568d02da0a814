"""The prose of an answer, released while the answer is written."""

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
    """What of an answer a reader has before them.

    Prose is held until `open` is called: only its caller knows whether what stands before it in the answer
    will do. What starts like code is never shown before it was found to be prose, and what may still become
    a secret not before it did not.
    """

    def __init__(self) -> None:
        self._released = 0
        self.restart()

    def restart(self) -> None:
        """Begin with another answer; what was released of the one before has been taken back."""
        self._reader = StringFieldReader("narrative")
        self._before: list[str] = []
        self._narrative = ""
        self._followed = 0
        self._tripwire: Tripwire | None = None
        self._decided = False

    def feed(self, text: str) -> None:
        """Take the next piece of the answer."""
        if not self._reader.begun:
            self._before.append(text)
        self._narrative += clean(self._reader.feed(text))

    @property
    def waits(self) -> bool:
        """Whether there is prose, and nobody has said yet whether it may be shown."""
        return not self._decided and bool(self._narrative.strip()) and not looks_like_code(self._narrative)

    def whole_members(self) -> Mapping[str, Any]:
        """The members of the answer that were whole when its prose began."""
        return salvaging.whole_members("".join(self._before), ()) or {}

    def open(self, tripwire: Tripwire) -> None:
        """Let the prose of this answer be shown while it is written, as far as there is no secret in it."""
        self._decided, self._tripwire = True, tripwire

    def hold(self) -> None:
        """Let no prose of this answer be shown before it is whole."""
        self._decided, self._tripwire = True, None

    def release(self) -> Iterator[NarrativeChunk]:
        """Show what may be shown and was not."""
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
        """Show the rest of a whole narrative."""
        if self._narrative[: self._released] != narrative[: self._released]:
            yield from self.retract("the narrator's account reads otherwise as a whole")
        piece = narrative[self._released :]
        self._released += len(piece)
        if piece:
            yield NarrativeChunk(piece)

    def retract(self, reason: str) -> Iterator[NarrativeRetracted]:
        """Take back what was shown, if anything was."""
        if self._released:
            self._released = 0
            yield NarrativeRetracted(reason)

    def void(self) -> None:
        """Note that the turn began anew: what was shown is gone."""
        self._released = 0


def dialogue_of(outcome: Mapping[str, Any]) -> Iterator[Dialogue]:
    """What is said aloud in a turn."""
    for line in outcome.get("visible_dialogue") or ():
        yield Dialogue(line["entity_id"], clean(line["utterance"]))
