"""The half of a turn that a language model tells, and the server when the model cannot.

The model sees what the point of view may see, decides nothing and writes nothing: only its prose gets out,
character by character as it is written. Whatever it does wrong, the turn is told.
"""

from __future__ import annotations

import logging
import re
import time
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety import context, logs
from peripety.errors import DeadlineError, FailedPreconditionError, Finding, PeripetyError
from peripety.gateway.model import (
    ChatMessage,
    Completed,
    GenerateRequest,
    Repairing,
    ResponseSchema,
    Spent,
    TextDelta,
)
from peripety.gateway.objects.partial import StringFieldReader
from peripety.gateway.objects.structured import used_until
from peripety.gateway.providers.offline.narrate import narrate
from peripety.gateway.streams import following
from peripety.sessions.events import Degraded, Dialogue, NarrativeChunk, NarrativeRetracted
from peripety.sessions.facts import cast_of, facts_of, history_of, question_about
from peripety.sessions.model import Conduct, Resolution
from peripety.sessions.stage import Anew
from peripety.sim.schemas import OUTCOME, schema_document

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping

    from peripety.gateway.model import Completion, GatewayEvent, ModelGateway
    from peripety.sessions.events import Event
    from peripety.sessions.facts import Scene
    from peripety.sessions.mechanics import Played
    from peripety.sessions.model import Memory

__all__ = ["DEFAULT_SECONDS", "Narrator", "Prose", "Told"]

DEFAULT_SECONDS = 90.0
"""How long a narrator may take, its repair included, when nothing else is configured."""

# What is left of the caller's time for storing the turn.
_RESERVE_SECONDS = 1.0
_NARRATIVE_CHARACTERS = 1_500
_UTTERANCES = 4
_UTTERANCE_CHARACTERS = 300
_OUTPUT_TOKENS = 1_024
# No answer that fits the schema is nearly as long, however it is escaped.
_ANSWER_CHARACTERS = 64 * 1024
_NOTHING = {"type": "array", "items": {"type": "null"}, "maxItems": 0}
_CODE_STARTS = ("{", "`")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_REFUSED = {"ANSWER_INVALID", "ANSWER_REFUSED"}
_REASONS = {
    "OUTCOME_INVALID": "the narrator gave no valid account of the turn",
    "NARRATOR_TIMEOUT": "the narrator did not answer in time",
    "MODEL_UNAVAILABLE": "the narrator cannot be reached now",
    "NARRATOR_FAILED": "the narrator failed",
}

Prose: TypeAlias = NarrativeChunk | NarrativeRetracted | Dialogue | Degraded

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Told:
    """How a turn was told in the end.

    Attributes:
        narrative: the whole narration.
        resolution: how it came about.
        usage: what it used of language models.
        model: who narrated, as `provider/model`; empty when the server did.
        memories: what is remembered after the turn.
        conduct: how the narrator behaved.
    """

    narrative: str
    resolution: Resolution
    usage: Spent
    model: str
    memories: tuple[Memory, ...] = ()
    conduct: Conduct = field(default_factory=Conduct)


class Narrator:
    """Tells turns.

    Args:
        gateway: the way to a model.
        seconds: how long a telling may take; never more than the caller has left.
    """

    def __init__(self, gateway: ModelGateway, *, seconds: float = DEFAULT_SECONDS) -> None:
        self._gateway = gateway
        self._seconds = seconds

    async def tell(self, scene: Scene) -> AsyncGenerator[Event | Anew | Told, None]:
        """Tell a turn: its mechanics and prose as they come, then `Told`. No fault of a model is raised."""
        draft = _Draft()
        reason = "OUTCOME_INVALID"
        played = scene.stage.foresee()
        closing = scene.stage.close()
        for mechanics in closing.events if isinstance(closing, Anew) else closing:
            yield mechanics
        try:
            until = time.monotonic() + self._allowance()
            async with following(self._gateway.stream(_request(scene, played))) as answer:
                while (event := await _next(answer, until)) is not None:
                    for prose in draft.take(event):
                        yield prose
        except Exception as error:  # noqa: BLE001 - whatever a model does, the turn goes on
            reason = _reason(error)
            draft.fail(error)
            _log.warning("narrator gave up", extra={"reason": reason, **logs.outline(error)})
        if draft.told is None:
            for prose in draft.retract(_REASONS[reason]):
                yield prose
            yield Degraded(reason, f"{_REASONS[reason]}; the server tells the turn itself")
            draft.told = _told_by_server(scene, played, draft.used)
            yield NarrativeChunk(draft.told.narrative)
        yield replace(draft.told, memories=scene.session.memories)

    def _allowance(self) -> float:
        left = context.remaining()
        return self._seconds if left is None else min(self._seconds, left - min(_RESERVE_SECONDS, left / 4))


