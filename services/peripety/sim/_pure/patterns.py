"""Pattern index in Python: a pattern is tried only where a part of a required literal occurs."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from peripety.sim._core import PatternRow
    from peripety.sim.patterns.predicates import Predicate

__all__ = ["PatternIndex"]

_LENGTHS = (8, 4, 2, 1)  # lengths of literal parts to search for, in characters
_FEW = 16  # up to this number of parts, each is searched for separately


class PatternIndex:
    """`PatternIndex` in Python."""

    def __init__(self, predicates: Sequence[Sequence[Predicate]], rows: Sequence[PatternRow]) -> None:
        self._predicates = predicates
        self._rows = rows
        self._everywhere = [number for number, row in enumerate(rows) if row.anchor is None]
        self._fields = [_Field(known, rows, field) for field, known in enumerate(predicates)]

    def first(
        self,
        text: str,
        model: str,
        tool_result: str | None,
        message_index: int,
        skip: Container[int],
        /,
    ) -> int | None:
        """Return the number of the first pattern that matches and is not in `skip`."""
        subject = _Subject(self._predicates, (text, model, tool_result), message_index)
        candidates = {*self._everywhere}
        for field, given, folded in zip(self._fields, subject.texts, subject.folded, strict=True):
            if given is not None and folded is not None:
                candidates.update(field.candidates(given, folded))
        for number in sorted(candidates):
            if number not in skip and subject.is_like(self._rows[number]):
                return number
        return None

    def matches(
        self, index: int, text: str, model: str, tool_result: str | None, message_index: int, /
    ) -> bool:
        """Return True if one pattern matches."""
        subject = _Subject(self._predicates, (text, model, tool_result), message_index)
        return subject.is_like(self._rows[index])


class _Subject:
    """Subject of a match, with cached results of predicates."""

    def __init__(
        self, predicates: Sequence[Sequence[Predicate]], texts: tuple[str | None, ...], message_index: int
    ) -> None:
        self.texts = texts
        self.folded = [None if text is None else _folded(text) for text in texts]
        self._predicates = predicates
        self._message_index = message_index
        self._known: dict[tuple[int, int], bool] = {}

    def is_like(self, row: PatternRow) -> bool:
        return row.first <= self._message_index <= row.last and all(
            number is None or self._holds(field, number) for field, number in enumerate(row.predicates)
        )

    def _holds(self, field: int, number: int) -> bool:
        holds = self._known.get((field, number))
        if holds is None:
            text, folded = self.texts[field], self.folded[field]
            holds = (
                text is not None
                and folded is not None
                and self._predicates[field][number].holds(text, folded)
            )
            self._known[field, number] = holds
        return holds


def _folded(text: str) -> str:
    return text.encode("utf-8").lower().decode("utf-8")


class _Field:
    """Patterns that are found by one of the texts."""

    def __init__(self, predicates: Sequence[Predicate], rows: Sequence[PatternRow], field: int) -> None:
        self._equal: dict[str, list[int]] = defaultdict(list)
        self._equal_folded: dict[str, list[int]] = defaultdict(list)
        self._rest: list[int] = []
        by_literal: dict[str, list[int]] = defaultdict(list)
        for number, row in enumerate(rows):
            found_by = row.predicates[field]
            if row.anchor != field or found_by is None:
                continue
            predicate = predicates[found_by]
            if predicate.whole:
                (self._equal_folded if predicate.folds else self._equal)[predicate.text].append(number)
            elif predicate.literals is None:
                self._rest.append(number)
            else:
                for literal in predicate.literals:
                    by_literal[literal].append(number)
        self._parts = _by_rarest_part(by_literal)

    def candidates(self, text: str, folded: str) -> Iterator[int]:
        """Yield the patterns that may match a text, possibly with repetitions."""
        yield from self._equal.get(text, ())
        yield from self._equal_folded.get(folded, ())
        yield from self._rest
        for length, parts in self._parts.items():
            for part in _occurring(parts, length, folded):
                yield from parts[part]


def _by_rarest_part(by_literal: dict[str, list[int]]) -> dict[int, dict[str, list[int]]]:
    """Group patterns by the rarest part of each of their literals, by its length."""
    common = Counter(part for literal in by_literal for part in {*_parts_of(literal)})
    parts: dict[int, dict[str, list[int]]] = {}
    for literal, numbers in by_literal.items():
        rarest = min(_parts_of(literal), key=common.__getitem__)
        parts.setdefault(len(rarest), {}).setdefault(rarest, []).extend(numbers)
    return parts


def _parts_of(literal: str) -> list[str]:
    length = next(length for length in _LENGTHS if length <= len(literal))
    return [literal[start : start + length] for start in range(len(literal) - length + 1)]


def _occurring(parts: dict[str, list[int]], length: int, text: str) -> Iterable[str]:
    if len(parts) <= _FEW:
        return [part for part in parts if part in text]
    return parts.keys() & {text[start : start + length] for start in range(len(text) - length + 1)}
