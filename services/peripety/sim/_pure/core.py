"""Reference implementation of the backend protocol."""

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
    """Backend in plain Python, always available."""

    name = "python"
    version = __version__

    def parse(self, document: bytes) -> bytes:
        """Parse strictly."""
        return canonical(border.parse(document))

    def evaluate(self, logic: bytes, data: bytes) -> bytes:
        """Evaluate JSONLogic over JSON data."""
        return canonical(evaluate(border.parse_canonical(logic), border.parse_canonical(data)))

    def rule(self, logic: Any, refusal: Refusal) -> Rule:
        """Compile a rule."""
        return Rule(logic, refusal)

    def data(self, value: Any, refusal: Refusal) -> Data:
        """Parse data for rules."""
        return Data(value, refusal)

    def compile(self, document: bytes) -> Program:
        """Compile a validated document."""
        try:
            return Program(document)
        except (KeyError, TypeError, AttributeError):
            raise CoreError("SPEC_INVALID", "the document is not a valid scenario") from None

    def policy(self, document: bytes) -> Policy:
        """Compile a validated policy."""
        return Policy(document)

    def screen(self, documents: Sequence[bytes], threads: int) -> list[Screened | None]:  # noqa: ARG002 - single-threaded
        """Accept no document, so that each one passes the full validation."""
        return [None] * len(documents)

    def draw(self, seed: int, stream: str, turn: int, index: int) -> int:
        """Return one keyed 64-bit draw."""
        return rng.draw(seed, rng.stream_key(stream), turn, index)

    def run_seed(self, seed: int, run: int) -> int:
        """Return the seed of a dry-run."""
        return rng.run_seed(seed, run)

    def patterns(self, predicates: Sequence[Sequence[Predicate]], rows: Sequence[PatternRow]) -> PatternIndex:
        """Build an index over patterns."""
        return PatternIndex(predicates, rows)
