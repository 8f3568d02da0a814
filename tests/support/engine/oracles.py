"""Independent checks of drift, proofs, verdicts and rates."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jsonschema

from peripety import engine
from peripety.engine.schemas import SCENARIO_SPEC, schema_document
from peripety.errors import PeripetyError
from support.engine.backends import interpreted_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peripety.engine import DryRunReport, Program, Proof
    from peripety.errors import Finding


CERTAIN = 1e-4
"""Upper bound of the probability that a statement about a rate is wrong."""


def is_above(count: int, total: int, threshold: float) -> bool:
    """Return True if the rate behind a count is above a threshold with certainty `CERTAIN`."""
    return count > threshold * total and _by_chance(count, total, threshold) < CERTAIN


def is_below(count: int, total: int, threshold: float) -> bool:
    """Return True if the rate behind a count is below a threshold with certainty `CERTAIN`."""
    return count < threshold * total and _by_chance(count, total, threshold) < CERTAIN


def is_too_often(errors: int, trials: int, rate: float) -> bool:
    """Return True if so many errors occur only in one of a thousand cases when each trial has this rate."""
    fewer = sum(math.comb(trials, n) * rate**n * (1 - rate) ** (trials - n) for n in range(errors))
    return 1 - fewer < 1e-3


def _by_chance(count: int, total: int, threshold: float) -> float:
    """Chernoff's bound on the chance of a count that is as far from what a rate lets expect."""
    rate = count / total
    distance = _part(rate, threshold) + _part(1 - rate, 1 - threshold)
    return math.exp(-total * distance)


def _part(rate: float, threshold: float) -> float:
    if rate == 0:
        return 0.0
    return rate * math.log(rate / threshold) if threshold > 0 else math.inf


BLOCK = 64
_BLOCKS = 16 if engine.BACKEND == "native" else 4
_UNIT = 2**20
_USUAL_LIMIT = 0.05
# Direction of the left side that makes each comparison true: rising or falling.
_WAYS = {">": 1, ">=": 1, "<": -1, "<=": -1}


@dataclass(frozen=True)
class Measured:
    """Statistics of a quantity from fresh runs.

    Attributes:
        path: path of the quantity in the state.
        per_turn: its drift over all of the runs.
        noise: the standard deviation of that figure in a block of 64 runs.
        limit: the largest allowed drift.
    """

    path: str
    per_turn: float
    noise: float
    limit: float

    def is_surely_above(self, runs: int) -> bool:
        """Return True if it is above the limit by more than chance explains in so many runs."""
        return self.per_turn - self.limit > 5 * self._error(runs)

    def is_surely_below(self, runs: int) -> bool:
        """Return True if it is below the limit by more than chance explains in so many runs."""
        return self.limit - self.per_turn > 5 * self._error(runs)

    def _error(self, runs: int) -> float:
        return self.noise * (math.sqrt(BLOCK / runs) + math.sqrt(1 / _BLOCKS))


def measured_drifts(program: Program, seed: int) -> list[Measured]:
    """The drift of every quantity that has a distance from losing, on runs of a seed."""
    spec = program.spec
    scales = {path: distance for path, (_, distance) in _followed(spec).items()}
    blocks = []
    for index in range(_BLOCKS):
        report = program.dry_run(runs=BLOCK, first_run=index * BLOCK, seed=seed, detail=True, watch=scales)
        assert report.detail is not None
        blocks.append((report.turns, report.detail.moves))
    turns = sum(played for played, _ in blocks)
    limit = spec["negativity_budget"].get("max_positive_drift", _USUAL_LIMIT)
    found = []
    for path, (way, _) in _followed(spec).items():
        away = [-way * moves[path] / _UNIT for _, moves in blocks]
        each = [moved / played for moved, (played, _) in zip(away, blocks, strict=True)]
        found.append(Measured(path, sum(away) / turns, statistics.stdev(each), limit))
    return found


def _followed(spec: dict[str, Any]) -> dict[str, tuple[int, float]]:
    """For each quantity: the way to lose, and the first distance from there."""
    comparisons = [found for loss in spec["loss_conditions"] for found in _comparisons(spec, loss["when"], 1)]
    decay = spec["negativity_budget"].get("decay_per_turn", {})
    followed = {}
    for path in dict.fromkeys([*(place for place, _, _ in comparisons), *decay]):
        value = _number_at(spec, path)
        mine = [(way, edge) for place, way, edge in comparisons if place == path]
        ways = {way for way, _ in mine} or {-1 if decay[path] > 0 else 1}
        distances = [math.inf if edge is None else way * (edge - value) for way, edge in mine]
        if len(ways) > 1 or (distances and max(distances) < 0):
            continue
        known = [distance for distance in distances if 0 < distance < math.inf]
        followed[path] = (ways.pop(), min(known, default=max(abs(value), 1.0)))
    return followed


