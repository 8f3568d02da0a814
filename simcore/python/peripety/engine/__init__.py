"""Public API of the scenario engine.

The engine defines the meaning of scenarios; docs/reference/semantics.md specifies it. A document passes one
strict JSON parser, then the JSON Schema and the static checks (`validate`), and is compiled (`compile`).
`validate_many` validates many documents at once. A `Program` plays turns and dry-runs, and proves claims
about all runs.

Two backends implement the engine: one in Rust (`peripety_simcore`) and the reference in plain Python. Both
give the same results to the byte: canonical JSON of states, changes and reports, and the same error codes
and messages. `BACKEND` is the name of the active one. The reference exists for machines without the
extension, and as an independent implementation: the conformance suite runs both on the same golden vectors,
and a divergence is a bug of one of them.

Invariants:

- Documents, states and results cross the border between this package and a backend as bytes (canonical
  JSON). A hash of these bytes identifies them on every machine.
- A run depends on the document, the seed and the calls only. Nothing reads a clock, a global random state,
  or a set in hash order.
- Randomness is counter-based and keyed (`draw`): a value depends on the seed, the name of the stream, the
  turn and the index. New randomness in one rule does not move the numbers of another.
- All work is bounded: sizes of documents and states, fuel of an expression, effects of a turn, turns of a
  run.

Rejected: `google.protobuf.Struct` or messages for documents (numbers would lose digits, duplicate keys
would vanish, and there would be a second parser with other limits), and the random generators of libraries
(they change with their versions). docs/explanation/decisions 2, 6 and 7 have the details.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.engine._backend import ACTIVE_BACKEND
from peripety.engine._reference.narrator_scope import NarratorPermission, NarratorPermissions
from peripety.engine._reference.variants import expand_action
from peripety.engine.backend_protocol import CompiledRule, EngineError, RuleData
from peripety.engine.canonical_json import canonicalize as _canonical
from peripety.engine.documents import (
    ValidationResult,
    compile,  # noqa: A004 - the engine's own verb
    compile_canonical,
    compile_trusted,
    parse,
    parse_canonical,
    parse_scenario,
    validate,
    validate_many,
)
from peripety.engine.json_values import extend_hash_chain, loads, start_hash_chain
from peripety.engine.lowering import deal_epilogue, lower, read_epilogue
from peripety.engine.paths import are_related, format_path, list_read_paths, variable_to_path
from peripety.engine.paths import parse_path as _parse_path
from peripety.engine.policies.policy import (
    Policy,
    PreparedRequests,
    compile_policy,
    decide,
    decide_many,
    validate_policy,
)
from peripety.engine.policies.types import ConditionError, Decision, DecisionResult, RuleMatches, ToolRequest
from peripety.engine.program import MAX_SEED, Program, State, require_integer, to_peripety_error
from peripety.engine.rng import RNG_VERSION
from peripety.engine.types import (
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
from peripety.engine.visibility import View, Visibility

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
    "Change",
    "CompiledRule",
    "ConditionError",
    "Decision",
    "DecisionResult",
    "Draw",
    "DryRunReport",
    "LogLine",
    "NarratorPermission",
    "Persona",
    "Policy",
    "PreparedRequests",
    "Program",
    "Proof",
    "ProofCode",
    "RollResult",
    "RuleData",
    "RuleError",
    "RuleMatches",
    "RunDetail",
    "State",
    "Status",
    "StepResult",
    "ToolRequest",
    "ValidationResult",
    "View",
    "Visibility",
    "are_related",
    "canonicalize",
    "compile",
    "compile_canonical",
    "compile_policy",
    "compile_rule",
    "compile_trusted",
    "deal_epilogue",
    "decide",
    "decide_many",
    "draw",
    "evaluate",
    "extend_hash_chain",
    "format_path",
    "list_narrator_permissions",
    "list_read_paths",
    "list_variants",
    "loads",
    "parse",
    "parse_canonical",
    "parse_data",
    "parse_path",
    "parse_scenario",
    "read_epilogue",
    "start_hash_chain",
    "validate",
    "validate_many",
    "validate_policy",
    "variable_to_path",
]


BACKEND = ACTIVE_BACKEND.name
BACKEND_VERSION = ACTIVE_BACKEND.version


def canonicalize(value: Any) -> bytes:
    """Return the canonical JSON (RFC 8785) of a value.

    Raises:
        InvalidArgumentError: the value is not JSON, or a number is outside the engine's range.
    """
    try:
        return _canonical(value)
    except EngineError as error:
        raise to_peripety_error(error) from None


def parse_path(text: str) -> tuple[str | int, ...]:
    """Parse a path such as `state.a[2]` into its segments, including the root.

    Raises:
        InvalidArgumentError: `BAD_PATH`.
    """
    try:
        return _parse_path(text)
    except EngineError as error:
        raise to_peripety_error(error) from None


def list_variants(rule: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return an action for each value of the parameters in its paths; other rules as they are."""
    if not rule.get("params"):
        return [dict(rule)]
    return [variant.action for variant in expand_action(dict(rule))] or [dict(rule)]


def list_narrator_permissions(spec: Mapping[str, Any]) -> tuple[NarratorPermission, ...]:
    """Return the changes that the narrator may make by itself.

    The scenario's `narrator_scope` defines them; without it, they are derived from the rules. The spec must
    be valid.
    """
    return NarratorPermissions(lower(spec).spec).list_permissions()


def compile_rule(logic: Any) -> CompiledRule:
    """Compile a JSONLogic expression.

    Args:
        logic: JSON as Python objects, or as the text in a `bytes`. An invalid part of the expression is an
            error only if it is evaluated.

    Raises:
        PeripetyError: not JSON, or over a limit of documents: `NOT_JSON`, `TOO_DEEP`, ….
    """
    return ACTIVE_BACKEND.compile_rule(logic, _to_engine_error)


def parse_data(value: Any) -> RuleData:
    """Parse data for rules once, for any number of evaluations.

    Args:
        value: JSON as Python objects, or as the text in a `bytes`.

    Raises:
        PeripetyError: not JSON, or over a limit of documents: `NOT_JSON`, `TOO_DEEP`, ….
    """
    return ACTIVE_BACKEND.parse_data(value, _to_engine_error)


def _to_engine_error(code: str, message: str, path: str) -> PeripetyError:
    return to_peripety_error(EngineError(code, message, path))


def evaluate(logic: Any, data: Any = None) -> Any:
    """Evaluate a JSONLogic expression over data once.

    For many evaluations, compile the expression with `rule` and parse the data with `data`.

    Raises:
        PeripetyError: as `rule`, `data` and `Rule.evaluate`.
    """
    return compile_rule(logic).evaluate(data)


def draw(seed: int, stream: str, turn: int, index: int) -> int:
    """Return one keyed draw: an unsigned 64-bit integer that depends only on the arguments.

    Raises:
        InvalidArgumentError: a number is not an unsigned 64-bit integer.
    """
    for name, value in (("seed", seed), ("turn", turn), ("index", index)):
        require_integer(name, value, 0, MAX_SEED)
    return ACTIVE_BACKEND.draw(seed, stream, turn, index)
