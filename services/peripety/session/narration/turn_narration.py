"""Narration of one turn: converts the narrator's answers to events, and streams them to the reader.

`ProseStream` releases the prose of an answer while the answer is still being written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.errors import FailedPreconditionError, InternalError
from peripety.gateway.structured_output import json_repair
from peripety.gateway.structured_output.incremental_json import StringFieldReader
from peripety.gateway.types.response import Repairing, TextDelta, ToolCallDelta, UsageTotal
from peripety.session.events import (
    NOT_UNDERSTOOD,
    Degraded,
    DialogueSpoken,
    NarrativeChunk,
    NarrativeRetracted,
    RuleFailed,
)
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
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

    from peripety.errors import Finding
    from peripety.gateway.types.response import Completion, GatewayEvent
    from peripety.session.events import Event
    from peripety.session.narration.claims.checker import ClaimFilter
    from peripety.session.narration.secret_filter import LeakFilter
    from peripety.session.narration.turn_context import NarrationContext
    from peripety.session.turn_transaction import TurnResult
    from peripety.session.types import DieRollRequest, NarratorMemory


class ProseStream:
    """The prose of an answer, and how much of it the reader has received.

    Prose is held back until its release is allowed: only the caller knows whether the fields before it are
    acceptable. Text that starts like code is not released before it is known to be prose. Text that may still
    become a secret is not released before it cannot.
    """

    def __init__(self) -> None:
        self._released = 0
        self.has_streamed = False
        """True if the reader has received any prose, even if it was retracted since."""
        self.begin_answer()

    def begin_answer(self) -> None:
        """Start with another answer; the prose of the previous one was retracted."""
        self._dialogue: tuple[DialogueSpoken, ...] = ()
        self._unspoken: list[DialogueSpoken] = []
        self._reader = StringFieldReader("narrative")
        self._text_before_prose: list[str] = []
        self._narrative = ""
        self._filtered = 0
        self._leak_filter: LeakFilter | None = None
        self._claim_filter: ClaimFilter | None = None
        self._decided = False

    def feed(self, text: str) -> None:
        """Add the next piece of the answer."""
        if not self._reader.has_started:
            self._text_before_prose.append(text)
        self._narrative += normalize_text(self._reader.feed(text))

    @property
    def is_pending(self) -> bool:
        """True if there is prose and its release is undecided."""
        return not self._decided and bool(self._narrative.strip()) and not is_code_like(self._narrative)

    def complete_members(self) -> Mapping[str, Any]:
        """Return the members of the answer that were complete when its prose began."""
        return json_repair.complete_members("".join(self._text_before_prose), ()) or {}

    def allow_release(
        self,
        leak_filter: LeakFilter,
        claim_filter: ClaimFilter,
        dialogue: Sequence[DialogueSpoken],
    ) -> None:
        """Allow the release of this answer's prose while it is written, filtered by both filters.

        Args:
            leak_filter: the filter of secrets.
            claim_filter: the filter of prose that contradicts the record.
            dialogue: the checked dialogue, each line of which follows its quote.
        """
        self._decided, self._leak_filter, self._claim_filter = True, leak_filter, claim_filter
        self._set_dialogue(dialogue)

    def hold_back(self) -> None:
        """Hold back the prose of this answer until it is complete."""
        self._decided, self._leak_filter = True, None

    def release(self) -> Iterator[NarrativeChunk | DialogueSpoken]:
        """Release the prose that is safe and not released yet."""
        if self._leak_filter is not None and self._claim_filter is not None:
            text = self._narrative[self._filtered : NARRATIVE_CHARACTERS]
            self._filtered += len(text)
            piece = self._claim_filter.feed(self._leak_filter.feed(text))
            if self._leak_filter.has_leaked or self._claim_filter.has_contradiction:
                self.hold_back()
            yield from self._write(self._narrative, self._released + len(piece))

    def finish(
        self,
        narrative: str,
        dialogue: Sequence[DialogueSpoken] = (),
    ) -> Iterator[NarrativeChunk | NarrativeRetracted | DialogueSpoken]:
        """Release the rest of a complete narrative, with its dialogue.

        A line follows its quote in the rest of the narrative; a line without one follows the narrative.
        """
        if self._narrative[: self._released] != narrative[: self._released]:
            yield from self.retract("the complete narrative differs from the streamed text")
        if self._dialogue != tuple(dialogue):
            if len(self._unspoken) < len(self._dialogue):
                yield from self.retract("the complete dialogue differs from the streamed one")
            self._set_dialogue(dialogue)
        yield from self._write(narrative, len(narrative))
        yield from self._unspoken
        self._unspoken = []

    def retract(self, reason: str) -> Iterator[NarrativeRetracted]:
        """Retract the released prose and its dialogue, if any."""
        if self._released:
            self.reset_released()
            yield NarrativeRetracted(reason)

    def reset_released(self) -> None:
        """Reset after a restart of the turn, which voids the released prose."""
        self._released = 0
        self._unspoken = [*self._dialogue]

    def _set_dialogue(self, dialogue: Sequence[DialogueSpoken]) -> None:
        self._dialogue = tuple(dialogue)
        self._unspoken = [*dialogue]

    def _write(self, narrative: str, end: int) -> Iterator[NarrativeChunk | DialogueSpoken]:
        """Release the narrative up to a position, and each line whose quote ends before it."""
        ends = [(_find_quote_end(narrative, line.utterance), line) for line in self._unspoken]
        quoted = [(max(place, self._released), line) for place, line in ends if place and place <= end]
        quoted.sort(key=lambda each: each[0])
        for place, line in quoted:
            yield from self._release_until(narrative, place)
            self._unspoken.remove(line)
            yield line
        yield from self._release_until(narrative, end)

    def _release_until(self, narrative: str, end: int) -> Iterator[NarrativeChunk]:
        if end > self._released:
            self.has_streamed = True
            piece, self._released = narrative[self._released : end], end
            yield NarrativeChunk(piece)


# Quotation marks and dashes of European and East Asian languages.
_OPENING_MARKS = "\"'\u201c\u2018\u201e\u201a\u00ab\u2039\u00bb\u203a\u300c\u300e\u2014\u2013-"
_CLOSING_MARKS = "\"'\u201d\u2019\u201c\u2018\u00bb\u203a\u00ab\u2039\u300d\u300f"
_END_OF_SPEECH = ".,!?\u2026;:"


def _find_quote_end(narrative: str, utterance: str) -> int | None:
    """Return the position behind the quote of an utterance; None if the narrative does not quote it.

    A quote may end with another punctuation mark than the utterance.
    """
    words = utterance.strip().rstrip(_END_OF_SPEECH)
    if not words:
        return None
    quote = (
        rf"[{re.escape(_OPENING_MARKS)}]\s*{re.escape(words)}"
        rf"[{re.escape(_END_OF_SPEECH)}]{{0,3}}\s*[{re.escape(_CLOSING_MARKS)}]"
    )
    found = re.search(quote, narrative)
    return None if found is None else found.end()


def dialogue_of(outcome: Mapping[str, Any]) -> tuple[DialogueSpoken, ...]:
    """Return the dialogue of an Outcome."""
    return tuple(
        DialogueSpoken(line["entity_id"], normalize_text(line["utterance"]))
        for line in outcome.get("visible_dialogue") or ()
    )


_STRUCTURE = re.compile(r"[{}`]")
_DEFAULT_QUESTION = "The words are not understood. What do you want to do?"
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
        stats: statistics of the narrator.
    """

    narrative: str
    resolution: Resolution
    usage: UsageTotal
    model: str
    memories: tuple[NarratorMemory, ...] = ()
    stats: NarratorStats = field(default_factory=NarratorStats)


