"""Both cores over one case, to the byte.

A case has the form of a golden vector of its kind, so that a failing case can become a vector unchanged.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.engine._backend import load_backend
from peripety.engine._reference.dry_run import dry_run
from peripety.engine._reference.state import Rules
from peripety.engine.backend_protocol import EngineError
from peripety.engine.canonical_json import canonicalize
from peripety.engine.strict_json import parse_canonical
from peripety.engine.types import DryRunReport
from peripety.errors import Severity
from support.engine.backends import lowered_document
from support.engine.vectors import called

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from peripety.engine.backend_protocol import Backend, BackendProgram, BackendState


Json = dict[str, Any]


class DifferenceError(Exception):
    """Two ways to compute the same thing gave different bytes."""

    def __init__(self, what: str, results: dict[str, Any]) -> None:
        super().__init__(what)
        self.what = what
        self.results = results


def compare(kind: str, case: Json) -> None:
    """Compute a case in every way there is.

    Raises:
        DifferenceError: two of them differ.
    """
    if kind == "border":
        compare_border(case)
    elif kind == "logic":
        compare_logic(case)
    elif kind == "dry_run":
        compare_dry_runs(Programs(case["spec"]), case["options"])
    else:
        play = Play(Programs(case["spec"]), int(case["seed"]))
        for call in case["calls"]:
            play.call(call)
        if kind == "futures":
            play.compare_futures(case["options"])


@cache
def cores() -> dict[str, Backend]:
    """The cores that are installed, by name; the reference comes first."""
    with suppress(ModuleNotFoundError):
        return {name: load_backend(name) for name in ("python", "native")}
    return {"python": load_backend("python")}


def is_valid(spec: Any) -> bool:
    """Return True if a scenario would be compiled; only those have a meaning to compare."""
    return not any(finding.severity is Severity.ERROR for finding in engine.validate(json.dumps(spec)))


def outcome(work: Callable[[], Any]) -> Any:
    """Return the result of a call, or its error. Any other exception is a finding by itself."""
    try:
        return work()
    except EngineError as error:
        return (error.code, error.message, error.path)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of the native core is no `Exception`
        raise DifferenceError(f"kind of outcome, a {type(error).__name__},", {"crash": repr(error)}) from None


def assert_equal(what: str, results: dict[str, Any]) -> Any:
    first, *others = results.values()
    if any(other != first for other in others):
        raise DifferenceError(what, results)
    return first


class Programs:
    """A scenario compiled on each core.

    Attributes:
        on: the program, by the name of its core; the reference comes first.
        rules: what the reference reads when it plays rule by rule, as the oracle.
    """

    def __init__(self, spec: Json) -> None:
        document = lowered_document(spec)
        self.on: dict[str, BackendProgram] = {name: core.compile(document) for name, core in cores().items()}
        self.rules = Rules(document)


# --- live turns ---


class _Run:
    """A run that continues from its own snapshot every so many calls, or never."""

    def __init__(self, program: BackendProgram, seed: int, reload_every: int) -> None:
        self.program = program
        self.state: BackendState = program.new_state(seed)
        self.reload_every = reload_every
        self.calls = 0

    def call(self, call: Json) -> Any:
        self.calls += 1
        if self.reload_every and self.calls % self.reload_every == 0:
            self.state = self.program.load_state(self.state.to_json())
        return called(self.program, self.state, call)


class Play:
    """One run of a scenario on every core at once, with and without snapshots and forks in between.

    Attributes:
        calls: what was done so far, as golden vectors have it.
        ended: whether the run is over.
    """

    def __init__(self, programs: Programs, seed: int) -> None:
        self.calls: list[Json] = []
        self.ended = False
        self._runs = {name: _Run(program, seed, 0) for name, program in programs.on.items()}
        self._last = self._runs[name := [*programs.on][-1]]
        self._runs[f"{name}, reloaded before each call"] = _Run(programs.on[name], seed, 1)
        self._runs["python, reloaded now and then"] = _Run(programs.on["python"], seed, 5)

    def legal(self) -> list[str]:
        """The ids of the actions that are legal now; none when that fails."""
        legal = self._all("legal actions", lambda run: run.program.legal_actions(run.state))
        return json.loads(legal) if isinstance(legal, bytes) else []

    def call(self, call: Json) -> None:
        """Do something, and compare its results; after a step, everything that can be seen."""
        self.calls.append(call)
        before, fork = self._last.state.to_json(), self._last.state.fork()
        result = self._all("result", lambda run: run.call(call))
        assert_equal("a fork, after the call", {"before": before, "after": fork.to_json()})
        if isinstance(result, tuple):
            after = self._all("snapshot", lambda run: run.state.to_json())
            assert_equal("the state, after a call that failed", {"before": before, "after": after})
        elif "step" in call:
            after = self._all("snapshot", lambda run: run.state.to_json())
            self._all("hash", lambda run: hashlib.sha256(run.state.tree()).hexdigest())
            self.ended = b'"status":{"kind":"ongoing"}' not in after

    def compare_futures(self, options: Json) -> int:
        """Compare the futures of the state, computed in every way; return the number of turns."""
        before = self._last.state.to_json()
        runs = sorted(self._runs.items(), key=lambda named: named[1] is self._last)
        ways = {name: partial(run.program.simulate_from, run.state) for name, run in runs}
        turns = _compare_reports(ways, options)
        assert_equal("a state, after its futures", {"before": before, "after": self._last.state.to_json()})
        return turns

    def _all(self, what: str, work: Callable[[_Run], Any]) -> Any:
        return assert_equal(what, {name: outcome(partial(work, run)) for name, run in self._runs.items()})


# --- dry-runs ---


def compare_dry_runs(programs: Programs, options: Json) -> int:
    """A dry-run in every way to compute it, and in parts; the number of its turns."""
    read = parse_canonical(engine.canonicalize(options))
    ways: dict[str, Callable[[bytes], bytes]] = {
        "rule by rule": lambda _: canonicalize(dry_run(programs.rules, read)),
        **{name: program.dry_run for name, program in programs.on.items()},
    }
    return _compare_reports(ways, options)


def _compare_reports(ways: Mapping[str, Callable[[bytes], bytes]], options: Json) -> int:
    """Compare the reports of several implementations, by name; the last also computes its parts."""
    report = assert_equal("report", _reports(ways, options))
    if not isinstance(report, bytes):
        return 0
    whole = DryRunReport.from_json(json.loads(report))
    runs, first, play = whole.runs, whole.first_run, ways[[*ways][-1]]
    for size in sorted({1, runs // 2, runs - 1} - {0, runs}):
        parts = [
            DryRunReport.from_json(json.loads(play(engine.canonicalize({**options, **part}))))
            for part in (
                {"first_run": first, "runs": size},
                {"first_run": first + size, "runs": runs - size},
            )
        ]
        merged = {"whole": replace(whole, digest=None), "parts": parts[0].merge(parts[1])}
        assert_equal(f"sum of the parts of {size} and {runs - size} runs", merged)
    return whole.turns


def _reports(ways: Mapping[str, Callable[[bytes], bytes]], options: Json) -> dict[str, Any]:
    """The report, by the way in which it was computed, the native one on several numbers of threads."""
    asked = {"": options, ", 1 thread": {**options, "threads": 1}, ", 3 threads": {**options, "threads": 3}}
    return {
        name + how: outcome(partial(play, engine.canonicalize(these)))
        for name, play in ways.items()
        for how, these in (asked.items() if name == "native" else [("", options)])
    }


# --- documents and expressions ---


def compare_border(case: Json) -> None:
    """Any bytes as a document, as `hex`; what passes has one canonical form."""
    document = bytes.fromhex(case["hex"])
    text = assert_equal(
        "value",
        {name: outcome(partial(core.parse, document)) for name, core in cores().items()},
    )
    if isinstance(text, bytes):
        assert_equal("canonical form", {"once": text, "twice": canonicalize(parse_canonical(text))})


def compare_logic(case: Json) -> None:
    """An expression over data; both are JSON text."""
    texts = case["logic"].encode("utf-8"), case["data"].encode("utf-8")
    assert_equal("value", {name: outcome(partial(core.evaluate, *texts)) for name, core in cores().items()})
