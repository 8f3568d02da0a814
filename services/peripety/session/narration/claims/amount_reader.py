"""Amounts in groups of words, and their values in the record."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from peripety.session.narration.claims.record import Contradiction
from peripety.session.narration.claims.words import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peripety.session.narration.claims.clauses import Clause, Group, Sentence
    from peripety.session.narration.claims.record import TurnFacts
    from peripety.session.narration.claims.words import Word


_TOLERANCE = 1e-6
_VAGUE = words(
    "about around nearly almost roughly some approximately maybe perhaps or another further more extra like"
)
_LEFT = words("left remaining remain remains remained")
_EARLIER = words(
    "morning noon earlier started began before once first originally was were had from instead out been"
)
_AMOUNT_WORDS = words(
    "number level amount stock count supply store stores reserve reserves gauge "
    "tally total pile heap quantity sum reading meter pair couple handful trust"
)
_RATIO_MARGIN = 0.1


class AmountReader:
    """Reader of the amounts in groups of words, and of their values in the record.

    Args:
        facts: the turn.
        is_past: True if the past is the tense of the story.
    """

    def __init__(self, facts: TurnFacts, *, is_past: bool = False) -> None:
        self._facts = facts
        self.is_past = is_past
        self.quantities = facts.before.quantities | facts.after.quantities

    def quantity_of(self, group: Group | None) -> list[str]:
        """Return the paths of the quantity that a group is about."""
        if group is None:
            return []
        paths = paths_of(group.head)
        is_count = (
            group.word in _AMOUNT_WORDS or group.head.number is not None or group.head.tag in {"det", "adj"}
        )
        is_part = group.word in words(
            "rest last all half most none any much drop trace bit one each crumb scrap speck ounce shred"
        )
        if not paths and group.of is not None and (is_count or is_part or self.is_unit(group)):
            paths = self.quantity_of(group.of)
        if not paths and group.word in _AMOUNT_WORDS and len(group.tokens) > 1:
            paths = next((found for token in group.tokens[:-1] if (found := paths_of(token))), [])
        return paths

    def is_unit(self, group: Group) -> bool:
        """Return True if a group ends in the unit of a quantity."""
        return any(kind == "unit" for kind, _ in group.head.refs)

    def numbered(self, group: Group) -> tuple[list[str], float | None]:
        """Return the quantity of a group, and the number in it: `four of them`, `3 l of x`."""
        number = next((token.number for token in group.tokens if token.number is not None), None)
        if number is None:
            told_words = [token.word for token in group.tokens]
            is_two = told_words[0] == "both" or group.word in {"pair", "couple"}
            number = 2.0 if is_two else 1.0 if "single" in told_words or "lone" in told_words else None
        if number is None or (group.word == "one" and len(group.tokens) > 1):
            return [], None
        paths = self.quantity_of(group)
        if not paths and group.of is None:
            paths = [path for kind, path in group.head.refs if kind == "unit"]
        return paths, number

    def inner_number(self, group: Group) -> float | None:
        """Return the number of `a pressure of 70`."""
        return (
            bare_number(group.of, is_unit=self.is_unit(group.of))
            if group.of is not None and paths_of(group.head)
            else None
        )

    def is_loose(self, sentence: Sentence, group: Group) -> bool:
        """Return True if the number of a group is not exact, or another number: `about four`, `four more`."""
        place = sentence.tokens.index(group.tokens[0])
        before = {token.word for token in sentence.tokens[max(0, place - 2) : place]}
        return bool((before | {token.word for token in group.tokens}) & _VAGUE)

    def bound(self, sentence: Sentence, group: Group) -> int:
        """Return 1 if a group names a lower bound, -1 for an upper bound, else 0."""
        place = sentence.tokens.index(group.tokens[0])
        before = [token.word for token in sentence.tokens[max(0, place - 3) : place + 1]]
        if {"least", "over"} & set(before) or ("than" in before and "more" in before):
            return -1 if "no" in before else 1
        if words("most under barely hardly scarcely") & set(before) or (
            "than" in before and {"less", "fewer"} & set(before)
        ):
            return 1 if "no" in before else -1
        return 0

    def values_of(self, path: str) -> list[float]:
        """Return the values of a path in the turn, in order."""
        return self._facts.values_of(path)

    def values(self, paths: Iterable[str]) -> list[float]:
        """Return all values of some paths in the turn."""
        return [value for path in paths for value in self._facts.values_of(path)]

    def has_value(self, paths: Iterable[str], number: float) -> bool:
        """Return True if some path had a value in the turn, rounded."""
        return any(is_rounded(number, value) for value in self.values(paths))

    def steps(self, paths: Iterable[str]) -> set[float]:
        """Return the differences between all values that the paths had in the turn, in order."""
        pairs = (pair for path in paths for pair in combinations(self._facts.values_of(path), 2))
        return {later - earlier for earlier, later in pairs}

    def end_step(self, path: str) -> float:
        """Return the difference between the last and the first value of a path."""
        values = self._facts.values_of(path)
        return values[-1] - values[0] if values else 0.0

    def factor_is_wrong(self, paths: Iterable[str], factor: float) -> bool:
        """Return True if no path was multiplied by a factor in the turn."""
        known = [values for path in paths if (values := self._facts.values_of(path))]
        return bool(known) and not any(
            abs(first * factor - later) <= _RATIO_MARGIN * max(abs(first), 1.0) + 0.5
            for first, *rest in known
            for later in rest
        )

    def narrow(self, paths: list[str], sentence: Sentence) -> list[str]:
        """Return the paths of the entities that a sentence names, if they have any."""
        owners = {*sentence.named("entity")}
        own = [path for path in paths if path in self.quantities and self.quantities[path].owner in owners]
        return own or paths

    def is_not_empty(self, paths: list[str]) -> bool:
        """Return True if the paths were not zero in the turn."""
        values = self.values(paths)
        return bool(values) and not any(is_rounded(0.0, value) for value in values)

    def is_outdated(
        self,
        sentence: Sentence,
        paths: list[str],
        number: float,
        context: Sequence[Word],
        *,
        is_same: bool = False,
    ) -> bool:
        """Return True if a number is only the value before the turn, and no other one is named.

        Args:
            sentence: the sentence.
            paths: the paths of the quantity.
            number: the number.
            context: the tokens of the sentence before.
            is_same: True if the sentence states that it is still the value.
        """
        known = [values for path in paths if (values := self._facts.values_of(path))]
        current = [value for values in known for value in values[1:]]
        if not current or any(is_rounded(number, value) for value in current):
            return False
        tokens = [*context, *sentence.tokens]
        if {"other", "first"} & {token.word for token in sentence.tokens}:
            return False
        others = [
            token.number
            for token, after in zip(tokens, [*tokens[1:], None], strict=True)
            if token.number is not None
            and not (after is not None and after.tag == "noun" and not after.refs and after.word not in _LEFT)
        ]
        if any(is_rounded(other, value) for other in others for value in current):
            return False
        if is_same:
            return True
        return not _EARLIER & {token.word for token in sentence.tokens} - (
            {"was", "were", "had"} if self.is_past else set()
        )

    def is_of_others(self, clause: Clause) -> bool:
        """Return True if the subject of a clause is another person than the player."""
        return any(one != self._facts.after.you for one in clause.subjects())

    def contradiction(self, text: str, paths: Sequence[str]) -> Contradiction:
        """Return the contradiction of a text about some paths."""
        told = []
        for path in dict.fromkeys(paths):
            values = self._facts.values_of(path)
            was = f" (before the turn {values[0]:.10g})" if values[0] != values[-1] else ""
            told.append(f"{self.quantities[path].names[0]} is {values[-1]:.10g}{was}")
        return Contradiction("amount", text.strip(), "; ".join(told))


def is_rounded(claimed: float, value: float) -> bool:
    """Return True if a claimed number may be a value, rounded to an integer or to one decimal."""
    unit = 1.0 if claimed == int(claimed) else 0.1
    margin = 0.0 if value == int(value) else unit / 2
    return abs(claimed - value) <= margin + _TOLERANCE


def bare_number(group: Group, *, is_unit: bool) -> float | None:
    """Return the value of a group that is a number, or a number with a unit."""
    number = next((token.number for token in group.tokens if token.number is not None), None)
    is_bare = (
        group.head.number is not None or is_unit or group.word in words("percent per % degrees points units")
    )
    return number if is_bare else None


def paths_of(token: Word) -> list[str]:
    """Return the paths of the quantity that a token names."""
    return [path for kind, path in token.refs if kind == "quantity"]
