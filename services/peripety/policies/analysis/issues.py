"""Lint of rules without effect: dead, overridden, shadowed and redundant rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peripety.policies.analysis.diagrams import NO, TooLargeError
from peripety.policies.analysis.ruling import RESULTS, different, rulings
from peripety.policies.analysis.searching import first_where
from peripety.policies.model import RuleIssue, RuleIssueKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from peripety.policies.analysis.replaying import Replay
    from peripety.policies.analysis.ruling import Ruling
    from peripety.sim.policies.policy import Policy
    from peripety.sim.policies.types import ToolRequest

__all__ = ["analyze"]


@dataclass(slots=True)
class _Standing:
    """The facts about one rule, over the tools that were analyzed.

    Attributes:
        takes: the requests that it matches.
        decides: the requests that it decides.
        taken: earlier rules that decide requests that match this one as well.
        changes: True if some requests would be decided differently without it.
        instead: later rules that would make the same decision.
        unknown: True if some tool was too large to analyze.
    """

    takes: list[tuple[Ruling, int]] = field(default_factory=list)
    decides: list[tuple[Ruling, int]] = field(default_factory=list)
    taken: set[int] = field(default_factory=set)
    changes: bool = False
    instead: set[int] = field(default_factory=set)
    unknown: bool = False


def analyze(policy: Policy) -> tuple[RuleIssue, ...]:
    """Find rules without effect, in the order of the rules.

    Each issue is proved, over the requests that the tools accept. If the analysis is undecided, it reports
    nothing.
    An invariant is not redundant if later rules would decide the same, because it takes precedence by design.
    """
    rules = policy.rules
    standings = [_Standing() for _ in rules]
    for _, applying, ruling in rulings(policy, [rule["when"] for rule in rules]):
        for number in applying:
            if ruling is None:
                standings[number].unknown = True
                continue
            try:
                _look(ruling, number, applying, standings[number], policy.invariants)
            except (TooLargeError, RecursionError):
                standings[number].unknown = True
    found = (_issue(policy, number, standing) for number, standing in enumerate(standings))
    return tuple(issue for issue in found if issue is not None)


def _look(ruling: Ruling, number: int, applying: Sequence[int], standing: _Standing, invariants: int) -> None:
    """Record the effect of a rule for one tool class."""
    diagrams, rules = ruling.space.diagrams, ruling.rules
    takes = diagrams.both(ruling.takes(rules[number]), ruling.space.possible)
    if takes == NO:
        return
    standing.takes.append((ruling, takes))
    decides = diagrams.both(ruling.asked(number), takes)
    if decides == NO:
        standing.taken |= _deciders(ruling, (one for one in applying if one < number), takes)
        return
    standing.decides.append((ruling, decides))
    if number < invariants or standing.changes:
        return
    result = RESULTS[rules[number]["then"]]
    otherwise = diagrams.combine(different, ruling.decided(number + 1), result)
    if diagrams.both(decides, otherwise) != NO:
        standing.changes = True
    else:
        standing.instead |= _deciders(ruling, (one for one in applying if one > number), decides)


def _deciders(ruling: Ruling, numbers: Iterable[int], requests: int) -> set[int]:
    """Return the rules that decide requests of a set, evaluated in their order."""
    diagrams = ruling.space.diagrams
    found = set()
    for number in numbers:
        if requests == NO:
            break
        takes = ruling.takes(ruling.rules[number])
        if diagrams.both(takes, requests) != NO:
            found.add(number)
            requests = diagrams.choose(takes, NO, requests)
    return found


def _issue(policy: Policy, number: int, standing: _Standing) -> RuleIssue | None:
    rule = policy.rules[number]
    if standing.unknown:
        return None
    if not standing.takes:
        message = f"no request that the tools accept matches {rule['id']}"
        return RuleIssue(RuleIssueKind.DEAD, rule["id"], (), None, message)
    if not standing.decides:
        overridden = all(one < policy.invariants for one in standing.taken)
        kind = RuleIssueKind.OVERRIDDEN if overridden else RuleIssueKind.SHADOWED
        causes = tuple(policy.rules[one]["id"] for one in sorted(standing.taken))
        witness = _witness(policy, standing.takes, lambda replay: _taken_before(policy, replay, number))
        verb = "decides" if len(causes) == 1 else "decide"
        message = f"{_listed(causes)} {verb} every request that matches {rule['id']}"
        return RuleIssue(kind, rule["id"], causes, witness, message)
    if number < policy.invariants or standing.changes:
        return None
    causes = tuple(policy.rules[one]["id"] for one in sorted(standing.instead))
    witness = _witness(policy, standing.decides, lambda replay: _same_without(policy, replay, number))
    instead = f"{_listed(causes)} would" if causes else "no rule would take hold, which would"
    message = f"without {rule['id']} every decision would be the same: {instead} {rule['then']} as well"
    return RuleIssue(RuleIssueKind.REDUNDANT, rule["id"], causes, witness, message)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _witness(
    policy: Policy, where: list[tuple[Ruling, int]], shows: Callable[[Replay], int]
) -> ToolRequest | None:
    """Return a request that shows an issue on the engine, if one is found."""
    return first_where(policy, ((ruling.space, requests) for ruling, requests in where), shows)


def _taken_before(policy: Policy, replay: Replay, number: int) -> int:
    """Return the requests that match a rule but are decided by an earlier one."""
    return replay.takes(policy.rules[number]) & ~replay.asked(policy.rules[:number])


def _same_without(policy: Policy, replay: Replay, number: int) -> int:
    """Return the requests that a rule decides, and that are decided alike without it."""
    rules = policy.rules
    decides = replay.takes(rules[number]) & replay.asked(rules[:number])
    return decides & ~replay.differing(rules, (*rules[:number], *rules[number + 1 :]))
