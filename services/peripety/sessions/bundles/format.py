"""Bundle format: lines of canonical JSON (docs/bundles.md).

A bundle contains, in this order, a header, the specification, its certificate if it has one, a line per turn,
and a seal: the hash of all previous bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from peripety import __version__, sim
from peripety.scenarios.certificates.model import ENGINE_VERSION
from peripety.sessions.events import decode, encode, event_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.sessions.events import Event
    from peripety.sessions.model import Memory, NarratorOptions, Table

__all__ = [
    "KIND",
    "MOST_LINE_BYTES",
    "VERSION",
    "BundledTurn",
    "Header",
    "Seal",
    "header_fields",
    "header_of",
    "schema_of",
    "turn_fields",
    "turn_of",
]

KIND = "peripety.session"
VERSION = 1
MOST_LINE_BYTES = 1 << 26
"""Maximum length of a line: the engine itself writes no longer document."""

_REFERENCE = re.compile(r'"#/\$defs/([^"]+)"')


@dataclass(frozen=True, slots=True)
class Header:
    """Header of a bundle: metadata of its session.

    Attributes:
        scenario_id: id of the scenario on the server where the session was played.
        spec_hash: version of the scenario.
        certificate_hash: hash of the certificate in the bundle; None if it has none.
        first_seed: initial seed, with which the hash chain begins.
        next_seed: seed from the next turn on; None if unchanged.
        turns: number of turns.
        chain_hash: hash over all turns.
        table: seats of several players, if any.
        narrator: narrator options.
        exported_by: program that wrote the bundle.
        engine_version: version of the rule semantics.
        rng_version: version of the random number generator.
    """

    scenario_id: str
    spec_hash: str
    certificate_hash: str | None
    first_seed: int
    next_seed: int | None
    turns: int
    chain_hash: str
    table: Table | None
    narrator: NarratorOptions
    exported_by: str = f"peripety {__version__}"
    engine_version: str = ENGINE_VERSION
    rng_version: int = sim.RNG_VERSION


@dataclass(frozen=True, slots=True)
class BundledTurn:
    """A complete turn of a bundle.

    Attributes:
        record: the parsed record; the chain hash covers its canonical form.
        request_id: the request that played the turn.
        pov: the entity it was narrated for; None for everyone.
        events: the streamed events.
        memories: all memories after the turn; None if unchanged.
    """

    record: Mapping[str, Any]
    request_id: str
    pov: str | None
    events: tuple[Event, ...]
    memories: tuple[Memory, ...] | None = None


class Seal:
    """Last line of a bundle: the hash of all previous bytes, which detects missing and changed lines."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._lines = 0

    def over(self, line: bytes) -> None:
        """Add the next line, including its line feed."""
        self._hash.update(line)
        self._lines += 1

    def line(self) -> bytes:
        """Return the seal over all lines added so far."""
        seal = {"kind": f"{KIND}.end", "lines": self._lines, "sha256": self._hash.hexdigest()}
        return sim.canonical(seal) + b"\n"


def header_fields(header: Header) -> dict[str, Any]:
    """Convert a header to JSON values."""
    return {"kind": KIND, "version": VERSION, **encode(header)}


def header_of(value: Mapping[str, Any]) -> Header:
    """Convert JSON values that match the schema to a header."""
    return Header(**{f.name: _decoded(f.name, value[f.name]) for f in fields(Header)})


def turn_fields(turn: BundledTurn) -> dict[str, Any]:
    """Convert a turn to JSON values."""
    return {name: value for name, value in encode(turn).items() if name != "memories" or value is not None}


def turn_of(value: Mapping[str, Any]) -> BundledTurn:
    """Convert JSON values that match the schema to a turn."""
    return BundledTurn(
        record=value["record"],
        request_id=value["request_id"],
        pov=value["pov"],
        events=tuple(map(event_of, value["events"])),
        memories=_decoded("memories", value.get("memories")),
    )


@cache
def schema_of(part: str) -> Mapping[str, Any]:
    """Return the JSON Schema of a part, such as `header`, `turn` or `event.<kind>`, with its references."""
    text = resources.files(__package__).joinpath("bundle.schema.json").read_text("utf-8")
    parts: dict[str, Any] = json.loads(text)["$defs"]
    wanted, referred = [part], set[str]()
    while wanted:
        names = set(_REFERENCE.findall(json.dumps(parts[wanted.pop()]))) - referred
        wanted.extend(names)
        referred |= names
    return {**parts[part], "$defs": {name: parts[name] for name in sorted(referred)}}


def _decoded(name: str, value: Any) -> Any:
    return None if value is None else decode(name, value)
