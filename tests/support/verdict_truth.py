"""Whether what refuses a scenario is so: looked at without anything of what refused it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jsonschema

from peripety import engine
from peripety.engine.schemas import SCENARIO_SPEC, schema_document
from support.chances import is_above, is_below
from support.drift_truth import measured_drifts
from support.oracle import interpreted_report
from support.proof_truth import is_contradicted, replayed

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.engine import DryRunReport, Program
    from peripety.errors import Finding


INDIFFERENCE = 0.03
"""So close to what is asked for either verdict is right, as docs/reference/scenarios.md says."""

_DRIFT_RUNS = 512
_PROOF_RUNS = 64
_LARGEST_INTEGER = 2**53 - 1
_SCHEMA = jsonschema.Draft202012Validator(schema_document(SCENARIO_SPEC))


@dataclass(frozen=True)
class FreshRuns:
    """Runs of a scenario under a seed that nobody has looked at.

    Attributes:
        document: the specification, a valid one.
        runs: how many are played.
    """

    document: bytes
    runs: int

    @cached_property
    def program(self) -> Program:
        return engine.compile(self.document)

    @cached_property
    def seed(self) -> int:
        seed: int = self.program.spec["seed"]
        return (seed + 1) % 2**53

    @cached_property
    def report(self) -> DryRunReport:
        return self.program.dry_run(runs=self.runs, seed=self.seed)

    @property
    def is_surely_too_easy(self) -> bool:
        return is_below(self.report.lost, self.report.runs, self._edge(self._least, outward=-1))

    @property
    def is_surely_hard_enough(self) -> bool:
        return is_above(self.report.lost, self.report.runs, self._edge(self._least, outward=1))

    @property
    def is_surely_too_hard(self) -> bool:
        return self._most < 1 and is_above(
            self.report.lost,
            self.report.runs,
            self._edge(self._most, outward=1),
        )

    @property
    def is_surely_easy_enough(self) -> bool:
        return is_below(self.report.lost, self.report.runs, self._edge(self._most, outward=-1))

    @property
    def _least(self) -> float:
        least: float = self.program.spec["negativity_budget"]["min_fail_rate"]
        return least

    @property
    def _most(self) -> float:
        most: float = self.program.spec["negativity_budget"].get("max_fail_rate", 1)
        return most

    def _edge(self, threshold: float, *, outward: int) -> float:
        room = 1 - threshold if outward > 0 else threshold
        return threshold + outward * min(INDIFFERENCE, room / 2)


def is_true(finding: Finding, fresh: FreshRuns, before: DryRunReport | None) -> bool | None:
    """Whether a finding says what is so; None where this cannot tell, as of rates, of which one may err.

    Args:
        finding: what is said.
        fresh: the document that it is said of.
        before: the runs that it was found in, if it was found by playing.
    """
    look = _LOOKS.get(finding.code)
    if look is not None:
        return look(finding, fresh)
    return _fails(finding, fresh.document, before) if before is not None and before.errors else None


def _drifts(finding: Finding, fresh: FreshRuns) -> bool:
    drifts = {drift.path: drift for drift in measured_drifts(fresh.program, fresh.seed)}
    return not drifts[finding.message.partition(" ")[0]].is_surely_below(_DRIFT_RUNS)


def _is_proved(finding: Finding, fresh: FreshRuns) -> bool:
    """No run of anybody contradicts it, and where runs have to show it, they do."""
    program = fresh.program
    proof = next(
        proof for proof in program.prove() if (proof.code, proof.path) == (finding.code, finding.path)
    )
    if proof.witness:
        return bool(replayed(program, proof))
    players = engine.PERSONAS if engine.BACKEND == "native" else ("idle", "random")
    reports = [
        program.dry_run(runs=_PROOF_RUNS, seed=fresh.seed, persona=persona, detail=True)
        for persona in players
    ]
    if proof.code == "TYPE_ERROR":
        return any(error.rule == proof.path for report in reports for error in report.errors)
    return not any(is_contradicted(program, proof, report) for report in reports)


def _fails(finding: Finding, document: bytes, before: DryRunReport) -> bool:
    """The interpreter, which is slow and obvious, comes to the same failure in the same runs."""
    report = interpreted_report(
        json.loads(document),
        runs=before.runs,
        first_run=before.first_run,
        seed=str(before.seed),
        persona=before.persona,
    )
    return any((error["code"], error["rule"]) == (finding.code, finding.path) for error in report["errors"])


def _breaks_the_schema(finding: Finding, fresh: FreshRuns) -> bool:
    """Another library finds fault with the same part, or with what holds it."""
    errors = _SCHEMA.iter_errors(json.loads(fresh.document))
    places = ["".join(f"/{key}" for key in error.absolute_path) for error in errors]
    holder = finding.path.rpartition("/")[0]
    return any(
        finding.path == place or f"{holder}/".startswith(f"{place}/")
        for place in places
        if place or not holder
    )


def _is_no_integer(_finding: Finding, fresh: FreshRuns) -> bool:
    """There is an integer that doubles do not hold."""
    return any(abs(number) > _LARGEST_INTEGER for number in _integers(json.loads(fresh.document)))


def _is_no_param(finding: Finding, fresh: FreshRuns) -> bool:
    """The bounds or choices of a parameter of numbers are not of its own type, or not in their order."""
    schema = _at(json.loads(fresh.document), finding.path)
    bounds = [schema["minimum"], schema["maximum"]] if "minimum" in schema else []
    numbers = [*bounds, *schema.get("enum", ())]
    fits = schema["type"] != "integer" or all(number == int(number) for number in numbers)
    return not fits or bounds != sorted(bounds)


def _contradicts_itself(_finding: Finding, fresh: FreshRuns) -> bool:
    budget = json.loads(fresh.document)["negativity_budget"]
    return bool(budget["max_fail_rate"] < budget["min_fail_rate"])


def _at(node: Any, pointer: str) -> Any:
    for key in pointer.split("/")[1:]:
        node = node[int(key)] if isinstance(node, list) else node[key]
    return node


def _integers(node: Any) -> list[int]:
    if isinstance(node, dict):
        return _integers([*node.values()])
    if isinstance(node, list):
        return [number for item in node for number in _integers(item)]
    return [node] if isinstance(node, int) else []


_LOOKS: dict[str, Callable[[Finding, FreshRuns], bool]] = {
    "POSITIVE_DRIFT": _drifts,
    **dict.fromkeys(["CERTAIN_LOSS", "UNREACHABLE_WIN", "IMPOSSIBLE_LOSS", "TYPE_ERROR"], _is_proved),
    **dict.fromkeys(["OUT_OF_RANGE", "WRONG_TYPE", "WRONG_VALUE"], _breaks_the_schema),
    **dict.fromkeys(["UNKNOWN_KEY", "MISSING_KEY", "TOO_SHORT"], _breaks_the_schema),
    "NUMBER_RANGE": _is_no_integer,
    "BAD_PARAM": _is_no_param,
    "BUDGET_CONTRADICTION": _contradicts_itself,
}
