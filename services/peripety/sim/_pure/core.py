"""The reference core as a `Core`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety import __version__
from peripety.sim._core import CoreError
from peripety.sim._pure import border, rng
from peripety.sim._pure.canonical import canonical
from peripety.sim._pure.logic import evaluate
from peripety.sim._pure.patterns import PatternIndex
from peripety.sim._pure.policies.policy import Policy
from peripety.sim._pure.program import Program
from peripety.sim._pure.rules import Data, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.sim._core import PatternRow, Refusal, Screened
    from peripety.sim.patterns.predicates import Predicate

__all__ = ["PurePythonCore"]


class PurePythonCore:
    """The `Core` in Python; always there."""

    name = "python"
    version = __version__

    def parse(self, document: bytes) -> bytes:
        """The strict JSON border."""
        return canonical(border.parse(document))

    def evaluate(self, logic: bytes, data: bytes) -> bytes:
        """JSONLogic over JSON data."""
        return canonical(evaluate(border.parse_canonical(logic), border.parse_canonical(data)))

    def rule(self, logic: Any, refusal: Refusal) -> Rule:
        """A rule."""
        return Rule(logic, refusal)

    def data(self, value: Any, refusal: Refusal) -> Data:
        """Data for rules."""
        return Data(value, refusal)

    def compile(self, document: bytes) -> Program:
        """A program from a validated document."""
        try:
            return Program(document)
        except (KeyError, TypeError, AttributeError):
            raise CoreError("SPEC_INVALID", "the document is not a valid scenario") from None

    def policy(self, document: bytes) -> Policy:
        """A policy from a validated document."""
        return Policy(document)

    def screen(self, documents: Sequence[bytes], threads: int) -> list[Screened | None]:  # noqa: ARG002 - has no threads
        """Nothing is screened: the reference itself finds what is wrong."""
        return [None] * len(documents)

    def draw(self, seed: int, stream: str, turn: int, index: int) -> int:
        """One keyed 64-bit draw."""
        return rng.draw(seed, rng.stream_key(stream), turn, index)

    def run_seed(self, seed: int, run: int) -> int:
        """The seed of a dry-run."""
        return rng.run_seed(seed, run)

    def patterns(self, predicates: Sequence[Sequence[Predicate]], rows: Sequence[PatternRow]) -> PatternIndex:
        """An index over patterns."""
        return PatternIndex(predicates, rows)
