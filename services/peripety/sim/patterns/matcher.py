"""Index of many patterns that finds the first match without trying each one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.sim._backend import CORE
from peripety.sim._core import PatternRow
from peripety.sim.patterns.predicates import predicate
from peripety.sim.patterns.types import Subject, TextKind

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from peripety.sim._core import Core
    from peripety.sim.patterns.predicates import Predicate
    from peripety.sim.patterns.types import Pattern, TextPattern

__all__ = ["Matcher"]

_ALWAYS = (0, 2**63 - 1)


class Matcher:
    """Index of many patterns. Immutable and thread-safe.

    The cost of a match depends on the text and hardly on the number of patterns. Only patterns whose required
    literals occur in the text, and those without any, are tried.

    Args:
        patterns: the patterns, in order of priority.
        core: the backend; the active one by default.

    Raises:
        PatternError: the first invalid pattern.
    """

    def __init__(self, patterns: Sequence[Pattern], *, core: Core = CORE) -> None:
        self._size = len(patterns)
        texts, models, results = fields = _Field(), _Field(), _Field()
        rows = [
            _row(
                fields,
                (
                    texts.number(None if pattern.text.kind is TextKind.ANY else pattern.text),
                    models.number(pattern.model),
                    results.number(pattern.tool_result),
                ),
                pattern.message_index or _ALWAYS,
            )
            for pattern in patterns
        ]
        self._index = core.patterns([field.predicates for field in fields], rows)

    def __len__(self) -> int:
        return self._size

    def first(self, subject: Subject, skip: Container[int] = ()) -> int | None:
        """Return the number of the first pattern that matches and is not in `skip`, or None."""
        given = subject.text, subject.model, subject.tool_result, subject.message_index
        try:
            return self._index.first(*given, skip)
        except UnicodeEncodeError:
            return self.first(_unicode(subject), skip)

    def matches(self, index: int, subject: Subject) -> bool:
        """Return True if one pattern matches, independently of earlier patterns.

        Raises:
            IndexError: the index does not exist.
        """
        given = subject.text, subject.model, subject.tool_result, subject.message_index
        if not 0 <= index < self._size:
            raise IndexError(index)
        try:
            return self._index.matches(index, *given)
        except UnicodeEncodeError:
            return self.matches(index, _unicode(subject))


class _Field:
    """Distinct predicates of one text of a subject."""

    def __init__(self) -> None:
        self.predicates: list[Predicate] = []
        self._numbers: dict[TextPattern, int] = {}

    def number(self, pattern: TextPattern | None) -> int | None:
        """Return the number of a pattern's predicate, adding it if it is new."""
        if pattern is None:
            return None
        number = self._numbers.get(pattern)
        if number is None:
            number = self._numbers[pattern] = len(self.predicates)
            self.predicates.append(predicate(pattern))
        return number


def _row(
    fields: Sequence[_Field], numbers: tuple[int | None, int | None, int | None], indices: tuple[int, int]
) -> PatternRow:
    likelihoods = [
        (fields[field].predicates[number].likelihood, field)
        for field, number in enumerate(numbers)
        if number is not None
    ]
    return PatternRow(numbers, min(likelihoods)[1] if likelihoods else None, *indices)


def _unicode(subject: Subject) -> Subject:
    """Replace each lone surrogate by a replacement character, as decoders do."""
    return Subject(
        _replaced(subject.text),
        _replaced(subject.model),
        None if subject.tool_result is None else _replaced(subject.tool_result),
        subject.message_index,
    )


def _replaced(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