@dataclass(frozen=True, slots=True)
class TurnNotPlayed:
    """Result of a narration of words that led to no turn: nothing is stored.

    Attributes:
        failure: the last event of the turn; it explains to the player how to continue.
        usage: usage of language models.
    """

    failure: RuleFailed
    usage: UsageTotal


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
        self._prose = ProseStream()
        self._length = 0
        self._answer = ""
        self._plain_answer = ""
        self._voiced: list[DialogueSpoken] = []
        self._rejected_answers = 0
        self._rejected_changes = 0
        self.validator = OutcomeValidator(scene)
        self.opening_events: tuple[NarrationEvent, ...] = ()
        """Events to send before the model is called: all mechanics, unless the narrator may still act."""
        self.known_result: TurnResult | None = None
        """Result of the turn if the narrator may know it before it writes."""
        if not scene.input.strip():
            self.opening_events = tuple(self._finish_mechanics())
            self.known_result = self._result
            scene.speculation.pin_outcome(self.known_result.world)
        self.tool_executor = NarratorToolExecutor(scene, self.known_result)

    @property
    def stats(self) -> NarratorStats:
        """Statistics of the narrator."""
        return replace(
            self.tool_executor.stats,
            refused_changes=self._rejected_changes,
            refused_answers=self._rejected_answers,
            withheld_secrets=self.validator.withheld_secrets,
            contradictions=self.validator.contradictions,
            unchecked_answers=self.validator.unchecked_answers,
        )

    def begin_answer(self) -> None:
        """Prepare for the answer to another model call."""
        self._prose.begin_answer()
        self._length = 0
        self._answer = ""

    @property
    def has_streamed(self) -> bool:
        """True if the reader has received any prose."""
        return self._prose.has_streamed

    def add_utterance(self, entity_id: str, utterance: str) -> None:
        """Add the utterance of a voiced person to the dialogue of the turn."""
        self._voiced.append(DialogueSpoken(entity_id, utterance))

    async def on_event(self, event: GatewayEvent) -> Iterable[NarrationEvent]:
        """Process the next event of an answer; return the resulting events, released as they are iterated.

        Raises:
            FailedPreconditionError: the answer is too long (code ANSWER_INVALID).
        """
        match event:
            case TextDelta():
                self._count_characters(event.text)
                self._answer += event.text
                self._prose.feed(event.text)
                mechanics = await self._release_if_valid() if self._prose.is_pending else ()
                return chain(mechanics, self._prose.release())
            case ToolCallDelta():
                self._count_characters(event.arguments_text)
                # Text beside tool calls is not a narration.
                self._prose.hold_back()
                return self._prose.retract("the narrator continues with tool calls")
            case Repairing():
                self._count_rejection(finding.path for finding in event.findings)
                if not any(finding.code == "TRUNCATED" for finding in event.findings):
                    self._keep_plain_answer()
                retracted = tuple(self._prose.retract("the narrator's answer is being repaired"))
                self.begin_answer()
                return retracted
        return ()

    def finish(self, completion: Completion, *, repaired: bool) -> Iterator[NarrationEvent | NarrationResult]:
        """Finish a turn whose Outcome is accepted; the last item is the result."""
        outcome: Mapping[str, Any] = completion.value or {}
        narrative = normalize_text(outcome["narrative"])
        yield from self._finish_mechanics(outcome.get("state_changes") or (), extract_rolls(outcome))
        if not self.tool_executor.has_seen_outcome:
            more = late_facts(self._scene, self._result)
            narrative = f"{narrative}\n\n{more}" if more else narrative
        yield from self._prose.finish(narrative, self._dialogue_of(outcome))
        yield NarrationResult(
            narrative=narrative,
            resolution=Resolution.REPAIRED if repaired else Resolution.NARRATED,
            usage=UsageTotal.from_completion(completion),
            model=f"{completion.provider}/{completion.model}",
            memories=self._updated_memories(outcome.get("hidden_memory_updates") or ()),
            stats=self.stats,
        )

    def fall_back(
        self,
        reason: str,
        problem: str,
        rejected_paths: Sequence[str] | None,
    ) -> Iterator[NarrationEvent | NarrationResult]:
        """Finish the turn with the fallback narration; the last item is the result.

        Args:
            reason: machine-readable reason.
            problem: reason for people.
            refused: paths of the errors in the last answer, if it was rejected.
        """
        if rejected_paths is not None:
            self._count_rejection(rejected_paths)
        yield from self._finish_mechanics()
        yield from self._prose.retract(problem)
        yield Degraded(reason, f"{problem}; the fallback narration is used")
        narrative = fallback_narration(self._scene, self._result)
        yield from self._prose.finish(narrative)
        memories = self._scene.session.memories
        yield NarrationResult(narrative, Resolution.SERVER_RESOLVED, UsageTotal(), "", memories, self.stats)

    def ask_player(self, question: str) -> TurnNotPlayed:
        """Return the result of words about which the narrator returned a question."""
        return TurnNotPlayed(
            RuleFailed(NOT_UNDERSTOOD, "", question or _DEFAULT_QUESTION, turn_abandoned=True),
            UsageTotal(),
        )

    async def leave_unplayed(
        self,
        reason: str,
        problem: str,
        *,
        was_rejected: bool,
    ) -> AsyncIterator[NarrationEvent | TurnNotPlayed]:
        """Leave a turn unplayed that has nothing but words; the last item is the result.

        The narrator's own plain prose is shown if it called no tool, so that nothing else has happened, and
        the prose passes the checks of any text for the reader.

        Args:
            reason: machine-readable reason.
            problem: reason for people.
            was_rejected: whether the last answer is whole and was rejected.
        """
        if was_rejected:
            self._keep_plain_answer()
        for retracted in self._prose.retract(problem):
            yield retracted
        prose = self._plain_answer
        is_alone = not self.tool_executor.stats.tool_calls
        if prose and is_alone and not await self.validator.check_plain_prose(prose):
            for chunk in self._prose.finish(prose):
                yield chunk
        message = f"{problem}; no turn was spent: try again, or choose an action"
        yield TurnNotPlayed(RuleFailed(reason, "", message, turn_abandoned=True), UsageTotal())

    def _keep_plain_answer(self) -> None:
        """Retain a whole answer that is plain prose without an Outcome around it."""
        text = normalize_text(self._answer).strip()
        is_prose = any(map(str.isalnum, text)) and not _STRUCTURE.search(text)
        if is_prose and len(text) <= NARRATIVE_CHARACTERS:
            self._plain_answer = text

    def _dialogue_of(self, outcome: Mapping[str, Any]) -> tuple[DialogueSpoken, ...]:
        return tuple(self._voiced) or dialogue_of(outcome)

    def _count_rejection(self, places: Iterable[str]) -> None:
        changes = (place.split("/")[2] for place in places if place.startswith("/state_changes/"))
        self._rejected_answers += 1
        self._rejected_changes += len(set(changes))

    def _updated_memories(self, updates: Sequence[Mapping[str, Any]]) -> tuple[NarratorMemory, ...]:
        scene = self._scene
        cast = [entity["id"] for entity in scene.spec.get("entities", ())]
        return add_memories(scene.session.memories, updates, scene.turn, cast, scene.view.viewer)

    def _count_characters(self, text: str) -> None:
        self._length += len(text)
        if self._length > _MAX_ANSWER_CHARACTERS:
            raise invalid_answer_error("the answer is too long")

    async def _release_if_valid(self) -> Sequence[NarrationEvent]:
        """Close the stage with the mechanics before the prose if they are valid; else hold the prose back."""
        said = await self.validator.parse_opening(self._prose.complete_members())
        if said is None:
            self._prose.hold_back()
            return ()
        changes, dice = said.get("state_changes") or (), extract_rolls(said)
        leaks = await self.validator.leak_filter()
        claims = await self.validator.claim_filter(self._scene.speculation.compute_result(changes, dice))
        # The events of the closed stage count as sent, so nothing may fail between here and the caller.
        mechanics = tuple(self._finish_mechanics(changes, dice))
        self._prose.allow_release(leaks, claims, self._dialogue_of(said))
        return mechanics

    def _finish_mechanics(
        self,
        changes: Sequence[Mapping[str, Any]] = (),
        dice: Sequence[DieRollRequest] = (),
    ) -> Iterator[NarrationEvent]:
        happened = self._scene.speculation.finish(changes, dice)
        if isinstance(happened, TurnRestarted):
            self._prose.reset_released()
            yield happened
        else:
            yield from happened

    @property
    def _result(self) -> TurnResult:
        """The turn as last closed."""
        played = self._scene.speculation.result
        if played is None:
            raise InternalError("a turn is narrated before it was closed")
        return played
