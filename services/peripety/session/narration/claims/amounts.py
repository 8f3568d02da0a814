"""Claims about amounts: totals, differences, directions, and that something is used up."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import (
    NUMERAL,
    alternatives,
    drop_reported,
    is_negative,
    is_unsure,
    number_forms,
    parse_numeral,
    present_forms,
    split_clauses,
)
from peripety.session.narration.claims.record import Contradiction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.session.narration.claims.record import TurnFacts


_RISE = (
    "rise",
    "climb",
    "grow",
    "increase",
    "mount",
    "swell",
    "jump",
    "soar",
    "go up",
    "surge",
    "double",
    "build",
)
_FALL = (
    "fall",
    "drop",
    "ease",
    "sink",
    "decrease",
    "shrink",
    "dwindle",
    "decline",
    "go down",
    "subside",
    "plummet",
    "lessen",
)
_HOLD = (
    "stay",
    "remain",
    "stand",
    "sit",
    "hold",
    "read",
    "show",
    "hit",
    "reach",
    "number",
    "total",
    "come",
    "run",
    "be",
)
_LOSE = (
    "lose",
    "spend",
    "use",
    "use up",
    "burn",
    "eat",
    "cost",
    "consume",
    "burn through",
    "pay",
    "waste",
    "swallow",
    "take",
)
_GAIN = ("gain", "earn", "win", "receive")
_FILL = r"(?:\s+(?:now|still|only|just|exactly|precisely|all|already|back|down|up|once|more|again|at|to|quickly|slowly|steadily))*"
_DETERMINER = r"(?:(?:of\s+)?(?:the|your|our|my|his|her|their|its|these|those)\s+)?"
_APPROXIMATE = r"(?<!about )(?<!around )(?<!nearly )(?<!almost )(?<!roughly )(?<!some )(?<!over )(?<!under )(?<!than )(?<!least )(?<!most )(?<!up to )(?<!another )"
_TOLERANCE = 1e-6


class AmountClaims:
    """Checker of claims about the quantities of a state."""

    def __init__(self, facts: TurnFacts) -> None:
        self._facts = facts
        self._paths: dict[str, list[str]] = {}
        for quantity in {**facts.before.quantities, **facts.after.quantities}.values():
            for name in quantity.names:
                for form in number_forms(name):
                    self._paths.setdefault(form, []).append(quantity.path)
        units = {quantity.unit for quantity in facts.after.quantities.values() if quantity.unit}
        unit = alternatives(form for one in units for form in number_forms(one))
        name = rf"(?P<name>{alternatives(self._paths)})(?![\w-])"
        number = rf"{_APPROXIMATE}(?P<number>{NUMERAL})"
        amount = rf"{number}\s*(?:(?:{unit}|%|units?)\s+)?(?:remaining\s+|last\s+|whole\s+)?{_DETERMINER}(?:remaining\s+)?{name}"
        after = rf"{number}(?:\s*(?:{unit}|%|per cent|percent|units?))?(?=\s*$|\s*[,.;:!)]|\s+(?:and|as|in|now|left|when|at|while|after|again|by|with|because)\b)"
        rise, fall, hold = (alternatives(present_forms(verbs)) for verbs in (_RISE, _FALL, _HOLD))
        past = r"rose|climbed|grew|fell|dropped|sank|shrank|dwindled|went|jumped|was|were|stood|stayed|eased"
        of = r"(?:\s+(?:level|count|gauge|stock|reading|reserve|meter))?"
        self.words = frozenset(self._paths)
        compiled = {
            "total": [
                rf"{amount}(?:\s+(?:are|is|were))?{_FILL}\s+(?:left|remain\w*|available|to spare|in stock|there)\b",
                rf"\b(?:are|is|remain|remains|remained){_FILL}\s+{amount}(?!\s+(?:on|in|at|under|beside|near|behind|between|long|old|away)\b)",
                rf"\byou{_FILL}\s+(?:have|own|hold|possess|keep){_FILL}\s+{amount}",
                rf"\b(?:leaving|leaves|left)\s+(?:you\s+|only\s+|just\s+|with\s+|behind\s+)*{amount}",
                rf"\b(?:down to|finds?|counts?|comes to|adds up to|a total of)\s+(?:only\s+|just\s+|exactly\s+)*{amount}",
                rf"\bwith\s+(?:only\s+|just\s+)*{amount}\s+(?:left|remaining|to spare)",
                rf"{name}{of}{_FILL}\s+(?:{hold}|{rise}|{fall}|{past}|goes|go|dips?|settles?){_FILL}\s+{after}",
                rf"{name}\s+(?:of|at)\s+{after}",
                rf"{amount}(?=,?\s+(?:that is all|that's all|is all|in all|in total|nothing more|no more|and no more))",
                rf"^(?:the\s+|your\s+)?{amount}$",
                rf"\bfrom\s+{NUMERAL}\s+to\s+{number}",
                rf"\b(?:finds?|counts?)\s+(?:only\s+|just\s+|exactly\s+)*{number}$",
            ],
            "difference": [
                rf"\b(?P<verb>{alternatives(present_forms(_LOSE))})\s+(?:you\s+|up\s+|another\s+)*{amount}(?!\s+to\s+\w)",
                rf"\b(?P<verb>{alternatives(present_forms(_GAIN))})\s+(?:you\s+|another\s+)*{amount}",
                rf"{name}{of}(?:\s+\w+ly)?\s+(?:{rise}|{fall}|{past})\s+by\s+{after}",
            ],
            "empty": [
                rf"\bno\s+(?:more\s+)?{name}\s+(?:are|is)?\s*(?:left|remain\w*)",
                rf"\b(?:are|is)\s+no\s+(?:more\s+)?{name}(?:\s+(?:left|remaining|any ?more)|\s*$)",
                rf"\b(?:run|runs|ran|are|is|be)\s+out of\s+{_DETERMINER}{name}",
                rf"{name}(?:\s+(?:are|is|have|has)){_FILL}(?:\s+been)?\s+(?:gone|exhausted|spent|depleted|used up|empty|finished|run out|zero)\b",
                rf"{name}{_FILL}\s+(?:run|runs|ran)\s+out\b",
                rf"\b(?:last|all|rest|none)\s+{_DETERMINER}(?:of\s+the\s+)?{name}\s+(?:are|is|have|has)(?:\s+been)?\s+(?:gone|spent|used(?: up)?|exhausted|lost)",
                rf"\bnot (?:a single|one|even one)(?: one)?\s+{_DETERMINER}{name}\s+(?:remains?|is left)",
            ],
            "rise": [
                rf"{name}{of}(?:\s+\w+ly)?(?:\s+\w+\s+and)?\s+(?:{rise})(?=\s*$|\s+(?:while|as|again|around|slowly|steadily|and|once|with|now|in|further|a little|sharply|all the same)\b|,)"
            ],
            "fall": [
                rf"{name}{of}(?:\s+\w+ly)?(?:\s+\w+\s+and)?\s+(?:{fall})(?=\s*$|\s+(?:while|as|again|around|slowly|steadily|and|once|with|now|in|further|a little|sharply|all the same)\b|,)"
            ],
            "factor": [rf"{name}\s+(?:have|has)\s+(?P<factor>doubled|tripled|halved)"],
        }
        self._patterns = {
            kind: [re.compile(pattern, re.IGNORECASE) for pattern in patterns]
            for kind, patterns in compiled.items()
        }

    def check(self, sentence: str) -> Iterator[Contradiction]:
        """Yield the claims of a sentence that contradict the record."""
        if not self._paths:
            return
        told = drop_reported(sentence)
        whole = told.strip(" .!\n")
        clauses = split_clauses(told)
        listed = re.findall(
            rf"({alternatives(self._paths)})\s*:\s*({NUMERAL})(?=\s*(?:[,.;]|$))", whole, re.IGNORECASE
        )
        for name, number in listed:
            yield from self._check_total(sentence, name, parse_numeral(number), "")
        for clause in dict.fromkeys(
            [*clauses, *([whole] if ";" not in whole and ":" not in whole and len(clauses) == 1 else [])]
        ):
            if not is_unsure(clause):
                yield from self._check_clause(sentence, clause)

    def _check_clause(self, sentence: str, clause: str) -> Iterator[Contradiction]:
        name = next(iter(re.findall(rf"\b({alternatives(self._paths)})\b", clause, re.IGNORECASE)), None)
        if name is None:
            return
        for pattern in self._patterns["empty"]:
            for found in pattern.finditer(clause):
                if (
                    not re.search(
                        r"\bnot\s+(?:yet\s+)?\w*\s*$|\bnot\b.*\b(?:gone|out|spent|empty)",
                        clause,
                        re.IGNORECASE,
                    )
                    or "not a single" in clause.lower()
                    or "not one" in clause.lower()
                ):
                    yield from self._check_total(sentence, found["name"], 0.0, "")
        if is_negative(clause):
            return
        for pattern in self._patterns["total"]:
            for found in pattern.finditer(clause):
                subject = clause[: found.start()]
                yield from self._check_total(
                    sentence, found.groupdict().get("name") or name, parse_numeral(found["number"]), subject
                )
        for pattern in self._patterns["difference"]:
            for found in pattern.finditer(clause):
                yield from self._check_difference(sentence, found["name"], parse_numeral(found["number"]))
        for direction, sign in (("rise", 1), ("fall", -1)):
            for pattern in self._patterns[direction]:
                for found in pattern.finditer(clause):
                    yield from self._check_direction(sentence, found["name"], sign)
        for found in self._patterns["factor"][0].finditer(clause):
            factor = {"doubled": 2.0, "tripled": 3.0, "halved": 0.5}[found["factor"].lower()]
            paths = self._known_paths(found["name"])
            if paths and not any(_is_factor(self._facts.values_of(path), factor) for path in paths):
                yield self._contradiction(sentence, paths)

    def _known_paths(self, name: str) -> list[str]:
        return self._paths.get(re.sub(r"\s+", " ", name.lower()), [])

    def _check_total(self, sentence: str, name: str, claimed: float, subject: str) -> Iterator[Contradiction]:
        paths = self._narrow(self._known_paths(name), subject)
        known = [value for path in paths for value in self._facts.values_of(path)]
        if paths and not any(_is_rounded(claimed, value) for value in known):
            yield self._contradiction(sentence, paths)

    def _check_difference(self, sentence: str, name: str, claimed: float) -> Iterator[Contradiction]:
        paths = self._known_paths(name)
        steps = {abs(step) for path in paths for step in _differences(self._facts.values_of(path))}
        if paths and not any(_is_rounded(claimed, step) for step in steps):
            yield self._contradiction(sentence, paths)

    def _check_direction(self, sentence: str, name: str, sign: int) -> Iterator[Contradiction]:
        paths = self._known_paths(name)
        steps = [step for path in paths for step in _differences(self._facts.values_of(path)) if step]
        if steps and all(step * sign < 0 for step in steps):
            yield self._contradiction(sentence, paths)

    def _narrow(self, paths: list[str], subject: str) -> list[str]:
        """Return the paths of the entity that a clause names before the claim, if they exist."""
        names = self._facts.after.names
        owners = {
            entity
            for entity, known in names.items()
            if re.search(rf"\b(?:{alternatives(known)})\b", subject, re.IGNORECASE)
        }
        quantities = self._facts.after.quantities
        own = [path for path in paths if path in quantities and quantities[path].owner in owners]
        return own or paths

    def _contradiction(self, sentence: str, paths: Sequence[str]) -> Contradiction:
        told = []
        for path in dict.fromkeys(paths):
            values = self._facts.values_of(path)
            quantity = self._facts.after.quantities.get(path) or self._facts.before.quantities[path]
            was = f" (before the turn {values[0]:.10g})" if values[0] != values[-1] else ""
            told.append(f"{quantity.names[0]} is {values[-1]:.10g}{was}")
        return Contradiction("amount", sentence.strip(), "; ".join(told))


def _differences(values: Sequence[float]) -> set[float]:
    """Return the differences between all values of a turn, in order."""
    return {later - earlier for earlier, later in combinations(values, 2)}


def _is_factor(values: Sequence[float], factor: float) -> bool:
    return any(abs(values[0] * factor - value) <= _TOLERANCE for value in values[1:])


def _is_rounded(claimed: float, value: float) -> bool:
    """Return True if a claimed number may be a value, rounded to an integer or to one decimal."""
    places = 0 if claimed == int(claimed) else 1
    return (
        abs(claimed - value) <= 0.5 * 10**-places + _TOLERANCE
        if value != int(value)
        else abs(claimed - value) <= _TOLERANCE
    )
