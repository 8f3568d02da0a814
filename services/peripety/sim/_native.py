"""The native core, behind the same door as the reference."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import peripety_simcore

from peripety.sim._core import CoreError, Screened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.sim._core import Data, PatternIndex, PatternRow, Refusal, Rule
    from peripety.sim.patterns.predicates import Predicate
    from peripety.sim.policies.types import ToolRequest

__all__ = ["NativeCore"]


class _Refusals:
    """What the native engine refuses, as the error that both cores raise."""

    def __enter__(self) -> None:
        """Nothing is kept: one object serves every call."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, peripety_simcore.SimcoreError):
            raise CoreError(error.code, error.message, error.path) from None


_REFUSALS = _Refusals()


class NativeCore:
    """The `Core` in Rust."""

    name = "native"
    version = peripety_simcore.__version__

    def parse(self, document: bytes) -> bytes:
        """The strict JSON border."""
        with _REFUSALS:
            return peripety_simcore.parse(document)

    def evaluate(self, logic: bytes, data: bytes) -> bytes:
        """JSONLogic over JSON data."""
        with _REFUSALS:
            return peripety_simcore.evaluate(logic, data)

    def rule(self, logic: Any, refusal: Refusal) -> Rule:
        """A rule: the native object itself, since a wrapper would take longer than many a rule."""
        return peripety_simcore.Rule(logic, refusal)

    def data(self, value: Any, refusal: Refusal) -> Data:
        """Data for rules."""
        return peripety_simcore.Data(value, refusal)

    def compile(self, document: bytes) -> _Program:
        """A program from a validated document."""
        program = _Program(document)
        with _REFUSALS:
            program.native = peripety_simcore.compile(document)
        return program

    def policy(self, document: bytes) -> _Policy:
        """A policy from a validated document."""
        with _REFUSALS:
            return _Policy(peripety_simcore.Policy(document))

    def screen(self, documents: Sequence[bytes], threads: int) -> list[Screened | None]:
        """The documents with which nothing is wrong."""
        return [
            None if spotless is None else Screened(spotless[0], _Program(spotless[0]), spotless[1])
            for spotless in peripety_simcore.screen(documents, threads)
        ]

    def draw(self, seed: int, stream: str, turn: int, index: int) -> int:
        """One keyed 64-bit draw."""
        return peripety_simcore.draw(seed, stream, turn, index)

    def run_seed(self, seed: int, run: int) -> int:
        """The seed of a dry-run."""
        return peripety_simcore.run_seed(seed, run)

    def patterns(self, predicates: Sequence[Sequence[Predicate]], rows: Sequence[PatternRow]) -> PatternIndex:
        """An index over patterns."""
        return peripety_simcore.Patterns([[*map(_given, known)] for known in predicates], rows)


def _given(predicate: Predicate) -> tuple[str, bool, bool, bool, list[str] | None, list[list[str]]]:
    literals = None if predicate.literals is None else [*predicate.literals]
    searched = predicate.spelled
    if searched is not None:
        return searched, True, False, False, literals, [[*each] for each in predicate.besides]
    return predicate.text, False, predicate.whole, predicate.folds, literals, []


class _State:
    """A native state as a `CoreState`."""

    def __init__(self, native: peripety_simcore.State) -> None:
        self.native = native

    def fork(self) -> _State:
        return _State(self.native.fork())

    def to_json(self) -> bytes:
        with _REFUSALS:
            return self.native.to_json()

    def tree(self) -> bytes:
        with _REFUSALS:
            return self.native.tree()

    def hash(self) -> str:
        with _REFUSALS:
            return self.native.hash()

    def completed(self) -> int:
        return self.native.turn()

    def standing(self) -> bytes:
        with _REFUSALS:
            return self.native.status()


class _Program:
    """A native program as a `CoreProgram`, compiled when it is first wanted: many are only looked through."""

    def __init__(self, document: bytes) -> None:
        self._document = document

    @cached_property
    def native(self) -> peripety_simcore.Program:
        return peripety_simcore.compile(self._document)

    def new_state(self, seed: int) -> _State:
        return _State(self.native.new_state(seed))

    def load_state(self, snapshot: bytes) -> _State:
        with _REFUSALS:
            return _State(self.native.load_state(snapshot))

    def legal_actions(self, state: _State) -> bytes:
        with _REFUSALS:
            return state.native.legal_actions()

    def act(self, state: _State, action_id: str, params: bytes) -> bytes:
        with _REFUSALS:
            return state.native.act(action_id, params)

    def narrate(self, state: _State, changes: bytes) -> bytes:
        with _REFUSALS:
            return state.native.narrate(changes)

    def step(self, state: _State) -> bytes:
        with _REFUSALS:
            return state.native.step()

    def roll(self, state: _State, request: bytes) -> bytes:
        with _REFUSALS:
            return state.native.roll(request)

    def dry_run(self, options: bytes) -> bytes:
        with _REFUSALS:
            return self.native.dry_run(options)

    def futures(self, state: _State, options: bytes) -> bytes:
        with _REFUSALS:
            return state.native.futures(options)

    def proves_nothing(self, horizon: int) -> bool:
        return self.native.proves_nothing(horizon)


class _Policy:
    """A native policy as a `CorePolicy`."""

    def __init__(self, native: peripety_simcore.Policy) -> None:
        self._native = native
        # The native methods themselves, since a wrapper would take as long as many a decision.
        self.decided = native.decided
        self.decided_each = native.decided_each

    def requests(self, requests: Sequence[bytes]) -> peripety_simcore.Requests:
        with _REFUSALS:
            return self._native.requests(requests)

    def read(self, requests: Sequence[ToolRequest]) -> peripety_simcore.Requests | None:
        return self._native.read(requests)

    def deciding(self, requests: peripety_simcore.Requests) -> tuple[bytes, bytes]:
        return self._native.deciding(requests)

    def unevaluated(self, requests: peripety_simcore.Requests, index: int) -> bytes:
        with _REFUSALS:
            return self._native.unevaluated(requests, index)

    def matches(self, requests: peripety_simcore.Requests, rules: bytes | None) -> list[tuple[bytes, bytes]]:
        with _REFUSALS:
            return self._native.matches(requests, rules)
