"""Predicates on one text, prepared for both backends."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from peripety.sim.patterns.automaton import Automaton
from peripety.sim.patterns.literals import likelihood, required
from peripety.sim.patterns.spelling import spelled
from peripety.sim.patterns.syntax import Assertion, Characters, Sequence, fold, require_text, tree
from peripety.sim.patterns.types import TextKind

if TYPE_CHECKING:
    from peripety.sim.patterns.literals import Literals
    from peripety.sim.patterns.syntax import Node
    from peripety.sim.patterns.types import TextPattern

__all__ = ["Comparison", "Predicate", "Search", "predicate"]


class Comparison:
    """Equality or substring test.

    Attributes:
        text: the text to find; folded if `folds`.
        whole: test for equality instead of a substring.
        folds: compare ASCII letters without case.
        spelled: always None: not a regular expression.
        besides: always empty.
        literals: literals of which a folded match contains one; None if nothing is required.
        likelihood: rough probability of a match, for ordering tests.
    """

    spelled = None
    besides: tuple[Literals, ...] = ()

    def __init__(self, text: str, *, whole: bool, folds: bool) -> None:
        folded = fold(text)
        self.text = folded if folds else text
        self.whole = whole
        self.folds = folds
        self.literals: Literals | None = frozenset([folded]) if text else None
        self.likelihood = 0.0 if whole else likelihood(self.literals) if self.literals else 1.0

    def holds(self, text: str, folded: str) -> bool:
        """Return True if a text matches; `folded` is the same text, folded."""
        given = folded if self.folds else text
        return given == self.text if self.whole else self.text in given


class Search:
    """Search for a regular expression.

    Attributes:
        text: always empty.
        whole: always False.
        folds: always False; the expression itself contains both cases.
        literals: literals of which a folded match contains one; None if nothing is known.
        besides: further sets; a match contains a literal of each.
        likelihood: as for comparisons.
    """

    text = ""
    whole = False
    folds = False

    def __init__(self, tree: Node) -> None:
        self._tree = tree
        sets = required(tree)
        self.literals = sets[0] if sets else None
        self.besides = sets[1:]
        self.likelihood = likelihood(sets[0]) if sets else 1.0

    @property
    def spelled(self) -> str:
        """The expression in the syntax of Rust's crate `regex`."""
        return spelled(self._tree)

    @cached_property
    def automaton(self) -> Automaton:
        """The automaton of the Python backend, built on first use."""
        return Automaton(self._tree)

    def holds(self, text: str, folded: str) -> bool:
        """Return True if a text contains a match; `folded` is the same text, folded."""
        return all(
            any(literal in folded for literal in literals) for literals in self.besides
        ) and self.automaton.matches(text)


Predicate = Comparison | Search


def predicate(pattern: TextPattern) -> Predicate:
    """Prepare a pattern; one that consists of plain characters becomes a comparison.

    Raises:
        PatternError: invalid syntax, over a limit, or not valid Unicode.
    """
    match pattern.kind:
        case TextKind.ANY:
            return Comparison("", whole=False, folds=False)
        case TextKind.EXACT | TextKind.CONTAINS:
            require_text(pattern.text)
            return Comparison(pattern.text, whole=pattern.kind is TextKind.EXACT, folds=pattern.ignore_case)
    found = tree(pattern)
    return _comparison(found) or Search(found)


def _comparison(tree: Node) -> Comparison | None:
    parts = tree.parts if isinstance(tree, Sequence) else (tree,)
    whole = len(parts) > 1 and parts[0] is Assertion.START and parts[-1] is Assertion.END
    characters = [_character(part) for part in (parts[1:-1] if whole else parts)]
    text = "".join(character for character, _ in characters if character is not None)
    cases = {folds for _, folds in characters if folds is not None}
    if len(text) < len(characters) or len(cases) > 1:
        return None
    return Comparison(text, whole=whole, folds=cases == {True})


def _character(node: Node) -> tuple[str | None, bool | None]:
    """Return the single character of a node and its case folding; None for a character without case."""
    if isinstance(node, Characters):
        codes = [code for span in node.ranges for code in span]
        letter = chr(codes[0]) if codes else ""
        has_case = letter.isascii() and letter.isalpha()
        if codes == [ord(letter)] * 2:
            return letter, False if has_case else None
        if has_case and codes == [ord(letter)] * 2 + [ord(letter.lower())] * 2:
            return letter.lower(), True
    return None, None
