"""Tests of a policy: requests that reach something new, with the decisions of the engine."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.authoring.testing.requests import Request, requests_of
from peripety.authoring.testing.sketches import Sketch, Written
from peripety.authoring.testing.variants import mistake, part_at, variants
from peripety.errors import PeripetyError
from peripety.sim.schema import segments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.authoring.testing.asked import Asked

__all__ = ["sketches_of_policy"]

_OF_DECISION = {"allow": "allowed", "deny": "denied", "escalate": "escalated"}


def sketches_of_policy(document: Mapping[str, Any], asked: Asked) -> list[Sketch]:
    """Return tests of a policy, simplest first; they expect the decisions of the engine.

    Raises:
        SpecError: the document is not a valid policy.
    """
    policy = sim.compile_policy(json.dumps(document).encode())
    requests = [*requests_of(document, policy.rules)]
    prepared = policy.prepare([request.request for request in requests])
    decided = policy.decide_many(prepared)
    gains: list[set[str]] = [set() for _ in requests]
    mistakes: list[str] = ["" for _ in requests]
    for survivor, variant in variants(document, asked.survivors):
        for number, other in enumerate(_decisions(variant, prepared)):
            if other is not decided[number].decision:
                gains[number].add(survivor["mutant"])
                mistakes[number] = mistakes[number] or mistake(survivor)
    for target in asked.uncovered:
        for number in _reaching(policy, target, requests, prepared):
            gains[number].add(target)
    return [
        _sketch(request, one, frozenset(gained), why)
        for request, one, gained, why in zip(requests, decided, gains, mistakes, strict=True)
    ]


def _decisions(variant: Mapping[str, Any], requests: sim.Requests) -> list[sim.Decision]:
    """Return the decisions of a mutant; empty if it is not a valid policy."""
    try:
        policy = sim.compile_policy(json.dumps(variant).encode())
        return [one.decision for one in policy.decide_many(requests)]
    except PeripetyError:
        return []


def _reaching(
    policy: sim.Policy, target: str, requests: Sequence[Request], prepared: sim.Requests
) -> Iterator[int]:
    """Yield the indices of the requests that reach a part of a policy."""
    kind, _, path = target.partition(":")
    deciding = policy.deciding(prepared)
    if kind == "boundary":
        yield from (number for number, request in enumerate(requests) if path in request.borders)
        return
    try:
        index, part = _rule_at(policy, path)
    except (KeyError, IndexError, TypeError, ValueError):
        return
    if kind == "rule":
        yield from (number for number, by in enumerate(deciding) if by == index)
        return
    if part is None:
        return
    (holds,) = policy.matches(prepared, [{**policy.rules[index], "when": part}])
    wanted = path.endswith("/true")
    for number, by in enumerate(deciding):
        is_asked = by in {-1, index} or by > index
        if is_asked and bool(holds.holds >> number & 1) is wanted:
            yield number


def _rule_at(policy: sim.Policy, path: str) -> tuple[int, Mapping[str, Any] | None]:
    """Return the index of the rule at a JSON Pointer, and the referenced part of its condition."""
    section, index, *place = segments(path)
    if index == "-":
        return -1, None
    number = int(index) + (0 if section == "invariants" else policy.invariants)
    match place:
        case ["when", "arguments", matcher, _]:
            return number, {"arguments": [policy.rules[number]["when"]["arguments"][int(matcher)]]}
        case ["when", "logic", *_]:
            inner = part_at(policy.spec, path.rpartition("/")[0])
            return number, {"logic": inner if isinstance(inner, dict) else {"!!": [inner]}}
        case ["when", member, _]:
            return number, {member: policy.rules[number]["when"][member]}
    return number, None


def _sketch(request: Request, decided: sim.Decided, gains: frozenset[str], why: str) -> Sketch:
    decision = decided.decision.value
    by = decided.rule_id or "no rule"
    return Sketch(
        str(request),
        frozenset({_OF_DECISION[decision], *request.fits}),
        gains,
        partial(_written, request, decision, by, why),
        frozenset({f"{by} {request.request.tool_name} {next(iter(sorted(request.fits)), '')}"}),
        len(str(request)),
    )


def _written(request: Request, decision: str, by: str, why: str) -> Written:
    body = {
        "server_name": request.request.server_name,
        "tool_name": request.request.tool_name,
        "arguments": dict(request.request.arguments),
        "roles": [*request.request.roles],
        "expected": decision,
    }
    decides = f"Decided by {by}."
    name = f"{request.request.tool_name}_{decision}".lower()
    return Written(name, f"{decides} {why}".strip(), decision, body)
