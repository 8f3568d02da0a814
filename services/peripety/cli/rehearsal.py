"""Games of the narrator benchmark: play turns and record what the narrator wrote."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from google.protobuf.json_format import MessageToDict

from peripety.api.common.v1 import engine_pb2
from peripety.api.session.v1 import session_pb2 as pb
from peripety.api.session.v1.session_pb2_grpc import SessionServiceStub
from peripety.cli.choosing import Choice
from peripety.cli.jsonify import jsonify
from peripety.errors import PeripetyError
from peripety.gateway.model import Spent, Usage
from peripety.sessions.grading import Round, numbers_in, unfounded
from peripety.sessions.model import Conduct, Resolution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import grpc.aio

    from peripety.api.common.v1 import common_pb2
    from peripety.api.session.v1.session_pb2_grpc import SessionServiceAsyncStub
    from peripety.cli.choosing import Player

__all__ = ["Stage", "rehearse"]

_TOO_OFTEN = 3


@dataclass(frozen=True, slots=True)
class Stage:
    """A stored scenario prepared for the benchmark.

    Attributes:
        scenario_id: the stored scenario.
        spec: its specification.
        pov: the entity whose point of view is used; empty for the public view.
        secrets: words that must not appear in the narration.
    """

    scenario_id: str
    spec: dict[str, Any]
    pov: str
    secrets: tuple[str, ...]


@dataclass
class _Game:
    """A session in progress, with all numbers sent to its narrator so far."""

    sessions: SessionServiceAsyncStub
    stage: Stage
    session: pb.Session
    known: set[float] = field(default_factory=set)

    @property
    def goes_on(self) -> bool:
        return self.session.status.kind == engine_pb2.RUN_STATUS_KIND_ONGOING

    def learn(self, *values: Any) -> None:
        for value in values:
            self.known.update(numbers_in(value))

    async def read(self) -> None:
        request = pb.GetSessionRequest(session_id=self.session.session_id, pov_entity_id=self.stage.pov)
        self.session = (await self.sessions.GetSession(request)).session
        self.learn(json.loads(self.session.state), self.session.turn + 1)

    async def play(self, choice: Choice) -> Round | None:
        """Play a turn; return None if the rules reject the choice."""
        request = pb.TakeTurnRequest(
            session_id=self.session.session_id,
            request_id=str(uuid4()),
            expected_turn=self.session.turn + 1,
            actions=choice.actions,
            input=choice.words,
            pov_entity_id=self.stage.pov,
        )
        heard = _Heard()
        try:
            async for response in self.sessions.TakeTurn(request):
                heard.take(response.event)
        except PeripetyError as error:
            heard.broke_off = error.code
        heard.seconds = heard.now
        if heard.was_abandoned:
            return None
        await self.read()
        self.learn(choice.words, *map(jsonify, choice.actions), *heard.mechanics)
        self.known.update(heard.differences())
        return heard.round(
            unfounded(heard.prose, self.known),
            leaked=any(secret in heard.everything for secret in self.stage.secrets),
        )


class _Heard:
    """The events of one turn, with their times."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._first_prose: float | None = None
        self._committed: pb.TurnEvent.Committed | None = None
        self._spoken: list[str] = []
        self._changes: list[engine_pb2.Change] = []
        self._degraded = ""
        self._text: list[str] = []
        self.mechanics: list[Any] = []
        self.was_abandoned = False
        self.broke_off = ""
        self.seconds = 0.0

    @property
    def now(self) -> float:
        """Return the seconds since the request."""
        return time.perf_counter() - self._began

    def take(self, event: pb.TurnEvent) -> None:
        """Record an event."""
        kind = event.WhichOneof("event")
        self._text.append(json.dumps(MessageToDict(event), ensure_ascii=False))
        match kind:
            case "accepted":
                self._spoken.clear()
                self._changes.clear()
                self._degraded = ""
            case "narrative_chunk":
                if self._first_prose is None:
                    self._first_prose = self.now
                self._text.append(event.narrative_chunk.text)
            case "dialogue":
                self._spoken.append(event.dialogue.utterance)
            case "narrative_retracted":
                self._spoken.clear()
            case "degraded":
                self._degraded = event.degraded.reason
            case "committed":
                self._committed = event.committed
                self._changes += event.committed.changes
            case "rule_failed":
                self.was_abandoned |= event.rule_failed.turn_abandoned
        if kind in {"action_resolved", "rolled", "world_resolved", "rule_failed"}:
            self.mechanics.append(jsonify(event))

    @property
    def prose(self) -> str:
        """The final prose."""
        told = "" if self._committed is None else self._committed.narrative
        return "\n".join([told, *self._spoken])

    @property
    def everything(self) -> str:
        """All text of the turn, including retracted text.

        Prose is also joined without the boundaries of its chunks.
        """
        chunks = "".join(text for text in self._text if not text.startswith("{"))
        return "\n".join([*self._text, chunks])

    def differences(self) -> Iterator[float]:
        """Yield the differences between changed numbers: a narrator may mention them."""
        for change in self._changes:
            before, after = (json.loads(value or b"null") for value in (change.before, change.after))
            if all(isinstance(value, int | float) for value in (before, after)):
                yield abs(after - before)

    def round(self, numbers: tuple[str, ...], *, leaked: bool) -> Round:
        """Return the measurements of the turn."""
        end = self._committed
        if end is None:
            reason = self.broke_off or self._degraded
            return Round(None, degraded=reason, leaked=leaked, seconds=self.seconds)
        return Round(
            resolution=_RESOLUTIONS[end.resolution],
            conduct=Conduct(**{field.name: getattr(end.narrator_stats, field.name) for field in _CONDUCT}),
            degraded=self._degraded,
            # Text of the server's fallback narration does not count against the narrator.
            unfounded=() if end.resolution == pb.RESOLUTION_SERVER_RESOLVED else numbers,
            leaked=leaked,
            used=_spent(end.usage),
            seconds=self.seconds,
            first_prose=self._first_prose,
        )