def _comparisons(spec: dict[str, Any], logic: Any, way: int) -> Iterator[tuple[str, int, float | None]]:
    """Each quantity that a condition compares, the way that makes the condition true, and the edge if known.

    Such conditions as random specifications and the defects planted in them have are understood, not all.
    """
    if not isinstance(logic, dict):
        return
    for operator, operands in logic.items():
        if operator in {"and", "or"}:
            for operand in operands:
                yield from _comparisons(spec, operand, way)
        elif operator == "!":
            yield from _comparisons(spec, operands[0], -way)
        elif operator in _WAYS:
            left, right = operands
            yield from _side(spec, left, right, way * _WAYS[operator])
            yield from _side(spec, right, left, -way * _WAYS[operator])


def _side(spec: dict[str, Any], side: Any, other: Any, way: int) -> Iterator[tuple[str, int, float | None]]:
    match side:
        case {"var": str(path)} if path.startswith("state."):
            yield path, way, other if isinstance(other, int | float) else None
        case {"+": [*terms]}:
            for term in terms:
                yield from ((path, way, None) for path, _, _ in _side(spec, term, None, way))


def _number_at(spec: dict[str, Any], path: str) -> float:
    node: Any = spec
    for key in path.split("."):
        node = node[key]
    return float(node)


def is_contradicted(program: Program, proof: Proof, report: DryRunReport) -> bool:
    """Return True if a report is impossible when a proof holds."""
    assert report.detail is not None
    if proof.code == "CERTAIN_LOSS":
        return bool(report.won or report.survived)
    section, _, place = proof.path.strip("/").partition("/")
    rule = program.spec[section][int(place)]["id"]
    counts = {
        "UNREACHABLE_WIN": report.wins,
        "IMPOSSIBLE_LOSS": report.losses,
        "DEAD_ACTION": {name: use.legal + use.taken for name, use in report.detail.actions.items()},
        "DEAD_EVENT": report.detail.events,
    }
    return counts[proof.code][rule] > 0


def replayed(program: Program, proof: Proof) -> list[str]:
    """Return the problems of the run that demonstrates a proof: failing rules, and paths of large numbers."""
    state = program.new_state()
    seen: list[str] = []
    for call in proof.witness:
        try:
            results: list[Any] = [program.act(state, call.action_id, call.params)] if call.action_id else []
            results.append(program.step(state))
        except PeripetyError as error:
            return [*seen, error.code]
        for result in results:
            seen += [error.rule for error in [*getattr(result, "reasons", ()), *result.errors]]
            seen += [
                change.path
                for change in result.changes
                if isinstance(change.after, int | float) and abs(change.after) > 1e15
            ]
    return seen


INDIFFERENCE = 0.03
"""Distance from the required rate within which either verdict is right, see docs/reference/scenarios.md."""

_DRIFT_RUNS = 512
_PROOF_RUNS = 64
_LARGEST_INTEGER = 2**53 - 1
_SCHEMA = jsonschema.Draft202012Validator(schema_document(SCENARIO_SPEC))


@dataclass(frozen=True)
class FreshRuns:
    """Runs of a scenario with a seed that no check has used.

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
    """Return True if a finding is correct; None if this cannot be decided, as for rates, where one may err.

    Args:
        finding: the finding.
        fresh: runs of the document with the finding.
        before: the runs in which it was found, if it was found by playing.
    """
    look = _LOOKS.get(finding.code)
    if look is not None:
        return look(finding, fresh)
    return _fails(finding, fresh.document, before) if before is not None and before.errors else None


def _drifts(finding: Finding, fresh: FreshRuns) -> bool:
    drifts = {drift.path: drift for drift in measured_drifts(fresh.program, fresh.seed)}
    return not drifts[finding.message.partition(" ")[0]].is_surely_below(_DRIFT_RUNS)


def _is_proved(finding: Finding, fresh: FreshRuns) -> bool:
    """Return True if no run contradicts the finding, and a run shows it where one has to."""
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
    schema = _value_at(json.loads(fresh.document), finding.path)
    bounds = [schema["minimum"], schema["maximum"]] if "minimum" in schema else []
    numbers = [*bounds, *schema.get("enum", ())]
    fits = schema["type"] != "integer" or all(number == int(number) for number in numbers)
    return not fits or bounds != sorted(bounds)


def _contradicts_itself(_finding: Finding, fresh: FreshRuns) -> bool:
    budget = json.loads(fresh.document)["negativity_budget"]
    return bool(budget["max_fail_rate"] < budget["min_fail_rate"])


def _value_at(node: Any, pointer: str) -> Any:
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
