"""Bundle format: lines of canonical JSON, with a streaming reader and writer.

docs/reference/bundle-format.md defines the format. A bundle contains, in this order, a header, the
specification, its certificate if it has one, a line per turn, and a seal: the hash of all previous bytes.
It can be verified independently.

Bundles are untrusted: the reader reads each line once, validates it against the schema, and reports defects
with line numbers. The writer writes one line at a time, so that no bundle is held in memory.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import resources
from typing import IO, TYPE_CHECKING, Any

from peripety import engine
from peripety.certification import types as certificates
from peripety.certification.types import ENGINE_VERSION
from peripety.core.text_files import read_bounded_line
from peripety.engine.schema_validation import format_pointer, validate_against_schema
from peripety.errors import FieldViolation, Finding, InvalidArgumentError, SpecError
from peripety.session.events import Accepted, Committed, decode_event, decode_member, encode_value
from peripety.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from peripety.certification.types import Certificate
    from peripety.engine import Program
    from peripety.session.events import Event
    from peripety.session.types import NarratorMemory, NarratorOptions, SeatConfig


@dataclass(frozen=True, slots=True)
class BundleIssue:
    """A defect of a bundle.

    Attributes:
        line: the line, from 1.
        finding: the problem; its path is a JSON Pointer into that line.
    """

    line: int
    finding: Finding

    @property
    def to_violation(self) -> FieldViolation:
        """The defect as a field violation, for a call that fails because of the bundle."""
        violation = self.finding.violation
        return replace(
            violation,
            field=f"line {self.line}{'' if violation.field == '/' else violation.field}",
        )


class BundleError(InvalidArgumentError):
    """A rejected bundle, with the reasons in line order."""

    default_code = "BUNDLE_INVALID"

    def __init__(self, issues: Iterable[BundleIssue]) -> None:
        self.issues = tuple(issues)
        first = self.issues[0]
        super().__init__(
            f"bundle is invalid: line {first.line}: {first.finding.message}",
            violations=[defect.to_violation for defect in self.issues],
        )


KIND = "peripety.session"
VERSION = 1
MAX_LINE_BYTES = 1 << 26
"""Maximum length of a line: the engine itself writes no longer document."""

_REFERENCE = re.compile(r'"#/\$defs/([^"]+)"')


@dataclass(frozen=True, slots=True)
class BundleHeader:
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
    table: SeatConfig | None
    narrator: NarratorOptions
    exported_by: str = f"peripety {__version__}"
    engine_version: str = ENGINE_VERSION
    rng_version: int = engine.RNG_VERSION


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
    memories: tuple[NarratorMemory, ...] | None = None


class BundleSeal:
    """Last line of a bundle: the hash of all previous bytes, which detects missing and changed lines."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._lines = 0

    def update(self, line: bytes) -> None:
        """Add the next line, including its line feed."""
        self._hash.update(line)
        self._lines += 1

    def to_line(self) -> bytes:
        """Return the seal over all lines added so far."""
        seal = {"kind": f"{KIND}.end", "lines": self._lines, "sha256": self._hash.hexdigest()}
        return engine.canonicalize(seal) + b"\n"


def header_to_json(header: BundleHeader) -> dict[str, Any]:
    """Convert a header to JSON values."""
    return {"kind": KIND, "version": VERSION, **encode_value(header)}


def header_from_json(value: Mapping[str, Any]) -> BundleHeader:
    """Convert JSON values that match the schema to a header."""
    return BundleHeader(**{f.name: _decode_member(f.name, value[f.name]) for f in fields(BundleHeader)})


def turn_to_json(turn: BundledTurn) -> dict[str, Any]:
    """Convert a turn to JSON values."""
    return {
        name: value for name, value in encode_value(turn).items() if name != "memories" or value is not None
    }