class _Draft:
    """An answer while it is written: what of it has been released, what it used, and what it became."""

    def __init__(self) -> None:
        self.used = Spent()
        self.told: Told | None = None
        self._restart()

    def _restart(self) -> None:
        self._reader = StringFieldReader("narrative")
        self._narrative = ""
        self._released = 0
        self._length = 0

    def take(self, event: GatewayEvent) -> Iterator[Prose]:
        """Take the next event of the answer; yield what may be shown because of it."""
        match event:
            case TextDelta():
                self._length += len(event.text)
                if self._length > _ANSWER_CHARACTERS:
                    raise FailedPreconditionError("the answer does not end", code="ANSWER_INVALID")
                self._narrative += _clean(self._reader.feed(event.text))
                yield from self._release()
            case Repairing():
                self.used = Spent(event.calls, event.usage, cost=None, cache_savings=None)
                yield from self.retract("the narrator is asked to put its account right")
                self._restart()
            case Completed():
                yield from self._finish(event.completion)

    def fail(self, error: Exception) -> None:
        """Note what the answer had used when it was given up, where the error knows."""
        used = used_until(error) if isinstance(error, PeripetyError) else None
        if used is not None:
            self.used = used

    def retract(self, reason: str) -> Iterator[Prose]:
        """Take back what was released, if anything was."""
        if self._released:
            yield NarrativeRetracted(reason)

    def _release(self) -> Iterator[Prose]:
        # What starts like code is never shown before it was found to be prose.
        if self._narrative.lstrip().startswith(_CODE_STARTS) or not self._narrative.strip():
            return
        piece = self._narrative[self._released : _NARRATIVE_CHARACTERS]
        self._released += len(piece)
        if piece:
            yield NarrativeChunk(piece)

    def _finish(self, completion: Completion) -> Iterator[Prose]:
        outcome: Mapping[str, Any] = completion.value or {}
        narrative = _clean(outcome["narrative"])
        if self._narrative[: self._released] != narrative[: self._released]:
            yield from self.retract("the narrator's account reads otherwise as a whole")
            self._released = 0
        rest, self._released = narrative[self._released :], len(narrative)
        if rest:
            yield NarrativeChunk(rest)
        for line in outcome.get("visible_dialogue") or ():
            yield Dialogue(line["entity_id"], _clean(line["utterance"]))
        self.told = Told(
            narrative=narrative,
            resolution=Resolution.REPAIRED if completion.repaired else Resolution.NARRATED,
            usage=Spent.on(completion),
            model=f"{completion.provider}/{completion.model}",
        )


async def _next(answer: AsyncIterator[GatewayEvent], until: float) -> GatewayEvent | None:
    """The next event, if it comes in time. The limit holds for the wait alone, never while a reader reads."""
    async with context.bounded(max(0.0, until - time.monotonic())):
        return await anext(answer, None)


def _reason(error: Exception) -> str:
    if isinstance(error, DeadlineError):
        return "NARRATOR_TIMEOUT"
    if isinstance(error, PeripetyError):
        return "OUTCOME_INVALID" if error.code in _REFUSED else "MODEL_UNAVAILABLE"
    return "NARRATOR_FAILED"


def _told_by_server(scene: Scene, played: Played, used: Spent) -> Told:
    narrative = _clean(narrate(facts_of(scene, played), history_of(scene))["narrative"])
    return Told(narrative, Resolution.SERVER_RESOLVED, used, "")


def _request(scene: Scene, played: Played) -> GenerateRequest:
    return GenerateRequest(
        system=_instructions(),
        messages=(ChatMessage.user(question_about(scene, played)),),
        schema=ResponseSchema(
            OUTCOME, _schema([entity["id"] for entity in cast_of(scene.spec)]), accept=_problems
        ),
        max_output_tokens=_OUTPUT_TOKENS,
    )


@cache
def _instructions() -> str:
    return resources.files("peripety.sessions").joinpath("prompts/narrate.md").read_text("utf-8")


def _schema(speakers: list[str]) -> Mapping[str, Any]:
    """The Outcome that this version takes: prose and dialogue; of everything else, nothing."""
    schema = deepcopy(dict(schema_document(OUTCOME)))
    dialogue = schema["$defs"]["Dialogue"]
    dialogue["properties"]["entity_id"] = {"type": "string", "enum": speakers}
    dialogue["properties"]["utterance"]["maxLength"] = _UTTERANCE_CHARACTERS
    properties: dict[str, Any] = dict.fromkeys(schema["properties"], _NOTHING)
    properties["narrative"] = schema["properties"]["narrative"] | {"maxLength": _NARRATIVE_CHARACTERS}
    if speakers:
        spoken = schema["properties"]["visible_dialogue"] | {"maxItems": _UTTERANCES}
        properties["visible_dialogue"] = spoken
    return schema | {"properties": properties, "$defs": {"Dialogue": dialogue} if speakers else {}}


async def _problems(outcome: Any) -> list[Finding]:
    """What the schema cannot say about an Outcome."""
    narrative = _clean(outcome["narrative"]).strip()
    if not any(map(str.isalnum, narrative)):
        return [Finding("BLANK", "/narrative", "the narrative has no words; tell the turn")]
    if narrative.startswith(_CODE_STARTS):
        return [Finding("NOT_PROSE", "/narrative", "the narrative is code; write plain prose")]
    return []


def _clean(text: str) -> str:
    """A text without control characters: they steer displays and say nothing."""
    return _CONTROLS.sub("", text)