_CONDUCT = pb.NarratorStats.DESCRIPTOR.fields
_RESOLUTIONS = {
    pb.RESOLUTION_NARRATED: Resolution.NARRATED,
    pb.RESOLUTION_REPAIRED: Resolution.REPAIRED,
    pb.RESOLUTION_SERVER_RESOLVED: Resolution.SERVER_RESOLVED,
}


async def rehearse(
    channel: grpc.aio.Channel,
    stage: Stage,
    player: Player,
    *,
    seed: int,
    turns: int,
    model: str,
    note: Callable[[Round], None],
) -> None:
    """Play one session up to a number of turns, and delete it.

    Args:
        channel: to the services.
        stage: the scenario.
        player: chooses the input of each turn.
        seed: of the session.
        turns: the maximum number of turns.
        model: the narrator, as `provider/model`; empty for the configured one.
        note: called with each turn that was played.
    """
    sessions = SessionServiceStub(channel)
    created = await sessions.CreateSession(
        pb.CreateSessionRequest(
            request_id=str(uuid4()),
            scenario_id=stage.scenario_id,
            seed=seed,
            pov_entity_id=stage.pov,
            narrator=pb.NarratorOptions(model=model),
        )
    )
    game = _Game(sessions, stage, created.session)
    game.learn({key: value for key, value in stage.spec.items() if key != "state"})
    try:
        await game.read()
        failed = 0
        for number in range(1, turns + 1):
            if not game.goes_on or failed == _TOO_OFTEN:
                return
            played = await game.play(player.choose(number, game.session.legal_actions) or Choice())
            # The choice was rejected; waiting is always legal.
            played = played or await game.play(Choice())
            if played is not None:
                note(played)
                failed = failed + 1 if played.resolution is None else 0
    finally:
        request = pb.DeleteSessionRequest(request_id=str(uuid4()), session_id=game.session.session_id)
        await asyncio.shield(sessions.DeleteSession(request))


def _spent(used: common_pb2.ModelUsage) -> Spent:
    tokens = used.tokens
    usage = Usage(
        tokens.input_tokens, tokens.output_tokens, tokens.cache_read_tokens, tokens.cache_write_tokens
    )
    return Spent(used.calls, usage, used.cost.pico_units if used.HasField("cost") else None, None)
