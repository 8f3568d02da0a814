"""Strict streaming reader of untrusted bundles: each line is read once and validated against the schema."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from peripety import sim
from peripety.errors import Finding, InvalidArgumentError, SpecError
from peripety.lines import next_line
from peripety.scenarios.certificates import document as certificates
from peripety.scenarios.certificates.model import ENGINE_VERSION
from peripety.sessions.bundles.defects import BundleError, Defect
from peripety.sessions.bundles.format import (
    KIND,
    MOST_LINE_BYTES,
    VERSION,
    Seal,
    header_of,
    schema_of,
    turn_of,
)
from peripety.sessions.events import Accepted, Committed
from peripety.sim.schema import check, pointer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from peripety.scenarios.certificates.model import Certificate
    from peripety.sessions.bundles.format import BundledTurn, Header
    from peripety.sim import Program

__all__ = ["Reader"]


class Reader:
    """Reader of a bundle: header, specification, certificate, turns and seal, in this order.

    Every method raises `BundleError` for a defect of the lines that it reads.

    Args:
        file: the bundle, at its beginning.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._seal = Seal()
        self.line = 0
        """Number of the last line read, from 1."""

    def header(self) -> Header:
        """Read the header."""
        try:
            value = self._value(self._next())
        except BundleError as error:
            raise BundleError([*error.defects, *self._not_ours()]) from None
        if not isinstance(value, dict) or value.get("kind") != KIND:
            raise BundleError(self._not_ours())
        ours = {"version": VERSION, "engine_version": ENGINE_VERSION, "rng_version": sim.RNG_VERSION}
        for name, known in ours.items():
            if name in value and value[name] != known:
                message = f"{name} is {value[name]}; this program supports {known}"
                raise self._refused("OTHER_VERSION", message, pointer([name]))
        self._hold_to("header", value)
        return header_of(value)

    def program(self, header: Header, compiled: Callable[[bytes], Program]) -> Program:
        """Read and compile the specification.

        Args:
            header: the header.
            compiled: compiles a canonical document or raises SpecError.
        """
        line = self._next()
        try:
            program = compiled(line)
        except SpecError as error:
            raise BundleError(Defect(self.line, finding) for finding in error.findings) from None
        self._same_hash("spec_hash", header.spec_hash, program.spec_hash)
        return program

    def certificate(self, header: Header) -> Certificate | None:
        """Read the certificate, if any. It must match the specification; its contents are not recomputed."""
        if header.certificate_hash is None:
            return None
        line = self._next()
        try:
            certificate = certificates.decode(line)
        except InvalidArgumentError as error:
            raise self._refused("CERTIFICATE_INVALID", error.message) from None
        self._same_hash("certificate_hash", header.certificate_hash, certificates.certificate_hash(line))
        self._same_hash("spec_hash", header.spec_hash, certificate.spec_hash)
        return certificate

    def turns(self, header: Header) -> Iterator[BundledTurn]:
        """Yield the turns, oldest first."""
        requests: set[str] = set()
        for turn in range(1, header.turns + 1):
            value = self._value(self._next())
            if isinstance(value, dict) and value.get("kind") == f"{KIND}.end":
                message = f"the bundle ends after {turn - 1} turns, but its header declares {header.turns}"
                raise self._refused("BUNDLE_TRUNCATED", message)
            self._hold_to("turn", value)
            if value["request_id"] in requests:
                raise self._refused("TURN_INVALID", "another turn has the same request_id", "/request_id")
            requests.add(value["request_id"])
            yield self._turn(value)

    def end(self) -> None:
        """Read the seal, and check that nothing is missing, changed or appended."""
        expected = self._seal.line()
        self.line += 1
        found = next_line(self._file, len(expected) + 1)
        if not found:
            raise self._truncated()
        if found != expected:
            message = f"the seal does not match the previous bytes; expected {expected.decode().strip()}"
            raise self._refused("BUNDLE_CHANGED", message)
        if next_line(self._file, 1):
            self.line += 1
            raise self._refused("BUNDLE_CHANGED", "the bundle has data after its seal")

    def _turn(self, value: Mapping[str, Any]) -> BundledTurn:
        for index, event in enumerate(value["events"]):
            self._hold_to(f"event.{event['kind']}", event, pointer(["events", index]))
        try:
            turn = turn_of(value)
        except (TypeError, KeyError, ValueError, AttributeError):
            raise self._refused(
                "TURN_INVALID", "an event has keys that its kind does not define", "/events"
            ) from None
        kinds = [type(event) for event in turn.events]
        if kinds[0] is not Accepted or kinds[-1] is not Committed:
            message = "the first event of a turn must be accepted, and the last one committed"
            raise self._refused("TURN_INVALID", message, "/events")
        if kinds.count(Accepted) != 1 or kinds.count(Committed) != 1:
            raise self._refused(
                "TURN_INVALID", "a turn must have exactly one accepted and one committed event", "/events"
            )
        return turn

    def _next(self) -> bytes:
        """Read the next line without its line feed."""
        self.line += 1
        line = next_line(self._file, MOST_LINE_BYTES + 1)
        if len(line) > MOST_LINE_BYTES:
            message = f"the line has more than {MOST_LINE_BYTES} bytes"
            raise self._refused("LINE_TOO_LONG", message)
        if not line.endswith(b"\n"):
            raise self._truncated()
        self._seal.over(line)
        return line[:-1]

    def _value(self, line: bytes) -> Any:
        try:
            return sim.parse_canonical(line)
        except SpecError as error:
            raise BundleError(Defect(self.line, finding) for finding in error.findings) from None

    def _hold_to(self, part: str, value: Any, place: str = "") -> None:
        """Validate a part against its schema."""
        findings = check(schema_of(part), value)
        if findings:
            raise BundleError(
                Defect(self.line, Finding(f.code, f"{place}{f.path}", f.message)) for f in findings
            )

    def _same_hash(self, name: str, told: str, computed: str) -> None:
        if told != computed:
            message = f"the header declares {name} {told}, but the document has {computed}"
            raise self._refused("OTHER_DOCUMENT", message)

    def _refused(self, code: str, message: str, path: str = "") -> BundleError:
        return BundleError([Defect(self.line, Finding(code, path, message))])

    def _not_ours(self) -> list[Defect]:
        message = f"the first line is not a header of kind {KIND}"
        return [Defect(self.line, Finding("NOT_A_BUNDLE", "", message))]

    def _truncated(self) -> BundleError:
        return self._refused("BUNDLE_TRUNCATED", "the file ends before the bundle does")
