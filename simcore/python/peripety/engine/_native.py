"""Adapter from the Rust extension to the backend protocol."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import peripety_simcore

from peripety.engine.backend_protocol import EngineError, ValidatedSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.engine.backend_protocol import (
        CompiledRule,
        ErrorFactory,
        PatternIndex,
        PatternRow,
        RuleData,
    )
    from peripety.engine.patterns.predicates import Predicate
    from peripety.engine.policies.types import ToolRequest


class _ErrorTranslation:
    """Context manager that converts errors of the extension to `EngineError`."""

    def __enter__(self) -> None:
        """Hold no state: one object serves every call."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, peripety_simcore.SimcoreError):
            raise EngineError(error.code, error.message, error.path) from None


_TRANSLATE_ERRORS = _ErrorTranslation()


class NativeBackend:
    """Backend in Rust."""

    name = "native"
    version = peripety_simcore.__version__

    def parse(self, document: bytes) -> bytes:
        """Parse strictly."""
        with _TRANSLATE_ERRORS:
            return peripety_simcore.parse(document)

    def evaluate(self, logic: bytes, data: bytes) -> bytes:
        """Evaluate JSONLogic over JSON data."""
        with _TRANSLATE_ERRORS:
            return peripety_simcore.evaluate(logic, data)

    def compile_rule(self, logic: Any, make_error: ErrorFactory) -> CompiledRule:
        """Compile a rule; returns the native object, since a wrapper would cost more than many rules."""
        return peripety_simcore.Rule(logic, make_error)

    def parse_data(self, value: Any, make_error: ErrorFactory) -> RuleData:
        """Parse data for rules."""
        return peripety_simcore.Data(value, make_error)

    def compile(self, document: bytes) -> _NativeProgram:
        """Compile a validated document."""
        program = _NativeProgram(document)
        with _TRANSLATE_ERRORS:
            program.native = peripety_simcore.compile(document)
        return program

    def compile_policy(self, document: bytes) -> _NativePolicy:
        """Compile a validated policy."""
        with _TRANSLATE_ERRORS:
            return _NativePolicy(peripety_simcore.Policy(document))

    def validate_many(self, documents: Sequence[bytes], threads: int) -> list[ValidatedSpec | None]:
        """Validate and compile many documents."""
        return [
            None if spotless is None else ValidatedSpec(spotless[0], _NativeProgram(spotless[0]), spotless[1])
            for spotless in peripety_simcore.validate_many(documents, threads)
        ]

    def draw(self, seed: int, stream: str, turn: int, index: int) -> int:
        """Return one keyed 64-bit draw."""
        return peripety_simcore.draw(seed, stream, turn, index)

    def run_seed(self, seed: int, run: int) -> int:
        """Return the seed of a dry-run."""
        return peripety_simcore.run_seed(seed, run)

    def build_pattern_index(
        self,
        predicates: Sequence[Sequence[Predicate]],
        rows: Sequence[PatternRow],
    ) -> PatternIndex:
        """Build an index over patterns."""
        return peripety_simcore.Patterns([[*map(_to_native_predicate, known)] for known in predicates], rows)


def _to_native_predicate(
    predicate: Predicate,
) -> tuple[str, bool, bool, bool, list[str] | None, list[list[str]]]:
    literals = None if predicate.literals is None else [*predicate.literals]
    searched = predicate.regex
    if searched is not None:
        return searched, True, False, False, literals, [[*each] for each in predicate.other_literals]
    return predicate.text, False, predicate.is_whole, predicate.is_folded, literals, []


class _NativeState:
    """Native state as a `BackendState`."""

    def __init__(self, native: peripety_simcore.State) -> None:
        self.native = native

    def fork(self) -> _NativeState:
        return _NativeState(self.native.fork())

    def to_json(self) -> bytes:
        with _TRANSLATE_ERRORS:
            return self.native.to_json()

    def tree(self) -> bytes:
        with _TRANSLATE_ERRORS:
            return self.native.tree()

    def hash(self) -> str:
        with _TRANSLATE_ERRORS:
            return self.native.hash()

    def completed_turns(self) -> int:
        return self.native.turn()

    def status_json(self) -> bytes:
        with _TRANSLATE_ERRORS:
            return self.native.status()


class _NativeProgram:
    """Native program as a `BackendProgram`, compiled on first use.

    Bulk validation often needs only the verdict.
    """

    def __init__(self, document: bytes) -> None:
        self._document = document

    @cached_property
    def native(self) -> peripety_simcore.Program:
        return peripety_simcore.compile(self._document)

    def new_state(self, seed: int) -> _NativeState:
        return _NativeState(self.native.new_state(seed))

    def load_state(self, snapshot: bytes) -> _NativeState:
        with _TRANSLATE_ERRORS:
            return _NativeState(self.native.load_state(snapshot))

    def legal_actions(self, state: _NativeState) -> bytes:
        with _TRANSLATE_ERRORS:
            return state.native.legal_actions()

    def act(self, state: _NativeState, action_id: str, params: bytes) -> bytes:
        with _TRANSLATE_ERRORS:
            return state.native.act(action_id, params)

    def narrate(self, state: _NativeState, changes: bytes) -> bytes:
        with _TRANSLATE_ERRORS:
            return state.native.narrate(changes)

    def step(self, state: _NativeState) -> bytes:
        with _TRANSLATE_ERRORS:
            return state.native.step()

    def roll(self, state: _NativeState, request: bytes) -> bytes:
        with _TRANSLATE_ERRORS:
            return state.native.roll(request)

    def dry_run(self, options: bytes) -> bytes:
        with _TRANSLATE_ERRORS:
            return self.native.dry_run(options)

    def simulate_from(self, state: _NativeState, options: bytes) -> bytes:
        with _TRANSLATE_ERRORS:
            return state.native.simulate_from(options)

    def has_nothing_to_prove(self, horizon: int) -> bool:
        return self.native.has_nothing_to_prove(horizon)


class _NativePolicy:
    """Native policy as a `CorePolicy`."""

    def __init__(self, native: peripety_simcore.Policy) -> None:
        self._native = native
        # The native methods are exposed directly: a wrapper would cost as much as many decisions.
        self.decide_one = native.decide_one
        self.decide_many_fast = native.decide_many_fast

    def parse_requests(self, requests: Sequence[bytes]) -> peripety_simcore.Requests:
        with _TRANSLATE_ERRORS:
            return self._native.parse_requests(requests)

    def prepare(self, requests: Sequence[ToolRequest]) -> peripety_simcore.Requests | None:
        return self._native.prepare(requests)

    def decide_many(self, requests: peripety_simcore.Requests) -> tuple[bytes, bytes]:
        return self._native.decide_many(requests)

    def explain_errors(self, requests: peripety_simcore.Requests, index: int) -> bytes:
        with _TRANSLATE_ERRORS:
            return self._native.explain_errors(requests, index)

    def match_rules(
        self,
        requests: peripety_simcore.Requests,
        rules: bytes | None,
    ) -> list[tuple[bytes, bytes]]:
        with _TRANSLATE_ERRORS:
            return self._native.match_rules(requests, rules)
