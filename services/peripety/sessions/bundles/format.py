"""What a bundle is made of: lines of canonical JSON, in this order (docs/bundles.md).

A header, the specification, its certificate if there is one, a line for each turn, and a seal: the hash of
all bytes before it.
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
"""No line is longer: it is as much as the engine itself writes at once."""

_REFERENCE = re.compile(r'"#/\$defs/([^"]+)"')


@dataclass(frozen=True, slots=True)
class Header:
    """What a bundle says about its session.

    Attributes:
        scenario_id: the scenario, as it was called where the session was played.
        spec_hash: the version of it.
        certificate_hash: names its certificate, which is then in the bundle; None for none.
        first_seed: where the randomness came from at first: the chain of hashes begins with it.
        next_seed: another seed that the next turn begins under; None to go on under the same.
        turns: how many turns there are.
        chain_hash: the hash over all of them.
        table: the players, when there are several.
        narrator: how it is narrated.
        exported_by: the program that wrote the bundle.
        engine_version: version of what rules mean.
        rng_version: version of the random numbers.
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
    """A turn as a bundle holds it, whole.

    Attributes:
        record: the mechanics, parsed; the chain hash covers their canonical form.
        request_id: the request that played it.
        pov: whom it was narrated for; None for everyone.
        events: what was streamed.
        memories: what is remembered after it, of all entities; None for the same as before it.
    """

    record: Mapping[str, Any]
    request_id: str
    pov: str | None
    events: tuple[Event, ...]
    memories: tuple[Memory, ...] | None = None


class Seal:
    """The last line of a bundle: the hash of all bytes before it shows that none is missing or changed."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._lines = 0

    def over(self, line: bytes) -> None:
        """Take in the next line, with its end."""
        self._hash.update(line)
        self._lines += 1

    def line(self) -> bytes:
        """The last line, when all others have been taken in."""
        seal = {"kind": f"{KIND}.end", "lines": self._lines, "sha256": self._hash.hexdigest()}
        return sim.canonical(seal) + b"\n"


def header_fields(header: Header) -> dict[str, Any]:
    """A header as JSON values."""
    return {"kind": KIND, "version": VERSION, **encode(header)}


def header_of(value: Mapping[str, Any]) -> Header:
    """The header that `header_fields` wrote, once the schema holds."""
    return Header(**{f.name: _decoded(f.name, value[f.name]) for f in fields(Header)})


def turn_fields(turn: BundledTurn) -> dict[str, Any]:
    """A turn as JSON values."""
    return {name: value for name, value in encode(turn).items() if name != "memories" or value is not None}


def turn_of(value: Mapping[str, Any]) -> BundledTurn:
    """The turn that `turn_fields` wrote, once the schema holds."""
    return BundledTurn(
        record=value["record"],
        request_id=value["request_id"],
        pov=value["pov"],
        events=tuple(map(event_of, value["events"])),
        memories=_decoded("memories", value.get("memories")),
    )


@cache
def schema_of(part: str) -> Mapping[str, Any]:
    """The JSON Schema of a part, such as `header`, `turn` or `event.<kind>`, with what it refers to."""
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
