"""Claims about amounts: totals, differences, directions, and that something is used up."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import (
    NUMERAL,
    Phrases,
    alternatives,
    drop_reported,
    is_negative,
    is_unsure,
    number_forms,
    parse_numeral,
    split_clauses,
    tense_forms,
)
from peripety.session.narration.claims.record import Contradiction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.session.narration.claims.record import TurnFacts


_VERBS = ("rising", "falling", "holding", "losing", "gaining")
_FACTORS = {"doubled": 2.0, "tripled": 3.0, "halved": 0.5}
_TOLERANCE = 1e-6


class AmountClaims:
    """Checker of claims about the quantities of a state.

    Args:
        facts: the turn.
    """

    def __init__(self, facts: TurnFacts) -> None:
        self._facts = facts
        self._paths: dict[str, list[str]] = {}
        quantities = facts.before.quantities | facts.after.quantities
        for quantity in quantities.values():
            for form in {form for name in quantity.names for form in number_forms(name)}:
                self._paths.setdefault(form, []).append(quantity.path)
        units = (form for one in quantities.values() if one.unit for form in number_forms(one.unit))
        self._name = alternatives(self._paths)
        self._phrases = Phrases("amounts", {"numeral": NUMERAL, "unit": f"(?:{alternatives(units)})"})
        self._phrases.add_slots(name=rf"(?P<name>{self._name})(?![\w-])")
        self._phrases.add_slots(**{verbs: tense_forms(self._phrases.words(verbs)) for verbs in _VERBS})
        self.words = frozenset(self._paths)
        """The words that name a quantity."""

    def check(self, sentence: str) -> Iterator[Contradiction]:
        """Yield the claims of a sentence that contradict the record."""
        told = drop_reported(sentence)
        if not any(name in told.lower() for name in self._paths):
            return
        listed = rf"({self._name})\s*:\s*({NUMERAL})(?=\s*(?:[,.;]|$))"
        for name, number in re.findall(listed, told.strip(" .!\n"), re.IGNORECASE):
            yield from self._check_total(sentence, name, parse_numeral(number))
        for clause in split_clauses(told):
            found = re.search(rf"\b({self._name})\b", clause, re.IGNORECASE)
            if found is not None and not is_unsure(clause):
                yield from self._check_clause(sentence, clause, found[1])

    def _check_clause(self, sentence: str, clause: str, name: str) -> Iterator[Contradiction]:
        """Yield the contradictions of a clause; `name` is the first quantity that it names."""
        if not self._phrases.search("not_empty", clause):
            for found in self._phrases.find_all("empty", clause):
                yield from self._check_total(sentence, found["name"], 0.0)
        if is_negative(clause):
            return
        for found in self._phrases.find_all("total", clause):
            named = found.groupdict().get("name") or name
            yield from self._check_total(
                sentence, named, parse_numeral(found["number"]), clause[: found.start()]
            )
        for found in self._phrases.find_all("difference", clause):
            yield from self._check_difference(sentence, found["name"], parse_numeral(found["number"]))
        for direction, sign in (("rise", 1), ("fall", -1)):
            for found in self._phrases.find_all(direction, clause):
                yield from self._check_direction(sentence, found["name"], sign)
        for found in self._phrases.find_all("factor", clause):
            yield from self._check_factor(sentence, found["name"], _FACTORS[found["factor"].lower()])

    def _known_paths(self, name: str) -> list[str]:
        return self._paths.get(re.sub(r"\s+", " ", name.lower()), [])

    def _check_total(
        self,
        sentence: str,
        name: str,
        claimed: float,
        subject: str = "",
    ) -> Iterator[Contradiction]:
        paths = self._narrow(self._known_paths(name), subject)
        known = [value for path in paths for value in self._facts.values_of(path)]
        if paths and not any(_is_rounded(claimed, value) for value in known):
            yield self._contradiction(sentence, paths)

    def _check_difference(self, sentence: str, name: str, claimed: float) -> Iterator[Contradiction]:
        paths = self._known_paths(name)
        if paths and not any(_is_rounded(claimed, abs(step)) for step in self._steps(paths)):
            yield self._contradiction(sentence, paths)

    def _check_direction(self, sentence: str, name: str, sign: int) -> Iterator[Contradiction]:
        paths = self._known_paths(name)
        steps = [step for step in self._steps(paths) if step]
        if steps and all(step * sign < 0 for step in steps):
            yield self._contradiction(sentence, paths)

    def _check_factor(self, sentence: str, name: str, factor: float) -> Iterator[Contradiction]:
        paths = self._known_paths(name)
        values = [self._facts.values_of(path) for path in paths]
        if paths and not any(_is_rounded(first * factor, one) for first, *rest in values for one in rest):
            yield self._contradiction(sentence, paths)

    def _steps(self, paths: Iterable[str]) -> set[float]:
        """Return the differences between all values that the paths had in the turn, in order."""
        pairs = (pair for path in paths for pair in combinations(self._facts.values_of(path), 2))
        return {later - earlier for earlier, later in pairs}

    def _narrow(self, paths: list[str], subject: str) -> list[str]:
        """Return the paths of the entity that a clause names before the claim, if they exist."""
        after = self._facts.after
        owners = {
            entity
            for entity, known in after.names.items()
            if re.search(rf"\b(?:{alternatives(known)})\b", subject, re.IGNORECASE)
        }
        own = [path for path in paths if path in after.quantities and after.quantities[path].owner in owners]
        return own or paths

    def _contradiction(self, sentence: str, paths: Sequence[str]) -> Contradiction:
        told = []
        for path in dict.fromkeys(paths):
            values = self._facts.values_of(path)
            quantity = self._facts.after.quantities.get(path) or self._facts.before.quantities[path]
            was = f" (before the turn {values[0]:.10g})" if values[0] != values[-1] else ""
            told.append(f"{quantity.names[0]} is {values[-1]:.10g}{was}")
        return Contradiction("amount", sentence.strip(), "; ".join(told))


def _is_rounded(claimed: float, value: float) -> bool:
    """Return True if a claimed number may be a value, rounded to an integer or to one decimal."""
    unit = 1.0 if claimed == int(claimed) else 0.1
    margin = 0.0 if value == int(value) else unit / 2
    return abs(claimed - value) <= margin + _TOLERANCE
