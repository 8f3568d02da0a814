"""Verification of an exported session, without a server and without an engine; standard library only.

    verify_transcript("session.jsonl", chain_hash=session.chain_hash)

It proves that the turns are those that led to the chain hash. If you do not trust the file, pass a chain hash
from a trusted source. Only a replay proves that the rules were followed: `ImportSession`, `peripety replay`.
"""

from __future__ import annotations

import hashlib
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_HEADER = {"kind": "peripety.session", "version": 1, "engine_version": "1.0", "rng_version": 1}
_TYPES = {"chain_hash": str, "first_seed": float, "spec_hash": str, "turns": float}


class Transcript(NamedTuple):
    """A verified session.

    Attributes:
        turns: number of turns.
        chain_hash: the chain hash after the last turn.
        state_hash: hash of the state after the last turn; None without turns.
    """

    turns: int
    chain_hash: str
    state_hash: str | None


class TranscriptError(ValueError):
    """The first defect of a transcript.

    Attributes:
        line: the line, from 1.
        turn: its turn; None if the line is not a turn.
    """

    def __init__(self, line: int, problem: str, turn: int | None = None) -> None:
        super().__init__(f"line {line}{'' if turn is None else f', turn {turn}'}: {problem}")
        self.line = line
        self.turn = turn


def verify_transcript(bundle: str | Path | Iterable[bytes], *, chain_hash: str | None = None) -> Transcript:
    """Verify an exported session.

    Args:
        bundle: the file, or its lines, each with its line feed.
        chain_hash: the chain hash that the session must have; None to accept that of the bundle.

    Raises:
        TranscriptError: the bundle is false; the error names the first false line.
        OSError: the file cannot be read.
    """
    if isinstance(bundle, str | Path):
        with Path(bundle).open("rb") as file:
            return _verify(iter(file), chain_hash)
    return _verify(iter(bundle), chain_hash)


def _verify(source: Iterator[bytes], expected: str | None) -> Transcript:
    lines = _Lines(source)
    header = _read_header(lines)
    for key in ("spec_hash", "certificate_hash"):
        if header.get(key) is not None:
            lines.next_value()
            if lines.hash_of_line() != header[key]:
                lines.fail(f"SHA-256 of the line is not {key} of the header")
    chain = _hash(canonical_json({"seed": header["first_seed"], "spec_hash": header["spec_hash"]}))
    turn, state_hash = 0, None
    while not lines.is_before_last():
        turn += 1
        chain, state_hash = _verify_turn(lines, turn, chain)
        if turn > header["turns"]:
            lines.fail(f"the header declares {header['turns']:g} turns", turn)
    if turn != header["turns"]:
        raise TranscriptError(lines.number + 1, f"a turn is missing; the header declares {header['turns']:g}")
    if {header["chain_hash"], expected or chain} != {chain}:
        raise TranscriptError(1, f"chain_hash: computed {chain}, which is not the expected one")
    lines.verify_seal()
    return Transcript(turn, chain, state_hash)


def _read_header(lines: _Lines) -> dict[str, Any]:
    header = lines.next_value()
    for key, value in _HEADER.items():
        if header.get(key) != value:
            lines.fail(f"{key}: {header.get(key)!r} is not supported; expected {value!r}")
    if not all(isinstance(header.get(key), kind) for key, kind in _TYPES.items()):
        lines.fail("a key of the header is missing or has another type")
    return header


def _verify_turn(lines: _Lines, turn: int, chain: str) -> tuple[str, str]:
    """Return the chain hash and the state hash after a turn."""
    value = lines.next_value(turn)
    try:
        record, end = value["record"], value["events"][-1]
        is_turn = record["turn"] == turn and end["kind"] == "committed"
        chain = _hash(bytes.fromhex(chain) + canonical_json(record))
        differing = [key for key in ("changes", "state_hash", "status") if end[key] != record[key]]
        claimed = end["chain_hash"]
    except (KeyError, IndexError, TypeError):
        lines.fail("the line is not a turn", turn)
    if not is_turn:
        lines.fail(f"the line is not turn {turn} up to its committed event", turn)
    if claimed != chain:
        lines.fail(f"chain_hash: computed {chain}", turn)
    if differing:
        lines.fail(f"{differing[0]} of the committed event differs from the record", turn)
    return chain, str(record["state_hash"])


class _Lines:
    """Lines of a bundle, read one at a time, and the hash of all lines read."""

    def __init__(self, source: Iterator[bytes]) -> None:
        self._source = source
        self._hash = hashlib.sha256()
        self._line, self._next, self._after = b"", next(source, b""), next(source, b"")
        self.number = 0

    def is_before_last(self) -> bool:
        """Return True if at most one line is left."""
        return not self._after

    def next_value(self, turn: int | None = None) -> dict[str, Any]:
        """Return the next line as a JSON object, if it is in canonical form."""
        self._line, self._next, self._after = self._next, self._after, next(self._source, b"")
        self.number += 1
        self._hash.update(self._line)
        try:
            value = json.loads(self._line, parse_int=float, parse_constant=_refuse_constant)
            is_canonical = isinstance(value, dict) and canonical_json(value) + b"\n" == self._line
        except (ValueError, RecursionError):
            self.fail("the line is not JSON", turn)
        if not is_canonical:
            self.fail("the line is not an object in canonical form", turn)
        return value  # type: ignore[no-any-return]

    def hash_of_line(self) -> str:
        """Return the SHA-256 of the current line without its line feed."""
        return _hash(self._line.removesuffix(b"\n"))

    def verify_seal(self) -> None:
        """Compare the last line with the hash of all lines before it."""
        seal = {"kind": f"{_HEADER['kind']}.end", "lines": self.number, "sha256": self._hash.hexdigest()}
        if self._next != canonical_json(seal) + b"\n":
            raise TranscriptError(self.number + 1, "the last line is not the hash of the lines before it")

    def fail(self, problem: str, turn: int | None = None) -> NoReturn:
        """Raise the error of the current line."""
        raise TranscriptError(self.number, problem, turn)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def canonical_json(value: Any) -> bytes:
    """Return the canonical form of a JSON value (RFC 8785).

    Raises:
        ValueError: the value has a number that is not finite, or a lone surrogate.
    """
    return _text(value).encode()


def _text(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{_text(name)}:{_text(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return _number(float(value))


def _number(value: float) -> str:
    """Return a number as ECMAScript writes it."""
    if not math.isfinite(value):
        raise ValueError("number is not finite")
    if value == 0:
        return "0"
    _, digits, exponent = Decimal(repr(abs(value))).normalize().as_tuple()
    written, point = "".join(map(str, digits)), len(digits) + int(exponent)
    sign = "-" if value < 0 else ""
    if 0 < point <= 21:  # noqa: PLR2004 - the limits of ECMAScript, as below
        whole = written[:point].ljust(point, "0")
        return f"{sign}{whole}.{written[point:]}" if written[point:] else sign + whole
    if -6 < point <= 0:  # noqa: PLR2004
        return f"{sign}0.{'0' * -point}{written}"
    mantissa = f"{written[0]}.{written[1:]}" if written[1:] else written
    return f"{sign}{mantissa}e{point - 1:+d}"
