"""The reference core under a coverage-guided fuzzer, beside the native core if available: `make fuzz`.

    python -m fuzz.pure TARGET [options of libFuzzer] [corpus]

A finding is a difference, or an unexpected exception.
"""

from __future__ import annotations

import json
import math
import sys
from random import Random
from typing import TYPE_CHECKING, Any

import atheris

with atheris.instrument_imports(include=["peripety.engine._reference.backend"]):
    from peripety.engine import PERSONAS, paths
    from peripety.engine._reference import limits
    from peripety.engine.backend_protocol import EngineError
    from peripety.engine.canonical_json import canonicalize
    from peripety.engine.strict_json import parse_canonical

from fuzz.comparison import DifferenceError, Play, Programs, compare, compare_dry_runs, is_valid
from support.engine.seeded_specs import SHAPES, random_calls, random_data, random_logic, random_spec

if TYPE_CHECKING:
    from collections.abc import Callable

TURNS = 6
LATER = 0.4  # of the scenarios are of version 1.1
SMALL_SHAPES = [name for name in SHAPES if name not in {"wide", "many"}]


class Choices(Random):
    """A generator whose choices are the fuzzer's as long as its input lasts, so that it can learn."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.seed(0)
        self._input = atheris.FuzzedDataProvider(data)

    def random(self) -> float:
        """A number in [0, 1)."""
        return self.getrandbits(16) / (1 << 16)

    def getrandbits(self, k: int, /) -> int:
        """`k` bits."""
        if self._input.remaining_bytes() == 0:
            return super().getrandbits(k)
        bits: int = self._input.ConsumeUInt((k + 7) // 8)
        return bits & ((1 << k) - 1)


def border(data: bytes) -> None:
    """Any bytes as a document."""
    compare("border", {"hex": data.hex()})


def numbers(data: bytes) -> None:
    """Any numbers, written and read."""
    source = atheris.FuzzedDataProvider(data)
    values = [source.ConsumeFloat() for _ in range(4)]
    values = [value + 0.0 for value in values if math.isfinite(value)]
    assert parse_canonical(canonicalize(values)) == values


def names(data: bytes) -> None:
    """Any text as a path, a variable and a duration."""
    text = atheris.FuzzedDataProvider(data).ConsumeUnicodeNoSurrogates(200)
    for work in (paths.split_variable, limits.duration_in_minutes):
        _refused_or(work, text)
    path = _refused_or(paths.parse_path, text)
    assert path is None or paths.parse_path(paths.format_path(path)) == path


def _refused_or(work: Callable[[str], Any], text: str) -> Any:
    try:
        return work(text)
    except EngineError:
        return None


def logic(data: bytes) -> None:
    """Any expression over any data."""
    random = Choices(data)
    texts = json.dumps(random_logic(random)), json.dumps(random_data(random))
    compare("logic", dict(zip(("logic", "data"), texts, strict=True)))


def play(data: bytes) -> None:
    """Any scenario, played, with the futures of its turns, and dry-run."""
    random = Choices(data)
    spec = random_spec(random, shape=random.choice(SMALL_SHAPES), later=random.random() < LATER)
    if not is_valid(spec):
        return
    compiled, seed = Programs(spec), random.getrandbits(32)
    run = Play(compiled, seed)
    persona = random.choice(PERSONAS)
    options = {
        "runs": 2,
        "first_run": 0,
        "seed": "7",
        "persona": persona,
        "horizon": 2 if persona == "planner" else TURNS,
        "digest": True,
        "detail": True,
    }
    try:
        for _ in range(TURNS):
            for call in random_calls(random, spec, run.legal()):
                run.call(call)
            run.compare_futures({**options, "acted": random.random() < 0.5})
            if run.ended:
                break
        compare_dry_runs(compiled, options)
    except DifferenceError as difference:
        case = {"spec": spec, "seed": str(seed), "calls": run.calls, "options": options}
        difference.add_note(json.dumps(case))
        raise


TARGETS: dict[str, Callable[[bytes], None]] = {
    "border": border,
    "numbers": numbers,
    "names": names,
    "logic": logic,
    "play": play,
}


def main() -> None:
    """Fuzz the target that is named first on the command line."""
    program, target, *options = sys.argv
    atheris.Setup([program, *options], TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
