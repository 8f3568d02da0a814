"""Both cores over random cases, up to the given number: `make fuzz-diff`.

    python -m fuzz.differential --steps 1000000 --logic 100000 --seed 1

A step is one turn of one scenario in one state, played live or in a dry-run. Cases depend on the seed alone,
so that a run can be repeated. The first difference is minimized and printed as a case for a file of
`tests/conformance/vectors`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

from fuzz.comparison import (
    DifferenceError,
    Play,
    Programs,
    compare,
    compare_dry_runs,
    compare_logic,
    cores,
    is_valid,
)
from fuzz.shrink import shrunk
from peripety.engine import PERSONAS
from peripety.engine.backend_protocol import EngineError
from support.engine.seeded_specs import random_calls, random_data, random_logic, random_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


Json = dict[str, Any]

SCENARIOS_IN_BATCH = 10
EXPRESSIONS_IN_BATCH = 1000
MOST_TURNS = 60
MOST_DRY_TURNS = 1000  # of one dry-run: the interpreter plays all of them, and those that are looked ahead
# About how many turns it takes to weigh one action.
LOOKED_AHEAD = {
    "idle": 0,
    "random": 0,
    "greedy": 0.3,
    "saboteur": 0.3,
    "cautious": 1,
    "planner": 16,
    "curious": 0.3,
    "par": 0,
}
LATER = 0.4  # of the scenarios are of version 1.1
DETAILED = 0.5  # of the dry-runs
MID_TURN = 0.5  # of the states whose futures are compared
SHRINKING_SECONDS = 120
SECONDS_BETWEEN_LINES = 10


@dataclass(frozen=True)
class Found:
    """A difference.

    Attributes:
        kind: of the case: `play`, `dry_run`, `futures` or `logic`.
        case: as a golden vector of that kind has it.
        what: what differs.
        results: the different results, by where they come from.
    """

    kind: str
    case: Json
    what: str
    results: dict[str, Any]


@dataclass(frozen=True)
class Work:
    """Counts of compared cases."""

    scenarios: int = 0
    invalid: int = 0
    steps: int = 0
    dry_steps: int = 0
    expressions: int = 0
    found: Found | None = None

    def __add__(self, other: Work) -> Work:
        return Work(
            self.scenarios + other.scenarios,
            self.invalid + other.invalid,
            self.steps + other.steps,
            self.dry_steps + other.dry_steps,
            self.expressions + other.expressions,
            self.found or other.found,
        )


def compare_scenario(seed: int, number: int) -> Work:
    """Play and dry-run one random scenario."""
    random = Random(f"{seed}:{number}")
    spec = random_spec(random.getrandbits(64), later=random.random() < LATER)
    if not is_valid(spec):
        return Work(scenarios=1, invalid=1)
    case: Json = {}
    kind, steps, dry_steps = "play", 0, 0
    try:
        compiled = Programs(spec)
        for _ in range(random.randint(1, 3)):
            seed = random.getrandbits(64)
            play = Play(compiled, seed)
            case = {"spec": spec, "seed": str(seed), "calls": play.calls}
            steps += _go_on(random, spec, play, random.randint(1, MOST_TURNS))
        for _ in range(2):
            kind, case = "dry_run", {"spec": spec, "options": _options(random, spec)}
            dry_steps += compare_dry_runs(compiled, case["options"])
        options = {**_options(random, spec), "acted": random.random() < MID_TURN}
        play = Play(compiled, seed)
        kind, case = "futures", {"spec": spec, "seed": str(seed), "calls": play.calls, "options": options}
        steps += _come_to_a_present(random, spec, play)
        dry_steps += play.compare_futures(options)
    except DifferenceError as difference:
        return Work(1, 0, steps, dry_steps, 0, Found(kind, case, difference.what, difference.results))
    return Work(1, 0, steps, dry_steps)


def _go_on(random: Random, spec: Json, play: Play, turns: int) -> int:
    """Play until a turn or the end of the run; the turns played."""
    for turn in range(turns):
        for call in random_calls(random, spec, play.legal()):
            play.call(call)
        if play.ended:
            play.call({"step": True})  # nothing more can happen
            return turn + 1
    return turns


def _come_to_a_present(random: Random, spec: Json, play: Play) -> int:
    """Play for some turns, perhaps into the midst of one; the turns played."""
    turns = _go_on(random, spec, play, random.randint(1, MOST_TURNS // 4))
    if random.random() < MID_TURN:
        *calls, _step = random_calls(random, spec, play.legal())
        for call in calls:
            play.call(call)
    return turns


def _options(random: Random, spec: Json) -> Json:
    persona = random.choice((*PERSONAS, "random", "random"))
    most = int(MOST_DRY_TURNS / (1 + LOOKED_AHEAD[persona] * len(spec["actions"])))
    runs = min(random.choice((1, 3, 8, 20, 63, 64, 65, 130)), max(1, most))
    options = {
        "runs": runs,
        "first_run": random.choice((0, 0, 1, 1000, 2**53 - 200)),
        "seed": str(random.choice((random.getrandbits(64), 7, 0, 2**64 - 1))),
        "persona": persona,
        "horizon": min(random.choice((1, 2, 7, 20, 60, 1000)), max(1, most // runs)),
        "digest": True,
    }
    if random.random() < DETAILED:
        options["detail"] = True
        options["watch"] = [
            [f"state.{name}", random.choice((1, 0.1, 1e300))] for name in [*spec["state"]][:3]
        ]
    return options


def compare_expressions(seed: int, number: int, amount: int) -> Work:
    """Evaluate random expressions over random data."""
    random = Random(f"{seed}:logic:{number}")
    for done in range(amount):
        logic, data = random_logic(random), random_data(random)
        case = {"logic": json.dumps(logic), "data": json.dumps(data)}
        try:
            compare_logic(case)
        except DifferenceError as difference:
            return Work(expressions=done, found=Found("logic", case, difference.what, difference.results))
    return Work(expressions=amount)


# --- many of them ---


def _scenarios(seed: int, batch: int) -> Work:
    work = Work()
    for number in range(batch * SCENARIOS_IN_BATCH, (batch + 1) * SCENARIOS_IN_BATCH):
        work += compare_scenario(seed, number)
        if work.found:
            break
    return work


def _expressions(seed: int, batch: int) -> Work:
    return compare_expressions(seed, batch, EXPRESSIONS_IN_BATCH)


def _results(
    pool: ProcessPoolExecutor,
    workers: int,
    batch: Callable[[int, int], Work],
    seed: int,
) -> Iterator[Work]:
    """Yield the results of the batches, in order, without end; the workers are always busy."""
    pending: deque[Future[Work]] = deque()
    for number in count():
        pending.append(pool.submit(batch, seed, number))
        if len(pending) > 2 * workers:
            yield pending.popleft().result()


def run(*, steps: int, logic: int, seed: int, workers: int) -> Work:
    """Compare until there is enough, or a difference; print the progress on standard error."""
    began = told = time.monotonic()
    total = Work()
    with ProcessPoolExecutor(workers) as pool:
        results = {batch: _results(pool, workers, batch, seed) for batch in (_scenarios, _expressions)}
        while total.found is None:
            if total.steps + total.dry_steps < steps:
                total += next(results[_scenarios])
            elif total.expressions < logic:
                total += next(results[_expressions])
            else:
                break
            if time.monotonic() - told > SECONDS_BETWEEN_LINES:
                told = time.monotonic()
                sys.stderr.write(f"{told - began:6.0f} s: {_told(total)}\n")
        pool.shutdown(cancel_futures=True)
    return total


def _told(work: Work) -> str:
    return (
        f"{work.steps + work.dry_steps} steps ({work.steps} live) of {work.scenarios} scenarios, "
        f"{work.expressions} expressions"
    )


def minimised(found: Found) -> Found:
    """The same difference in the smallest case that a few minutes of leaving parts out can find."""

    def still_differs(case: Any) -> bool:
        try:
            if found.kind != "logic" and not is_valid(case["spec"]):
                return False
            compare(found.kind, case)
        except DifferenceError as difference:
            return difference.what == found.what
        except (EngineError, KeyError, TypeError, ValueError, AttributeError):
            return False
        return False

    case = found.case
    if found.kind == "logic":
        texts = {name: json.loads(text) for name, text in case.items()}
        small = shrunk(
            texts,
            lambda parts: still_differs({name: json.dumps(part) for name, part in parts.items()}),
            SHRINKING_SECONDS,
        )
        case = {name: json.dumps(part) for name, part in small.items()}
    else:
        case = shrunk(case, still_differs, SHRINKING_SECONDS)
    try:
        compare(found.kind, case)
    except DifferenceError as difference:
        return Found(found.kind, case, difference.what, difference.results)
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--logic", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    began = time.monotonic()
    work = run(steps=given.steps, logic=given.logic, seed=given.seed, workers=given.workers)
    say = sys.stdout.write
    which = ", ".join(cores())
    say(f"seed {given.seed}: {_told(work)} compared in {time.monotonic() - began:.0f} s on: {which}\n")
    if work.found is None:
        say("no difference\n")
        return
    say(f"{work.found.kind}: the {work.found.what} differs; making the case small\n")
    small = minimised(work.found)
    for name, result in small.results.items():
        say(f"{name}: {result!r}\n")
    say(f"{json.dumps(small.case)}\n")
    sys.exit(1)


if __name__ == "__main__":
    main()
