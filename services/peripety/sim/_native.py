"""Adapter from the Rust extension to the backend protocol."""

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
    """Context manager that converts errors of the extension to `CoreError`."""

    def __enter__(self) -> None:
        """Hold no state: one object serves every call."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, peripety_simcore.SimcoreError):
            raise CoreError(error.code, error.message, error.path) from None


_REFUSALS = _Refusals()


class NativeCore:
    """Backend in Rust."""

    name = "native"
    version = peripety_simcore.__version__

    def parse(self, document: bytes) -> bytes:
        """Parse strictly."""
        with _REFUSALS:
            return peripety_simcore.parse(document)

    def evaluate(self, logic: bytes, data: bytes) -> bytes:
        """Evaluate JSONLogic over JSON data."""
        with _REFUSALS:
            return peripety_simcore.evaluate(logic, data)

    def rule(self, logic: Any, refusal: Refusal) -> Rule:
        """Compile a rule; returns the native object, since a wrapper would cost more than many rules."""
        return peripety_simcore.Rule(logic, refusal)

    def data(self, value: Any, refusal: Refusal) -> Data:
        """Parse data for rules."""
        return peripety_simcore.Data(value, refusal)

    def compile(self, document: bytes) -> _Program:
        """Compile a validated document."""
        program = _Program(document)
        with _REFUSALS:
            program.native = peripety_simcore.compile(document)
        return program

    def policy(self, document: bytes) -> _Policy:
        """Compile a validated policy."""
        with _REFUSALS:
            return _Policy(peripety_simcore.Policy(document))

    def screen(self, documents: Sequence[bytes], threads: int) -> list[Screened | None]:
        """Validate and compile many documents."""
        return [
            None if spotless is None else Screened(spotless[0], _Program(spotless[0]), spotless[1])
            for spotless in peripety_simcore.screen(documents, threads)
        ]

    def draw(self, seed: int, stream: str, turn: int, index: int) -> int:
        """Return one keyed 64-bit draw."""
        return peripety_simcore.draw(seed, stream, turn, index)

    def run_seed(self, seed: int, run: int) -> int:
        """Return the seed of a dry-run."""
        return peripety_simcore.run_seed(seed, run)

    def patterns(self, predicates: Sequence[Sequence[Predicate]], rows: Sequence[PatternRow]) -> PatternIndex:
        """Build an index over patterns."""
        return peripety_simcore.Patterns([[*map(_given, known)] for known in predicates], rows)


def _given(predicate: Predicate) -> tuple[str, bool, bool, bool, list[str] | None, list[list[str]]]:
    literals = None if predicate.literals is None else [*predicate.literals]
    searched = predicate.spelled
    if searched is not None:
        return searched, True, False, False, literals, [[*each] for each in predicate.besides]
    return predicate.text, False, predicate.whole, predicate.folds, literals, []


class _State:
    """Native state as a `CoreState`."""

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
    """Native program as a `CoreProgram`, compiled on first use.

    Bulk validation often needs only the verdict.
    """

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
    """Native policy as a `CorePolicy`."""

    def __init__(self, native: peripety_simcore.Policy) -> None:
        self._native = native
        # The native methods are exposed directly: a wrapper would cost as much as many decisions.
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
