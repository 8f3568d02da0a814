"""Validation of an order before any model call: inputs that no rules could fulfil."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety import engine
from peripety.errors import FieldViolation, InvalidArgumentError, Severity
from peripety.policy.authoring.rule_author import make_document
from peripety.policy.authoring.scenario_merge import are_compatible, request_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.errors import Finding
    from peripety.policy.types import CompileOrder


MAX_CONSTITUTION_BYTES = 256 * 1024

_LIMIT_RANGES = {
    "repairs": (0, 20),
    "probes": (0, 50),
    "probe_rounds": (0, 20),
    "tools_per_batch": (1, 200),
    "turns": (1, 100),
}
_FIELD_NAMES = {
    "repairs": "max_repairs",
    "probes": "max_probes",
    "probe_rounds": "max_probe_rounds",
    "turns": "max_turns",
}


def check_order(order: CompileOrder) -> None:
    """Validate an order and report all violations at once.

    Raises:
        InvalidArgumentError: the violations name each field (code ORDER_INVALID), or each position in the
            tools, lists and invariants (code FOUNDATION_INVALID).
    """
    violations = [*_text_violations(order), *_limit_violations(order)]
    if violations:
        raise _invalid_order("order", "ORDER_INVALID", violations)
    foundation = make_document(order, order.tools, [])
    errors = [one for one in engine.validate_policy(foundation) if one.severity is Severity.ERROR]
    if errors:
        raise _invalid_order("foundation", "FOUNDATION_INVALID", [*map(_to_violation, errors)])
    violations = [*_handwritten_violations(order, engine.compile_policy(foundation))]
    if violations:
        raise _invalid_order("handwritten scenarios", "ORDER_INVALID", violations)


def _text_violations(order: CompileOrder) -> Iterator[FieldViolation]:
    size = len(order.constitution.encode("utf-8", "replace"))
    if not order.constitution.strip():
        yield FieldViolation(".constitution", "is empty; describe what is allowed and what is not")
    if size > MAX_CONSTITUTION_BYTES:
        reason = f"has {size} bytes; at most {MAX_CONSTITUTION_BYTES} are accepted, so shorten it"
        yield FieldViolation(".constitution", reason)
    if not order.tools:
        yield FieldViolation(".tools", "is empty; add the tools that the policy applies to")


def _limit_violations(order: CompileOrder) -> Iterator[FieldViolation]:
    for name, (least, most) in _LIMIT_RANGES.items():
        value = getattr(order.limits, name)
        if value is not None and not least <= value <= most:
            yield FieldViolation(
                f".options.{_FIELD_NAMES.get(name, name)}",
                f"must be from {least} to {most}",
            )


def _handwritten_violations(order: CompileOrder, foundation: engine.Policy) -> Iterator[FieldViolation]:
    """Yield scenarios that no rules could meet: contradictions between two of them, or with an invariant."""
    names: dict[str, int] = {}
    asked: dict[bytes, int] = {}
    for number, scenario in enumerate(order.handwritten):
        field = f".handwritten_scenarios[{number}]"
        first = names.setdefault(scenario.description, number)
        if first != number:
            yield FieldViolation(
                f"{field}.description",
                f"equals that of scenario {first}; choose a unique one",
            )
        try:
            decided = foundation.decide(scenario.request)
        except InvalidArgumentError as error:
            yield FieldViolation(f"{field}.request", error.message)
            continue
        if decided.by_invariant and not scenario.expected_decision.is_met_by(decided.decision):
            reason = f"cannot be met: invariant {decided.rule_id} always decides {decided.decision.value}"
            yield FieldViolation(f"{field}.expected", reason)
        earlier = asked.setdefault(request_key(scenario.request), number)
        there = order.handwritten[earlier].expected_decision
        if not are_compatible(there, scenario.expected_decision):
            reason = f"contradicts scenario {earlier}, whose request is the same"
            yield FieldViolation(f"{field}.expected", reason)


def _to_violation(finding: Finding) -> FieldViolation:
    """Return a finding as a violation of a request field."""
    if not finding.path:
        # The document as a whole is too large. The size limit of a policy applies to its foundation as well.
        return FieldViolation(".tools", f"together with the foundation: {finding.violation.reason}")
    first, _, rest = finding.path.removeprefix("/").partition("/")
    if first != "tools":
        return FieldViolation(f".foundation{finding.path}", finding.violation.reason)
    index, _, inner = rest.partition("/")
    place = f".tools[{index}]" if index else ".tools"
    return FieldViolation(f"{place}/{inner}" if inner else place, finding.violation.reason)


def _invalid_order(subject: str, reason: str, violations: list[FieldViolation]) -> InvalidArgumentError:
    first = violations[0]
    message = f"{subject} invalid: {first.field} {first.reason} ({len(violations)} in all)"
    return InvalidArgumentError(message, code=reason, violations=violations)
