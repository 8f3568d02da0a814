"""Recorded sessions as golden files: a recorder, the features of a bundle, and its tampered variants.

A recorder plays on the real session code, with a scripted narrator. It replaces what differs from run to run,
which is the attempt ids and the commit times: no hash but the seal covers them.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.session.branch_types import ForkRequest, RewindRequest
from peripety.session.bundles.exporter import SessionExporter
from peripety.session.types import NewSession, PlayerAction, TurnRequest
from support.engine.seeded_specs import random_params
from support.gateway.fake_gateway import FakeGateway
from support.session.bundles import resealed
from support.session.sessions import OneScenario, outcome, rulesets, table

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from random import Random

    from peripety.session.session_manager import SessionManager
    from support.engine.specs import Json

TOLD = outcome("It is told.")
FIRST_TURN_LINE = 3
"""Line of the first turn of a bundle without a certificate, from 1."""
_LARGEST_SAFE = 2**53 - 1


@dataclass
class Recorder:
    """A session that is being recorded.

    Attributes:
        sessions: the session code.
        gateway: the scripted narrator.
        session_id: the session that is played, and exported at the end.
        calls: the calls about its branches, in order: `fork`, `rewind`.
    """

    sessions: SessionManager
    gateway: FakeGateway
    exporter: SessionExporter
    session_id: str = ""
    calls: list[str] = field(default_factory=list)
    _ids: int = 0

    async def start(self, **more: Any) -> None:
        """Create the session; `more` are fields of the request."""
        made = await self.sessions.create(NewSession(self._next_id(), "scenario", **more))
        self.session_id = made.session.session_id

    async def play(self, *actions: str | PlayerAction, answers: Sequence[Any] = (TOLD,), **more: Any) -> None:
        """Play a turn; the narrator gives these answers."""
        self.gateway.answers = [None] * len(self.gateway.requests) + [*answers]
        turn = (await self.sessions.get(self.session_id, None)).session.turn + 1
        calls = tuple(PlayerAction(a, {}) if isinstance(a, str) else a for a in actions)
        request = TurnRequest(self.session_id, self._next_id(), turn, calls, **more)
        async for _ in self.sessions.turn_runner.run(request):
            pass

    async def play_at_random(self, random: Random, spec: Json, turns: int) -> None:
        """Play turns of random actions, legal or not, until the run ends."""
        for _ in range(turns):
            if (await self.sessions.get(self.session_id, None)).session.status.kind != "ongoing":
                return
            chosen = random.choices(spec["actions"], k=random.choice((0, 1, 1, 1, 2)))
            await self.play(*(PlayerAction(one["id"], _plain_params(random, one)) for one in chosen))

    async def fork(self, turn: int, seed: int | None = None) -> None:
        """Continue with a fork behind a turn."""
        self.calls.append("fork")
        request = ForkRequest(self._next_id(), self.session_id, turn, seed)
        self.session_id = (await self.sessions.branches.fork(request)).session.session_id

    async def rewind(self, turn: int) -> None:
        """Return to a turn."""
        self.calls.append("rewind")
        now = (await self.sessions.get(self.session_id, None)).session.turn
        await self.sessions.rewind(RewindRequest(self._next_id(), self.session_id, turn, now))

    async def bundle(self) -> bytes:
        """Return the session as a bundle that every recording repeats byte for byte."""
        return _settle(b"".join([piece async for piece in self.exporter.export(self.session_id)]))

    def _next_id(self) -> str:
        self._ids += 1
        return str(uuid.UUID(int=self._ids))


@dataclass(frozen=True)
class Transcript:
    """A recorded session, and the calls about its branches that led to it."""

    bundle: bytes
    calls: tuple[str, ...]


async def record(
    document: bytes,
    course: Callable[[Recorder], Awaitable[None]],
    database_url: str,
    certificate: bytes | None = None,
) -> Transcript:
    """Record a session of a scenario.

    Args:
        document: the scenario.
        course: starts the session and plays its turns.
        database_url: an empty database.
        certificate: the certificate of the scenario, if any.
    """
    gateway = FakeGateway(TOLD)
    async with table(database_url, document, gateway) as game:
        exporter = SessionExporter(game.store, rulesets(game.store), OneScenario(document, certificate))
        recorder = Recorder(game.sessions, gateway, exporter)
        await course(recorder)
        return Transcript(await recorder.bundle(), tuple(recorder.calls))


def _plain_params(random: Random, action: Json) -> dict[str, Any]:
    """Parameters that a request can contain: numbers, texts and booleans."""
    params = random_params(random, action)
    return {name: value for name, value in params.items() if isinstance(value, bool | int | float | str)}


def _settle(bundle: bytes) -> bytes:
    *lines, _ = bundle.splitlines()
    header = json.loads(lines[0])
    first = FIRST_TURN_LINE - 1 + (header["certificate_hash"] is not None)
    lines[0] = engine.canonicalize(header | {"exported_by": "peripety"})
    for number, line in enumerate(lines[first:], 1):
        turn = engine.parse_canonical(line)
        for event in turn["events"]:
            if event["kind"] == "accepted":
                event["attempt_id"] = str(uuid.UUID(int=number))
            elif event["kind"] == "committed":
                event["commit_time"] = number * 1_000_000
        lines[first + number - 1] = engine.canonicalize(turn)
    return resealed(lines)


def entry_of(transcript: Transcript) -> Json:
    """Return the entry of a transcript in the index."""
    *lines, _ = transcript.bundle.splitlines()
    header = json.loads(lines[0])
    turns = _turns_of(lines, header)
    return {
        "chain_hash": header["chain_hash"],
        "features": sorted({*transcript.calls, *_features(header, json.loads(lines[1]), turns)}),
        "sha256": hashlib.sha256(transcript.bundle).hexdigest(),
        "state_hash": turns[-1]["record"]["state_hash"] if turns else None,
        "tampered": [*_tampered(lines, header, turns)],
        "turns": len(turns),
    }


def _turns_of(lines: Sequence[bytes], header: Json) -> list[Json]:
    return [engine.parse_canonical(line) for line in lines[_first_turn(header) - 1 :]]


def _first_turn(header: Json) -> int:
    return FIRST_TURN_LINE + (header["certificate_hash"] is not None)


def _features(header: Json, spec: Json, turns: Sequence[Json]) -> Iterator[str]:
    """Yield everything that happened in a session, read from its bundle."""
    yield f"version:{spec['spec_version']}"
    yield from (f"spec:{key}" for key in ("bounds", "deal", "clues", "statements", "places") if key in spec)
    yield from (
        f"header:{key}" for key in ("certificate_hash", "next_seed", "table") if header[key] is not None
    )
    for turn in turns:
        record = turn["record"]
        yield from _mechanics(record)
        yield from (f"event:{event['kind']}" for event in turn["events"])
        yield f"narration:{turn['events'][-1]['resolution']}"
        yield from ("pov",) if turn["pov"] else ()
        yield from ("memories",) if turn.get("memories") else ()
        yield from (f"value:{kind}" for kind in _kinds_of_values(record))


def _mechanics(record: Json) -> Iterator[str]:
    yield from ("op:addlog",) if record["log"] else ()
    yield from ("random event",) if record["event"] else ()
    yield from ("rule error",) if record["errors"] else ()
    yield from (key for key in ("seed", "rolls", "narrated") if key in record)
    yield f"status:{record['status']['kind']}"
    for call in record["actions"]:
        yield from ("acting entity",) if "entity_id" in call else ()
        yield from ("action with parameters",) if call["params"] else ()
    if len(record["actions"]) > 1:
        yield "several actions"
    for change in record["changes"]:
        cause, _, name = change["cause"].partition(":")
        yield f"op:{change['op']}"
        yield "op:schedule" if cause == "schedule" else f"cause:{cause}"
        if cause == "event" and name != record["event"]:
            yield "lasting event"
        lowered = change["path"].split(".")[1].split("[")[0]
        if lowered in {"clues", "statements", "promises", "places"}:
            yield f"lowered:{lowered}"


def _kinds_of_values(value: Any) -> Iterator[str]:
    """Yield the kinds of numbers and texts in a record that a reader may write differently."""
    if isinstance(value, str) and not value.isascii():
        yield "unicode"
        yield from ("beyond U+FFFF",) if any(ord(char) > 0xFFFF for char in value) else ()
    elif isinstance(value, bool):
        return
    elif isinstance(value, int | float):
        text = engine.canonicalize(value).decode()
        yield from ("beyond 2^53",) if abs(value) > _LARGEST_SAFE and "e" not in text else ()
        yield from ("exponent",) if "e" in text else ()
        yield from ("fraction",) if "." in text else ()
        yield from ("largest safe integer",) if abs(value) == _LARGEST_SAFE else ()
    elif isinstance(value, Mapping):
        keys = sorted(value)
        if keys != sorted(keys, key=lambda key: key.encode("utf-16-be")):
            yield "keys by code units"
        for key, member in value.items():
            yield from _kinds_of_values(key)
            yield from _kinds_of_values(member)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for member in value:
            yield from _kinds_of_values(member)


@dataclass(frozen=True)
class Tampering:
    """A change of a bundle: bytes of a line are replaced, or lines change places, or a line is left out.

    Attributes:
        name: kind of the change.
        line: the changed line, from 1.
        at: index of the first replaced byte in the line; None if lines move.
        delete: number of replaced bytes.
        insert: ASCII text in their place.
        swap_with: the line it changes places with, if any.
        first_false_line: the first line that a verifier must reject.
        first_false_turn: the turn of that line; None if it is not a turn.
        is_resealed: True if the last line is made to fit again.
    """

    name: str
    line: int
    at: int | None = None
    delete: int = 0
    insert: str = ""
    swap_with: int | None = None
    first_false_line: int = 0
    first_false_turn: int | None = None
    is_resealed: bool = True


def tamper(bundle: bytes, change: Tampering) -> bytes:
    """Return a tampered bundle."""
    *lines, seal = bundle.splitlines()
    place = change.line - 1
    if change.swap_with is not None:
        other = change.swap_with - 1
        lines[place], lines[other] = lines[other], lines[place]
    elif change.at is None:
        del lines[place]
    else:
        line, end = lines[place], change.at + change.delete
        lines[place] = line[: change.at] + change.insert.encode() + line[end:]
    return resealed(lines) if change.is_resealed else b"".join(line + b"\n" for line in [*lines, seal])


def _tampered(lines: Sequence[bytes], header: Json, turns: Sequence[Json]) -> Iterator[Json]:
    for change in _changes(lines, header, turns):
        yield {name: value for name, value in vars(change).items() if value is not None}


def _changes(lines: Sequence[bytes], header: Json, turns: Sequence[Json]) -> Iterator[Tampering]:
    first = _first_turn(header)
    spec_digit = lines[0].index(b'"spec_hash":"') + len(b'"spec_hash":"')
    yield _other_digit("specification hash", lines, 1, spec_digit, 2, None)
    chain_digit = lines[0].index(b'"chain_hash":"') + len(b'"chain_hash":"')
    yield _other_digit("final hash", lines, 1, chain_digit, 1, None)
    if not turns:
        return
    seed = f'"first_seed":{header["first_seed"]}'.encode()
    start = lines[0].index(seed) + len(b'"first_seed":')
    other_seed = str((header["first_seed"] + 1) % 2**53)
    yield Tampering("seed", 1, start, len(seed) - len(b'"first_seed":'), other_seed, None, first, 1)
    middle = len(turns) // 2
    line = lines[first + middle - 1]
    digit = line.index(b'"state_hash":"', line.index(b'"record":')) + len(b'"state_hash":"')
    yield _other_digit("state hash", lines, first + middle, digit, first + middle, middle + 1)
    text = line.index(b'"turn":', line.index(b'"record":')) + len(b'"turn":')
    spelling = Tampering("spelling", first + middle, text + len(str(middle + 1)), 0, ".0")
    yield replace(spelling, first_false_line=first + middle, first_false_turn=middle + 1)
    yield from _changed_numbers(lines, first, turns)
    if len(turns) > 1:
        last = first + len(turns) - 1
        swap = Tampering("order", last - 1, swap_with=last, first_false_line=last - 1)
        yield replace(swap, first_false_turn=len(turns) - 1)
        yield Tampering("missing turn", first, first_false_line=first, first_false_turn=1)
    prose = line.rfind(b'"narrative":"') + len(b'"narrative":"')
    if line[prose : prose + 1].isalpha():
        byte = "X" if line[prose : prose + 1] != b"X" else "Y"
        yield Tampering(
            "prose", first + middle, prose, 1, byte, None, len(lines) + 1, None, is_resealed=False
        )


def _changed_numbers(lines: Sequence[bytes], first: int, turns: Sequence[Json]) -> Iterator[Tampering]:
    """Yield a number of the last record that has one, and the same number of its event, each made another."""
    for index in reversed(range(len(turns))):
        line = lines[first + index - 1]
        record, digits = line.index(b'"record":'), len(b'"after":')
        found = (line.find(b'"after":', record), line.rfind(b'"after":', 0, record))
        if all(at >= 0 and line[at + digits : at + digits + 1].isdigit() for at in found):
            for name, at in zip(("number", "number of an event"), found, strict=True):
                yield _other_digit(name, lines, first + index, at + digits, first + index, index + 1)
            return


def _other_digit(
    name: str,
    lines: Sequence[bytes],
    line: int,
    at: int,
    false_line: int,
    false_turn: int | None,
) -> Tampering:
    """Return the replacement of a digit, which stays a digit and never becomes a leading zero."""
    digit = "1" if lines[line - 1][at : at + 1] != b"1" else "2"
    return Tampering(name, line, at, 1, digit, None, false_line, false_turn)
