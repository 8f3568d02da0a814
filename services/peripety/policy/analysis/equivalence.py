"""Equivalence check of rule variants: a proof of equal decisions, or a request that differs."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.policy.analysis.decision_diagram import NO, TooLargeError
from peripety.policy.analysis.engine_replay import EngineReplay, find_in_sets, iter_candidates
from peripety.policy.analysis.rule_diagram import iter_rule_diagrams, results_differ

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.engine.policies.policy import Policy
    from peripety.engine.policies.types import ToolRequest
    from peripety.policy.analysis.rule_diagram import RuleDiagram


@dataclass(frozen=True, slots=True)
class Undecided:
    """Neither a proof nor a witness was found.

    Attributes:
        reason: one sentence for display.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Equivalent:
    """Proof that every request that the tools accept is decided alike."""


@dataclass(frozen=True, slots=True)
class Differs:
    """Some request is decided differently.

    Attributes:
        witness: such a request, confirmed on the engine.
    """

    witness: ToolRequest


EquivalenceVerdict: TypeAlias = Equivalent | Differs | Undecided
"""The result of comparing a variant with the original rules."""


@dataclass(frozen=True, slots=True)
class ReachTarget:
    """A set of requests to find: those that reach a rule and fulfil given conditions.

    Attributes:
        rule: index of the rule in `Policy.rules`; no earlier rule applies. The number of rules means that no
            rule applies.
        decides: True if the rule itself has to apply, possibly because it cannot be evaluated.
        holds: conditions, as in `when` of a rule, that must all hold.
        fails: conditions that must be evaluable and must not hold.
    """

    rule: int
    decides: bool = False
    holds: tuple[Mapping[str, Any], ...] = ()
    fails: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Reached:
    """A target can be reached.

    Attributes:
        request: a request that reaches it, confirmed on the engine.
    """

    request: ToolRequest


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Proof that no request that the tools accept reaches a target."""


ReachResult: TypeAlias = Reached | Unreachable | Undecided
"""The result of a search for a target."""


_BLOCK = 512


@dataclass(frozen=True, slots=True)
class RuleWindow:
    """A variant of the rules of a policy that replaces one run of adjacent rules.

    Attributes:
        first: index of the first rule that is replaced.
        end: index after the last rule that is replaced.
        rules: the replacement. Rules that are unchanged from the policy are the same objects; others have
            passed
            the checks of a document.
    """

    first: int
    end: int
    rules: Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class _Variant:
    """A variant, and the state of its comparison.

    Attributes:
        window: the part that differs from the original.
        open_sets: the sets of requests for which it may differ, each with the rule diagram of a tool.
        undecided_reason: the reason why some tool cannot be decided.
        verdict: the result, once it is known.
    """

    window: RuleWindow
    open_sets: list[tuple[RuleDiagram, int]] = field(default_factory=list)
    undecided_reason: str = ""
    verdict: EquivalenceVerdict | None = None


def compare_variants(
    policy: Policy,
    variants: Sequence[Sequence[Mapping[str, Any]]],
) -> Iterator[EquivalenceVerdict]:
    """Compare many variants of the rules of a policy with the policy.

    Args:
        policy: the original.
        variants: for each variant all rules in order, invariants first, and as in a `RuleWindow`.

    Yields:
        The same as `compare_rule_windows`.
    """
    yield from compare_rule_windows(policy, [_differing_window(policy.rules, rules) for rules in variants])


def compare_rule_windows(policy: Policy, windows: Sequence[RuleWindow]) -> Iterator[EquivalenceVerdict]:
    """Compare many variants with a policy, each given by the part that differs.

    Args:
        policy: the original.
        windows: the variants.

    Yields:
        The verdict about each variant, in the order of the variants. Only requests that the tools accept
        count.
    """
    if not windows:
        return
    compared = [*map(_Variant, windows)]
    rules = {id(rule): rule for rule in policy.rules}
    rules |= {id(rule): rule for window in windows for rule in window.rules}
    whens = [rule["when"] for rule in rules.values()]
    numbers = {rule: number for number, rule in enumerate(rules)}
    touching: dict[int, list[_Variant]] = {}
    for variant in compared:
        window = variant.window
        meant = (*policy.rules[window.first : window.end], *window.rules)
        for number in {numbers[id(rule)] for rule in meant}:
            touching.setdefault(number, []).append(variant)
    for _, applying, ruling in iter_rule_diagrams(policy, whens, touching):
        touched = {id(one): one for number in applying for one in touching.get(number, ())}
        for variant in touched.values():
            _compare_on_tool(variant, ruling)
    for start in range(0, len(compared), _BLOCK):
        block = compared[start : start + _BLOCK]
        _replay_examples(policy, block)
        for variant in block:
            yield variant.verdict or _search_difference(policy, variant)


def _differing_window(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> RuleWindow:
    """Return the part in which two rule lists differ, without their common prefix and suffix."""
    least = min(len(one), len(other))
    first = 0
    while first < least and one[first] is other[first]:
        first += 1
    last = 0
    while last < least - first and one[-1 - last] is other[-1 - last]:
        last += 1
    return RuleWindow(first, len(one) - last, other[first : len(other) - last])


def _compare_on_tool(variant: _Variant, ruling: RuleDiagram | None) -> None:
    """Find the requests for which a variant differs from the original, for one tool class."""
    if ruling is None:
        variant.undecided_reason = "a tool's arguments have too many regions"
        return
    window, diagrams = variant.window, ruling.space.diagrams
    try:
        decided = ruling.decide_before(window.rules, ruling.decisions_from(window.end))
        differing = diagrams.apply(results_differ, ruling.decisions_from(window.first), decided)
        open_ = (
            NO
            if differing == NO
            else diagrams.intersection(ruling.reaching_requests(window.first), differing)
        )
    except (TooLargeError, RecursionError):
        variant.undecided_reason = "the rules for a tool are too intricate"
        return
    if open_ != NO:
        variant.open_sets.append((ruling, open_))


def _replay_examples(policy: Policy, block: Sequence[_Variant]) -> None:
    """Settle the variants for which the first example request is decisive."""
    examples: list[tuple[_Variant, ToolRequest]] = []
    for variant in block:
        if not variant.open_sets and not variant.undecided_reason:
            variant.verdict = Equivalent()
        requests = (
            one for ruling, wanted in variant.open_sets for one in iter_candidates(ruling.space, wanted)
        )
        examples.extend((variant, request) for request in islice(requests, 1))
    replay = EngineReplay(policy, [request for _, request in examples])
    replay.evaluate(rule for variant, _ in examples for rule in variant.window.rules)
    for number, (variant, request) in enumerate(examples):
        if _differing_requests(replay, variant) >> number & 1:
            variant.verdict = Differs(request)


def _search_difference(policy: Policy, variant: _Variant) -> EquivalenceVerdict:
    """Search for a request that shows a difference, for a variant whose first example does not."""
    where = ((ruling.space, wanted) for ruling, wanted in variant.open_sets)
    witness = find_in_sets(policy, where, lambda replay: _differing_requests(replay, variant))
    if witness is not None:
        return Differs(witness)
    return Undecided(variant.undecided_reason or "it may differ, but no request was found that shows it")


def _differing_requests(replay: EngineReplay, variant: _Variant) -> int:
    """Return the requests that a variant decides differently."""
    return replay.changed_requests(variant.window.first, variant.window.end, variant.window.rules)
