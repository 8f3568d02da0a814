"""Decisions about tool calls, beside engines of policies that others use, and what a run over mutants costs.

    python -m bench.policies_decisions

Times are CPU time of the process, the best of several rounds in which the engines take turns. All are given
the same rules and the same requests, and have to decide alike before anything is measured.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from bench.measure import best
from bench.policy_peers import casbin_side, cedar_side
from bench.policy_rules import RULES, SERVERS, TOOLS, policy_spec, requests
from peripety import engine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from peripety.engine import Policy

    Rule = Mapping[str, Any]


REQUESTS = 1000
MUTANTS = 1000
REQUESTS_OF_MUTANTS = 5000
_ROUNDS = 5


def decisions() -> dict[str, float]:
    """Decisions in a second of CPU time, by what decides; the peers come last."""
    asked = requests(REQUESTS)
    policy = engine.compile_policy(json.dumps(policy_spec()))
    prepared = policy.prepare(asked)

    def allowed(decided: Sequence[engine.DecisionResult]) -> list[bool]:
        return [one.decision is engine.Decision.ALLOW for one in decided]

    sides: dict[str, Callable[[], Any]] = {
        "peripety, who decides, requests prepared": lambda: policy.find_deciding_rules(prepared),
        "peripety, requests prepared": lambda: policy.decide_many(prepared),
        "peripety, a thousand at once": lambda: policy.decide_many(asked),
        "peripety, one by one": lambda: [policy.decide(one) for one in asked],
        "cedarpy": cedar_side(asked),
        "pycasbin": casbin_side(asked),
    }
    expected = allowed(policy.decide_many(asked))
    if any(sides[peer]() != expected for peer in ("cedarpy", "pycasbin")):
        raise AssertionError("an engine decides otherwise, so that there is nothing to compare")

    def work(side: Callable[[], Any]) -> Callable[[int], int]:
        def times(count: int) -> int:
            for _ in range(count):
                side()
            return count * len(asked)

        return times

    return {name: 1e9 / spent for name, spent in best({n: work(s) for n, s in sides.items()}).items()}


@dataclass(frozen=True)
class Mutants:
    """Cost of finding the mutants of a policy that decide some request differently.

    Attributes:
        mutants: number of mutants.
        requests: number of requests that each mutant decides.
        noticed: number of mutants that decide at least one of them differently.
        seconds: CPU time, with reading the requests.
    """

    mutants: int
    requests: int
    noticed: int
    seconds: float


def mutants() -> Mutants:
    """Evaluate all mutants of the policy on all requests."""
    policy, asked = engine.compile_policy(json.dumps(policy_spec())), requests(REQUESTS_OF_MUTANTS)
    changed = _changed(policy)
    seconds, noticed = float("inf"), 0
    for _ in range(_ROUNDS):
        started = time.process_time()
        noticed = _noticed(policy, asked, changed)
        seconds = min(seconds, time.process_time() - started)
    return Mutants(len(changed), len(asked), noticed, seconds)


def _changed(policy: Policy) -> list[tuple[int, Rule]]:
    """Return positions of rules, each with a mutated rule: another outcome, or a changed condition."""
    random = Random(MUTANTS)
    changed = []
    for _ in range(MUTANTS):
        place = random.randrange(len(policy.rules))
        rule = json.loads(json.dumps(policy.rules[place]))
        when, member = (
            rule["when"],
            random.choice(("then", "servers", "tools", "roles", "arguments", "logic")),
        )
        if member == "then" or member not in when:
            rule["then"] = random.choice(
                [then for then in ("allow", "deny", "escalate") if then != rule["then"]],
            )
        elif member in {"servers", "tools"}:
            when[member] = [random.choice({"servers": SERVERS, "tools": TOOLS}[member])]
        elif member == "arguments":
            when[member][0]["quantifier"] = random.choice(("none", "not_all"))
        else:
            del when[member]
        changed.append((place, rule))
    return changed


def _noticed(policy: Policy, asked: Sequence[engine.ToolRequest], changed: Sequence[tuple[int, Rule]]) -> int:
    """Return the number of mutants that decide a request differently: first match over sets of requests."""
    prepared = policy.prepare(asked)
    own = [
        _taking(rule, match) for rule, match in zip(policy.rules, policy.match_rules(prepared), strict=True)
    ]
    others = policy.match_rules(prepared, [rule for _, rule in changed])
    everything = (1 << len(prepared)) - 1
    before = _outcomes(policy.rules, own, everything)
    noticed = 0
    for (place, rule), match in zip(changed, others, strict=True):
        rules, taking = [*policy.rules], [*own]
        rules[place], taking[place] = rule, _taking(rule, match)
        noticed += _outcomes(rules, taking, everything) != before
    return noticed


def _taking(rule: Rule, match: engine.RuleMatches) -> int:
    """The requests of which a rule takes hold, if none before it does."""
    return match.holds if rule["then"] == "allow" else match.holds | match.unevaluated


def _outcomes(rules: Sequence[Rule], taking: Sequence[int], everything: int) -> tuple[int, int]:
    """The requests that are allowed, and those that are escalated."""
    outcomes, open_ = {"allow": 0, "deny": 0, "escalate": 0}, everything
    for rule, taken in zip(rules, taking, strict=True):
        outcomes[rule["then"]] |= taken & open_
        open_ &= ~taken
    return outcomes["allow"], outcomes["escalate"]


def main() -> None:
    """Measure and print."""
    figures = decisions()
    peers = [figures["cedarpy"], figures["pycasbin"]]
    head = f"{len(RULES)} rules, {REQUESTS} requests, {engine.BACKEND} core"
    sys.stdout.write(f"{head:42} {'a second of CPU':>16} {'/ cedarpy':>10} {'/ pycasbin':>10}\n")
    for name, figure in figures.items():
        ratios = "".join(f"{figure / peer:11.1f}" for peer in peers)
        sys.stdout.write(f"  {name:40} {figure:16,.0f}{ratios}\n")
    cost = mutants()
    sys.stdout.write(
        f"{cost.mutants:,} mutants, each asked about {cost.requests:,} requests: "
        f"{cost.seconds:.2f} s of CPU, {cost.noticed} noticed\n",
    )


if __name__ == "__main__":
    main()
