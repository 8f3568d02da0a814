"""Pattern matcher: finds the first of many rules that matches a prompt, without trying each one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.engine._backend import ACTIVE_BACKEND
from peripety.engine.backend_protocol import PatternRow
from peripety.engine.patterns.predicates import compile_predicate
from peripety.engine.patterns.syntax import MatchSubject, Pattern, TextKind, TextPattern

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from peripety.engine.backend_protocol import Backend
    from peripety.engine.patterns.predicates import Predicate


_ANY_INDEX = (0, 2**63 - 1)


class PatternMatcher:
    """Index of many patterns. Immutable and thread-safe.

    The cost of a match depends on the text and hardly on the number of patterns. Only patterns whose required
    literals occur in the text, and those without any, are tried.

    Args:
        patterns: the patterns, in order of priority.
        backend: the backend; the active one by default.

    Raises:
        PatternError: the first invalid pattern.
    """

    def __init__(self, patterns: Sequence[Pattern], *, backend: Backend = ACTIVE_BACKEND) -> None:
        self._size = len(patterns)
        texts, models, results = fields = _FieldPredicates(), _FieldPredicates(), _FieldPredicates()
        rows = [
            _build_row(
                fields,
                (
                    texts.number_of(None if pattern.text.kind is TextKind.ANY else pattern.text),
                    models.number_of(pattern.model),
                    results.number_of(pattern.tool_result),
                ),
                pattern.message_index or _ANY_INDEX,
            )
            for pattern in patterns
        ]
        self._index = backend.build_pattern_index([field.predicates for field in fields], rows)

    def __len__(self) -> int:
        return self._size

    def first(self, subject: MatchSubject, skip: Container[int] = ()) -> int | None:
        """Return the number of the first pattern that matches and is not in `skip`, or None."""
        given = subject.text, subject.model, subject.tool_result, subject.message_index
        try:
            return self._index.first(*given, skip)
        except UnicodeEncodeError:
            return self.first(_replace_surrogates(subject), skip)

    def matches(self, index: int, subject: MatchSubject) -> bool:
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
            return self.matches(index, _replace_surrogates(subject))


class _FieldPredicates:
    """Distinct predicates of one text of a subject."""

    def __init__(self) -> None:
        self.predicates: list[Predicate] = []
        self._numbers: dict[TextPattern, int] = {}

    def number_of(self, pattern: TextPattern | None) -> int | None:
        """Return the number of a pattern's predicate, adding it if it is new."""
        if pattern is None:
            return None
        number = self._numbers.get(pattern)
        if number is None:
            number = self._numbers[pattern] = len(self.predicates)
            self.predicates.append(compile_predicate(pattern))
        return number


def _build_row(
    fields: Sequence[_FieldPredicates],
    numbers: tuple[int | None, int | None, int | None],
    indices: tuple[int, int],
) -> PatternRow:
    likelihoods = [
        (fields[field].predicates[number].likelihood, field)
        for field, number in enumerate(numbers)
        if number is not None
    ]
    return PatternRow(numbers, min(likelihoods)[1] if likelihoods else None, *indices)


def _replace_surrogates(subject: MatchSubject) -> MatchSubject:
    """Replace each lone surrogate by a replacement character, as decoders do."""
    return MatchSubject(
        _replace_in_text(subject.text),
        _replace_in_text(subject.model),
        None if subject.tool_result is None else _replace_in_text(subject.tool_result),
        subject.message_index,
    )


def _replace_in_text(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
