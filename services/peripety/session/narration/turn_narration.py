"""One narration: prose released while written, fallback.

Prose stream: releases the prose of an answer while the answer is still being written.

Narration of one turn: converts the narrator's answers to events, and streams them to the reader.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.errors import FailedPreconditionError, InternalError
from peripety.gateway.structured_output import json_repair
from peripety.gateway.structured_output.incremental_json import StringFieldReader
from peripety.gateway.types.response import Repairing, TextDelta, ToolCallDelta, UsageTotal
from peripety.session.events import Degraded, DialogueSpoken, NarrativeChunk, NarrativeRetracted
from peripety.session.memory import add_memories
from peripety.session.narration.fallback import fallback_narration, late_facts
from peripety.session.narration.outcome_schema import (
    NARRATIVE_CHARACTERS,
    OutcomeValidator,
    extract_rolls,
    is_code_like,
    normalize_text,
)
from peripety.session.narration.tool_executor import NarratorToolExecutor
from peripety.session.speculation import TurnRestarted
from peripety.session.types import NarratorStats, Resolution

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence

    from peripety.errors import Finding
    from peripety.gateway.types.response import Completion, GatewayEvent
    from peripety.session.events import Event
    from peripety.session.narration.secret_filter import LeakFilter
    from peripety.session.narration.turn_context import NarrationContext
    from peripety.session.turn_engine import TurnResult
    from peripety.session.types import DieRollRequest, NarratorMemory


class ProseStream:
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
        self._tripwire: LeakFilter | None = None
        self._decided = False

    def feed(self, text: str) -> None:
        """Add the next piece of the answer."""
        if not self._reader.begun:
            self._before.append(text)
        self._narrative += normalize_text(self._reader.feed(text))

    @property
    def waits(self) -> bool:
        """True if there is prose and its release is undecided."""
        return not self._decided and bool(self._narrative.strip()) and not is_code_like(self._narrative)

    def whole_members(self) -> Mapping[str, Any]:
        """Return the members of the answer that were complete when its prose began."""
        return json_repair.complete_members("".join(self._before), ()) or {}

    def open(self, tripwire: LeakFilter) -> None:
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


def iter_dialogue(outcome: Mapping[str, Any]) -> Iterator[DialogueSpoken]:
    """Yield the dialogue of an Outcome."""
    for line in outcome.get("visible_dialogue") or ():
        yield DialogueSpoken(line["entity_id"], normalize_text(line["utterance"]))


# No answer that matches the schema is nearly as long, however it is escaped.
_MAX_ANSWER_CHARACTERS = 64 * 1024

NarrationEvent: TypeAlias = "Event | TurnRestarted"


@dataclass(frozen=True, slots=True)
class NarrationResult:
    """Result of a narration.

    Attributes:
        narrative: the whole narration.
        resolution: its origin.
        usage: usage of language models.
        model: the narrator's model as `provider/model`; empty for the fallback narration.
        memories: memories after the turn.
        conduct: statistics of the narrator.
    """

    narrative: str
    resolution: Resolution
    usage: UsageTotal
    model: str
    memories: tuple[NarratorMemory, ...] = ()
    conduct: NarratorStats = field(default_factory=NarratorStats)


def invalid_answer_error(problem: str, findings: Iterable[Finding] = ()) -> FailedPreconditionError:
    """Return the error of an invalid answer."""
    violations = [finding.violation for finding in findings]
    return FailedPreconditionError(problem, code="ANSWER_INVALID", violations=violations)


class TurnNarration:
    """Narration of a turn in progress: converts a narrator's answers to events of the turn.

    The stage is closed before the first prose is released, so that the mechanics are sent before the prose.
    It is closed again for each answer with other mechanics: only those of the accepted Outcome hold.

    Args:
        scene: the turn.
    """

    def __init__(self, scene: NarrationContext) -> None:
        self._scene = scene
        self._draft = ProseStream()
        self._length = 0
        self._refused_answers = 0
        self._refused_changes = 0
        self.outcomes = OutcomeValidator(scene)
        self.opening: tuple[NarrationEvent, ...] = ()
        """Events to send before the model is called: all mechanics, unless the narrator may still act."""
        self.known: TurnResult | None = None
        """Result of the turn if the narrator may know it before it writes."""
        if not scene.input.strip():
            self.opening = tuple(self._close())
            self.known = self._played
            scene.stage.promise(self.known.world)
        self.hands = NarratorToolExecutor(scene, self.known)

    @property
    def conduct(self) -> NarratorStats:
        """Statistics of the narrator."""
        return replace(
            self.hands.conduct,
            refused_changes=self._refused_changes,
            refused_answers=self._refused_answers,
            withheld_secrets=self.outcomes.withheld_secrets,
        )

    def expect(self) -> None:
        """Prepare for the answer to another model call."""
        self._draft.restart()
        self._length = 0

    async def take(self, event: GatewayEvent) -> AsyncGenerator[NarrationEvent, None]:
        """Process the next event of an answer and yield the resulting events.

        Raises:
            FailedPreconditionError: the answer is too long (code ANSWER_INVALID).
        """
        match event:
            case TextDelta():
                self._grow(event.text)
                self._draft.feed(event.text)
                if self._draft.waits:
                    for happened in await self._decide():
                        yield happened
                for chunk in self._draft.release():
                    yield chunk
            case ToolCallDelta():
                self._grow(event.arguments_text)
                # Text beside tool calls is not a narration.
                self._draft.hold()
                for retracted in self._draft.retract("the narrator continues with tool calls"):
                    yield retracted
            case Repairing():
                self._refuse(finding.path for finding in event.findings)
                for retracted in self._draft.retract("the narrator's answer is being repaired"):
                    yield retracted
                self.expect()

    def finish(self, completion: Completion, *, repaired: bool) -> Iterator[NarrationEvent | NarrationResult]:
        """Finish a turn whose Outcome is accepted; the last item is the result."""
        outcome: Mapping[str, Any] = completion.value or {}
        narrative = normalize_text(outcome["narrative"])
        yield from self._close(outcome.get("state_changes") or (), extract_rolls(outcome))
        if not self.hands.knows_the_world:
            more = late_facts(self._scene, self._played)
            narrative = f"{narrative}\n\n{more}" if more else narrative
        yield from self._draft.finish(narrative)
        yield from iter_dialogue(outcome)
        yield NarrationResult(
            narrative=narrative,
            resolution=Resolution.REPAIRED if repaired else Resolution.NARRATED,
            usage=UsageTotal.on(completion),
            model=f"{completion.provider}/{completion.model}",
            memories=self._remembered(outcome.get("hidden_memory_updates") or ()),
            conduct=self.conduct,
        )

    def give_up(
        self, reason: str, problem: str, refused: Sequence[str] | None
    ) -> Iterator[NarrationEvent | NarrationResult]:
        """Finish the turn with the fallback narration; the last item is the result.

        Args:
            reason: machine-readable reason.
            problem: reason for people.
            refused: paths of the errors in the last answer, if it was rejected.
        """
        if refused is not None:
            self._refuse(refused)
        yield from self._close()
        yield from self._draft.retract(problem)
        yield Degraded(reason, f"{problem}; the fallback narration is used")
        narrative = fallback_narration(self._scene, self._played)
        yield from self._draft.finish(narrative)
        memories = self._scene.session.memories
        yield NarrationResult(narrative, Resolution.SERVER_RESOLVED, UsageTotal(), "", memories, self.conduct)

    def _refuse(self, places: Iterable[str]) -> None:
        changes = (place.split("/")[2] for place in places if place.startswith("/state_changes/"))
        self._refused_answers += 1
        self._refused_changes += len(set(changes))

    def _remembered(self, updates: Sequence[Mapping[str, Any]]) -> tuple[NarratorMemory, ...]:
        scene = self._scene
        cast = [entity["id"] for entity in scene.spec.get("entities", ())]
        return add_memories(scene.session.memories, updates, scene.turn, cast, scene.view.viewer)

    def _grow(self, text: str) -> None:
        self._length += len(text)
        if self._length > _MAX_ANSWER_CHARACTERS:
            raise invalid_answer_error("the answer is too long")

    async def _decide(self) -> Sequence[NarrationEvent]:
        """Close the stage with the mechanics before the prose if they are valid; else hold the prose back."""
        said = await self.outcomes.mechanics_in(self._draft.whole_members())
        if said is None:
            self._draft.hold()
            return ()
        mechanics = tuple(self._close(said.get("state_changes") or (), extract_rolls(said)))
        self._draft.open(await self.outcomes.tripwire())
        return mechanics

    def _close(
        self, changes: Sequence[Mapping[str, Any]] = (), dice: Sequence[DieRollRequest] = ()
    ) -> Iterator[NarrationEvent]:
        happened = self._scene.stage.close(changes, dice)
        if isinstance(happened, TurnRestarted):
            self._draft.void()
            yield happened
        else:
            yield from happened

    @property
    def _played(self) -> TurnResult:
        """The turn as last closed."""
        played = self._scene.stage.played
        if played is None:
            raise InternalError("a turn is narrated before it was closed")
        return played
