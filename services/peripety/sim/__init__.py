"""The engine: what scenarios mean.

Documents go through one strict JSON border, are checked (`validate`) and compiled (`compile`); a `Program`
plays turns and dry-runs. Two cores implement it with the same results, to the byte; `BACKEND` names the one
that runs.
"""

from __future__ import annotations

from typing import Any

from peripety.errors import Finding, InternalError, PeripetyError, Severity, SpecError
from peripety.sim._backend import CORE
from peripety.sim._core import CoreError, Data, Rule
from peripety.sim._pure.canonical import canonical as _canonical
from peripety.sim._pure.paths import parse_path as _parse_path
from peripety.sim._pure.rng import RNG_VERSION
from peripety.sim._values import loads
from peripety.sim.checks import check_spec
from peripety.sim.program import MAX_SEED, Program, State, engine_error, require
from peripety.sim.schema import check
from peripety.sim.schemas import SCENARIO_SPEC, schema_document
from peripety.sim.transcript import chain, chain_start
from peripety.sim.types import (
    ABSENT,
    PERSONAS,
    ActionUse,
    ActResult,
    Change,
    Draw,
    DryRunReport,
    LogLine,
    Persona,
    RollResult,
    RuleError,
    RunDetail,
    Status,
    StepResult,
)
from peripety.sim.visibility import View, Visibility

__all__ = [
    "ABSENT",
    "BACKEND",
    "BACKEND_VERSION",
    "PERSONAS",
    "RNG_VERSION",
    "ActResult",
    "ActionUse",
    "Change",
    "Data",
    "Draw",
    "DryRunReport",
    "LogLine",
    "Persona",
    "Program",
    "RollResult",
    "Rule",
    "RuleError",
    "RunDetail",
    "State",
    "Status",
    "StepResult",
    "View",
    "Visibility",
    "canonical",
    "chain",
    "chain_start",
    "compile",
    "data",
    "draw",
    "evaluate",
    "load",
    "parse",
    "parse_path",
    "rule",
    "validate",
]

BACKEND = CORE.name
BACKEND_VERSION = CORE.version


def parse(document: bytes | str) -> Any:
    """Parse JSON through the strict border.

    Raises:
        SpecError: with one finding that says what is wrong and where.
    """
    return loads(_parse(document))


def _parse(document: bytes | str) -> bytes:
    try:
        return CORE.parse(_bytes(document))
    except CoreError as error:
        raise SpecError(
            f"the document is not acceptable JSON: {error.message}",
            [Finding(error.code, "", error.message)],
            code=error.code,
        ) from None


def _bytes(document: bytes | str) -> bytes:
    # A lone surrogate in a str becomes bytes that are not UTF-8, which the border then names.
    return document.encode("utf-8", "surrogatepass") if isinstance(document, str) else document


def canonical(value: Any) -> bytes:
    """The canonical JSON (RFC 8785) of a value.

    Raises:
        InvalidArgumentError: the value is not JSON, or not within the engine's numbers.
    """
    try:
        return _canonical(value)
    except CoreError as error:
        raise engine_error(error) from None


def validate(document: bytes | str) -> list[Finding]:
    """Everything wrong with a scenario document; one without errors can be compiled.

    The border, the JSON Schema and the static checks, each only when the one before found no error.
    """
    try:
        spec = parse(document)
    except SpecError as error:
        return list(error.findings)
    return _findings(spec)


def _findings(spec: Any) -> list[Finding]:
    return check(schema_document(SCENARIO_SPEC), spec) or check_spec(spec)


def compile(document: bytes | str) -> Program:  # noqa: A001 - the engine's own word for it
    """Compile a scenario document.

    Raises:
        SpecError: with the findings of `validate`.
    """
    canonical_document = _parse(document)
    errors = [
        finding for finding in _findings(loads(canonical_document)) if finding.severity is Severity.ERROR
    ]
    if errors:
        raise SpecError(f"the scenario has {len(errors)} error(s); the first: {errors[0].message}", errors)
    return load(canonical_document)


def load(document: bytes) -> Program:
    """Compile what the engine itself wrote: `Program.document`, or a validated scenario in canonical form.

    Nothing is checked again, and the long integers that canonical form makes of large numbers are understood.

    Raises:
        InternalError: the document is no such thing.
    """
    try:
        return Program(document, CORE.compile(document))
    except CoreError as error:
        raise InternalError(f"a valid scenario did not compile: {error.message}", code=error.code) from error


def parse_path(text: str) -> tuple[str | int, ...]:
    """The segments of a path such as `state.a[2]`, its root included.

    Raises:
        InvalidArgumentError: `BAD_PATH`.
    """
    try:
        return _parse_path(text)
    except CoreError as error:
        raise engine_error(error) from None


def rule(logic: Any) -> Rule:
    """Compile a JSONLogic expression.

    Args:
        logic: JSON as Python objects, or as the text in a `bytes`. What is wrong with the expression itself
            is an error only when, and if, that part is evaluated.

    Raises:
        PeripetyError: it is not JSON, or not within the limits of a document: `NOT_JSON`, `TOO_DEEP`, ….
    """
    return CORE.rule(logic, _refusal)


def data(value: Any) -> Data:
    """Data for rules, parsed once.

    Args:
        value: JSON as Python objects, or as the text in a `bytes`.

    Raises:
        PeripetyError: it is not JSON, or not within the limits of a document: `NOT_JSON`, `TOO_DEEP`, ….
    """
    return CORE.data(value, _refusal)


def _refusal(code: str, message: str, path: str) -> PeripetyError:
    return engine_error(CoreError(code, message, path))


def evaluate(logic: Any, data: Any = None) -> Any:
    """The value of a JSONLogic expression over data.

    For one use. To evaluate an expression often, keep the `rule`; to read the same data often, the `data`.

    Raises:
        PeripetyError: as `rule`, `data` and `Rule.evaluate`.
    """
    return rule(logic).evaluate(data)


def draw(seed: int, stream: str, turn: int, index: int) -> int:
    """One keyed draw: an unsigned 64-bit integer that depends on nothing but its arguments.

    Raises:
        InvalidArgumentError: a number is not an unsigned 64-bit integer itself.
    """
    for name, value in (("seed", seed), ("turn", turn), ("index", index)):
        require(name, value, 0, MAX_SEED)
    return CORE.draw(seed, stream, turn, index)
