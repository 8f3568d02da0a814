"""Mutation scores of scenario suites for policies of 20 to 60 rules, and the speed of policy operations.

`make bench-policies`. A suite is written by a faultless model alone, by the engine alone, or is the final
suite of a compilation: both, without redundant scenarios. Times are CPU time of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any

from bench import policies_decisions
from bench.policy_rules import policy_spec
from peripety import engine
from peripety.policy.analysis.differences import find_differences
from peripety.policy.analysis.equivalence import Undecided
from peripety.policy.analysis.lint import find_rule_issues
from peripety.policy.authoring.scenario_suite import finalize
from peripety.policy.mutation.operators import iter_mutations
from peripety.policy.mutation.runner import MutationContext, iter_mutant_runs
from peripety.policy.verification.coverage import EvaluatedSuite
from peripety.policy.verification.verify import verify
from support.policy.policies import TruePolicy, plausible_suite

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peripety.engine import Policy
    from peripety.policy.types import TestScenario, VerificationReport


_SIDES = ("model", "engine", "both")
_SHAPE = "mixed"
_WANTED = 0.99
_CALLS = 3
"""Of each decision of each tool, beside one for each rule."""


@dataclass(frozen=True)
class _Row:
    """One policy: its rules, how suites fare on it, and what the last leaves undecided and took."""

    rules: int
    reports: dict[str, VerificationReport]
    undecided: int
    seconds: float

    @property
    def is_met(self) -> bool:
        """Return True if the final suite reaches the score, with fewer scenarios than the model wrote."""
        final = self.reports["both"]
        return _score(final) >= _WANTED and len(final.results) < len(self.reports["model"].results)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure suites for policies, and the speed of policies.")
    parser.add_argument("--count", type=int, default=12)
    count: int = parser.parse_args().count
    load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    _tell(f"{engine.BACKEND} core, {os.cpu_count()} processors, load {load}\n")
    _suites(count)
    _tell("\nanalysis:")
    _analysis()
    _tell("\ndecisions and mutants:")
    policies_decisions.main()


def _suites(count: int) -> None:
    _tell(
        "scenarios / conditions and decisions reached / mutants noticed, of those not "
        "proved to mean the same",
    )
    sides = "".join(f"{side:>22}" for side in _SIDES)
    _tell(f"{'seed':>4} {'rules':>5}{sides} {'survived':>9} {'undecided':>10} {'s':>5}")
    rows = []
    for seed in range(1, count + 1):
        row = _row(seed)
        rows.append(row)
        told = "".join(f"{_told(row.reports[side]):>22}" for side in _SIDES)
        left = f"{_survived(row.reports['both']):9} {row.undecided:10}"
        _tell(f"{seed:4} {row.rules:5}{told} {left} {row.seconds:5.1f}")
    for side in _SIDES:
        scenarios = sum(len(row.reports[side].results) for row in rows)
        scores = [_score(row.reports[side]) for row in rows]
        _tell(f"{side}: {scenarios} scenarios, {min(scores):.1%} at least, {median(scores):.1%} mostly")
    met = sum(row.is_met for row in rows)
    _tell(f"{met} of {count} notice {_WANTED:.0%} with fewer scenarios than the model alone")


def _row(seed: int) -> _Row:
    true = TruePolicy.made_up(seed, _SHAPE)
    policy = true.compiled
    written = plausible_suite(true, Random(seed), each=_CALLS)
    by_model = verify(policy, written, mutation=True)
    by_engine = finalize(policy, ()).report
    started = time.process_time()
    both = finalize(policy, written)
    seconds = time.process_time() - started
    reports = dict(zip(_SIDES, (by_model, by_engine, both.report), strict=True))
    undecided = _undecided(policy, both.scenarios) if _survived(both.report) else 0
    return _Row(len(policy.rules), reports, undecided, seconds)


def _undecided(policy: Policy, scenarios: Sequence[TestScenario]) -> int:
    """Return the number of mutants that survive all scenarios and are not proved equivalent."""
    runs = iter_mutant_runs(
        MutationContext(policy),
        EvaluatedSuite(policy, scenarios),
        [*iter_mutations(policy)],
    )
    return sum(isinstance(done.verdict, Undecided) for done in runs)


def _told(report: VerificationReport) -> str:
    reached = next(one for one in report.coverage if one.kind == "condition_decision")
    return f"{len(report.results)} / {reached.covered / reached.reachable:.0%} / {_score(report):.1%}"


def _score(report: VerificationReport) -> float:
    return report.mutation.score if report.mutation else 0.0


def _survived(report: VerificationReport) -> int:
    return report.mutation.survived if report.mutation else 0


def _analysis() -> None:
    spec = policy_spec()
    policy, same = (
        engine.compile_policy(json.dumps(spec)),
        engine.compile_policy(json.dumps(spec | {"name": "b"})),
    )
    work: dict[str, Callable[[], Any]] = {
        "issues of the rules": lambda: find_rule_issues(policy),
        "difference to the same": lambda: find_differences(policy, same),
        "a suite without a model": lambda: finalize(policy, ()),
    }
    for name, do in work.items():
        started = time.process_time()
        do()
        _tell(f"  {len(policy.rules)} rules, {name}: {time.process_time() - started:.2f} s of CPU")


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
