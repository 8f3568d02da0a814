"""The engine: what scenarios mean.

Documents go through one strict JSON border, are checked (`validate`) and compiled (`compile`), or many of
them at once (`check_all`); a `Program` plays turns and dry-runs. Two cores implement it with the same
results, to the byte; `BACKEND` names the one that runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._backend import CORE
from peripety.sim._core import CoreError, Data, Rule
from peripety.sim._pure.canonical import canonical as _canonical
from peripety.sim._pure.paths import format_path
from peripety.sim._pure.paths import parse_path as _parse_path
from peripety.sim._pure.paths import split_variable as _split_variable
from peripety.sim._pure.rng import RNG_VERSION
from peripety.sim._pure.scope import Allowance, Scope
from peripety.sim._values import loads
from peripety.sim.documents import (
    compile,  # noqa: A004 - the engine's own word for it
    compile_canonical,
    load,
    parse,
    parse_canonical,
    validate,
)
from peripety.sim.policies.documents import compile_policy, decide, decide_many, validate_policy
from peripety.sim.policies.policy import Policy, Requests
from peripety.sim.policies.types import Decided, Decision, Matches, ToolRequest, Unevaluated
from peripety.sim.program import MAX_SEED, Program, State, engine_error, require
from peripety.sim.screening import Checked, check_all
from peripety.sim.transcript import chain, chain_start
from peripety.sim.types import (
    ABSENT,
    PERSONAS,
    ActionCall,
    ActionUse,
    ActResult,
    Change,
    Draw,
    DryRunReport,
    LogLine,
    Persona,
    Proof,
    ProofCode,
    RollResult,
    RuleError,
    RunDetail,
    Status,
    StepResult,
)
from peripety.sim.visibility import View, Visibility

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.errors import PeripetyError

__all__ = [
    "ABSENT",
    "BACKEND",
    "BACKEND_VERSION",
    "MAX_SEED",
    "PERSONAS",
    "RNG_VERSION",
    "ActResult",
    "ActionCall",
    "ActionUse",
    "Allowance",
    "Change",
    "Checked",
    "Data",
    "Decided",
    "Decision",
    "Draw",
    "DryRunReport",
    "LogLine",
    "Matches",
    "Persona",
    "Policy",
    "Program",
    "Proof",
    "ProofCode",
    "Requests",
    "RollResult",
    "Rule",
    "RuleError",
    "RunDetail",
    "State",
    "Status",
    "StepResult",
    "ToolRequest",
    "Unevaluated",
    "View",
    "Visibility",
    "canonical",
    "chain",
    "chain_start",
    "check_all",
    "compile",
    "compile_canonical",
    "compile_policy",
    "data",
    "decide",
    "decide_many",
    "draw",
    "evaluate",
    "format_path",
    "load",
    "loads",
    "narrator_scope",
    "parse",
    "parse_canonical",
    "parse_path",
    "rule",
    "validate",
    "validate_policy",
    "variable_path",
]

BACKEND = CORE.name
BACKEND_VERSION = CORE.version


def canonical(value: Any) -> bytes:
    """The canonical JSON (RFC 8785) of a value.

    Raises:
        InvalidArgumentError: the value is not JSON, or not within the engine's numbers.
    """
    try:
        return _canonical(value)
    except CoreError as error:
        raise engine_error(error) from None


def parse_path(text: str) -> tuple[str | int, ...]:
    """The segments of a path such as `state.a[2]`, its root included.

    Raises:
        InvalidArgumentError: `BAD_PATH`.
    """
    try:
        return _parse_path(text)
    except CoreError as error:
        raise engine_error(error) from None


def variable_path(name: str) -> str:
    """A variable of a condition as a path of effects: `state.a["2"]` for `state.a.2`; "" for all there is."""
    segments = _split_variable(name)
    return format_path(segments) if segments else ""


def narrator_scope(spec: Mapping[str, Any]) -> tuple[Allowance, ...]:
    """What the narrator may change by itself: what a valid scenario grants, or else what its rules do."""
    return Scope(dict(spec)).allowances()


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