def turn_from_json(value: Mapping[str, Any]) -> BundledTurn:
    """Convert JSON values that match the schema to a turn."""
    return BundledTurn(
        record=value["record"],
        request_id=value["request_id"],
        pov=value["pov"],
        events=tuple(map(decode_event, value["events"])),
        memories=_decode_member("memories", value.get("memories")),
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


def _decode_member(name: str, value: Any) -> Any:
    return None if value is None else decode_member(name, value)


class BundleReader:
    """Reader of a bundle: header, specification, certificate, turns and seal, in this order.

    Every method raises `BundleError` for a defect of the lines that it reads.

    Args:
        file: the bundle, at its beginning.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._seal = BundleSeal()
        self.line = 0
        """Number of the last line read, from 1."""

    def header(self) -> BundleHeader:
        """Read the header."""
        try:
            value = self._parse_line(self._next_line())
        except BundleError as error:
            raise BundleError([*error.issues, *self._not_a_bundle()]) from None
        if not isinstance(value, dict) or value.get("kind") != KIND:
            raise BundleError(self._not_a_bundle())
        ours = {"version": VERSION, "engine_version": ENGINE_VERSION, "rng_version": engine.RNG_VERSION}
        for name, known in ours.items():
            if name in value and value[name] != known:
                message = f"{name} is {value[name]}; this program supports {known}"
                raise self._error("OTHER_VERSION", message, format_pointer([name]))
        self._validate("header", value)
        return header_from_json(value)

    def program(self, header: BundleHeader, compile_spec: Callable[[bytes], Program]) -> Program:
        """Read and compile the specification.

        Args:
            header: the header.
            compile_spec: compiles a canonical document or raises SpecError.
        """
        line = self._next_line()
        try:
            program = compile_spec(line)
        except SpecError as error:
            raise BundleError(BundleIssue(self.line, finding) for finding in error.findings) from None
        self._check_hash("spec_hash", header.spec_hash, program.spec_hash)
        return program

    def certificate(self, header: BundleHeader) -> Certificate | None:
        """Read the certificate, if any. It must match the specification; its contents are not recomputed."""
        if header.certificate_hash is None:
            return None
        line = self._next_line()
        try:
            certificate = certificates.decode(line)
        except InvalidArgumentError as error:
            raise self._error("CERTIFICATE_INVALID", error.message) from None
        self._check_hash("certificate_hash", header.certificate_hash, certificates.certificate_hash(line))
        self._check_hash("spec_hash", header.spec_hash, certificate.spec_hash)
        return certificate

    def turns(self, header: BundleHeader) -> Iterator[BundledTurn]:
        """Yield the turns, oldest first."""
        requests: set[str] = set()
        for turn in range(1, header.turns + 1):
            value = self._parse_line(self._next_line())
            if isinstance(value, dict) and value.get("kind") == f"{KIND}.end":
                message = f"the bundle ends after {turn - 1} turns, but its header declares {header.turns}"
                raise self._error("BUNDLE_TRUNCATED", message)
            self._validate("turn", value)
            if value["request_id"] in requests:
                raise self._error("TURN_INVALID", "another turn has the same request_id", "/request_id")
            requests.add(value["request_id"])
            yield self._turn(value)

    def end(self) -> None:
        """Read the seal, and check that nothing is missing, changed or appended."""
        expected = self._seal.to_line()
        self.line += 1
        found = read_bounded_line(self._file, len(expected) + 1)
        if not found:
            raise self._truncated_error()
        if found != expected:
            message = f"the seal does not match the previous bytes; expected {expected.decode().strip()}"
            raise self._error("BUNDLE_CHANGED", message)
        if read_bounded_line(self._file, 1):
            self.line += 1
            raise self._error("BUNDLE_CHANGED", "the bundle has data after its seal")

    def _turn(self, value: Mapping[str, Any]) -> BundledTurn:
        for index, event in enumerate(value["events"]):
            self._validate(f"event.{event['kind']}", event, format_pointer(["events", index]))
        try:
            turn = turn_from_json(value)
        except (TypeError, KeyError, ValueError, AttributeError):
            raise self._error(
                "TURN_INVALID",
                "an event has keys that its kind does not define",
                "/events",
            ) from None
        kinds = [type(event) for event in turn.events]
        if kinds[0] is not Accepted or kinds[-1] is not Committed:
            message = "the first event of a turn must be accepted, and the last one committed"
            raise self._error("TURN_INVALID", message, "/events")
        if kinds.count(Accepted) != 1 or kinds.count(Committed) != 1:
            raise self._error(
                "TURN_INVALID",
                "a turn must have exactly one accepted and one committed event",
                "/events",
            )
        return turn

    def _next_line(self) -> bytes:
        """Read the next line without its line feed."""
        self.line += 1
        line = read_bounded_line(self._file, MAX_LINE_BYTES + 1)
        if len(line) > MAX_LINE_BYTES:
            message = f"the line has more than {MAX_LINE_BYTES} bytes"
            raise self._error("LINE_TOO_LONG", message)
        if not line.endswith(b"\n"):
            raise self._truncated_error()
        self._seal.update(line)
        return line[:-1]

    def _parse_line(self, line: bytes) -> Any:
        try:
            return engine.parse_canonical(line)
        except SpecError as error:
            raise BundleError(BundleIssue(self.line, finding) for finding in error.findings) from None

    def _validate(self, part: str, value: Any, prefix: str = "") -> None:
        """Validate a part against its schema."""
        findings = validate_against_schema(schema_of(part), value)
        if findings:
            raise BundleError(
                BundleIssue(self.line, Finding(f.code, f"{prefix}{f.path}", f.message)) for f in findings
            )

    def _check_hash(self, name: str, declared: str, computed: str) -> None:
        if declared != computed:
            message = f"the header declares {name} {declared}, but the document has {computed}"
            raise self._error("OTHER_DOCUMENT", message)

    def _error(self, code: str, message: str, path: str = "") -> BundleError:
        return BundleError([BundleIssue(self.line, Finding(code, path, message))])

    def _not_a_bundle(self) -> list[BundleIssue]:
        message = f"the first line is not a header of kind {KIND}"
        return [BundleIssue(self.line, Finding("NOT_A_BUNDLE", "", message))]

    def _truncated_error(self) -> BundleError:
        return self._error("BUNDLE_TRUNCATED", "the file ends before the bundle does")


class BundleWriter:
    """Encoder of the lines of one bundle; its methods must be called in this order."""

    def __init__(self) -> None:
        self._seal = BundleSeal()

    def header(self, header: BundleHeader) -> bytes:
        """Return the first line."""
        return self._line(engine.canonicalize(header_to_json(header)))

    def document(self, document: bytes) -> bytes:
        """Return the line of the specification or of its certificate, both in canonical form."""
        return self._line(document)

    def turn(self, turn: BundledTurn) -> bytes:
        """Return the line of the next turn."""
        return self._line(engine.canonicalize(turn_to_json(turn)))

    def end(self) -> bytes:
        """Return the last line."""
        return self._seal.to_line()

    def _line(self, text: bytes) -> bytes:
        line = text + b"\n"
        self._seal.update(line)
        return line
