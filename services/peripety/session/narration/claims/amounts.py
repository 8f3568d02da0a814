"""Claims about amounts: totals, differences, directions, comparisons, and that something is used up."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import NUMERAL, alternatives, parse_numeral
from peripety.session.narration.claims.record import Contradiction
from peripety.session.narration.claims.words import PARTICIPLE, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.session.narration.claims.clauses import Clause, Group, Sentence
    from peripety.session.narration.claims.record import TurnFacts
    from peripety.session.narration.claims.words import Token


_FACTORS = {"double": 2.0, "triple": 3.0, "quadruple": 4.0, "halve": 0.5}
_TOLERANCE = 1e-6
_VAGUE = frozenset({"about", "around", "nearly", "almost", "roughly", "some", "approximately", "maybe", "perhaps", "or", "another", "further", "more", "extra"})
_AT_LEAST = frozenset({"over", "above", "past", "beyond", "than"})
_AT_MOST = frozenset({"under", "below", "barely", "hardly", "beneath"})
_TOTAL_CUES = frozenset({"left", "only", "just", "remain", "remaining", "remains", "exactly", "still", "all", "last", "whole", "mere", "precisely", "total", "altogether"})
_NEEDS = frozenset({"need", "want", "require", "owe", "promise", "offer", "ask", "trade", "buy", "demand", "bet", "save", "take", "sell", "bid", "expect", "call"})
_GONE = frozenset({"gone", "exhausted", "spent", "depleted", "empty", "finished", "zero", "nil", "over", "lost", "out", "dry"})
_SAME = frozenset({"same", "unchanged", "steady", "constant", "level", "untouched", "intact", "unaffected", "stable"})
_UP = frozenset({"higher", "greater", "stronger", "bigger", "larger", "better", "up"})
_DOWN = frozenset({"lower", "smaller", "weaker", "less", "fewer", "worse", "down"})
_AMOUNT_WORDS = frozenset({"number", "level", "amount", "stock", "count", "supply", "store", "stores", "reserve", "reserves", "gauge", "tally", "total", "pile", "heap", "quantity", "sum", "reading", "meter"})
_RATIO_MARGIN = 0.1
_FAR = 2.0


class AmountClaims:
    """Checker of claims about the quantities of a state.

    Args:
        facts: the turn.
    """

    def __init__(self, facts: TurnFacts) -> None:
        self._facts = facts
        self._quantities = facts.before.quantities | facts.after.quantities
        bands: dict[str, list[tuple[float, str]]] = {}
        for path, label in (facts.spec.get("labels") or {}).items():
            if path in self._quantities and label.get("bands"):
                bands[path] = [(one.get("upto", float("inf")), str(one["word"]).lower()) for one in label["bands"]]
        self._bands = bands

    def check(self, sentence: Sentence, text: str, context: Sequence[Token] = ()) -> Iterator[Contradiction]:
        """Yield the claims of a sentence that contradict the record.

        Args:
            sentence: the sentence without speech.
            text: the sentence.
            context: the tokens of the sentence before.
        """
        if sentence.is_unreal:
            return
        named = list(dict.fromkeys(path for token in (*context, *sentence.tokens) for kind, path in token.refs if kind == "quantity"))
        if not named and not any(kind == "unit" for token in sentence.tokens for kind, _ in token.refs):
            return
        yield from self._check_list(sentence, text)
        for clause in sentence.clauses:
            if clause.is_asserted and not (clause.is_past and clause.is_perfect):
                wrong = self._wrong_paths(sentence, clause, named)
                if wrong:
                    yield self._contradiction(text, wrong)
                    return
        if not sentence.clauses:
            for _, group in sentence.groups:
                paths, number = self._numbered(group)
                if paths and number is not None and not self._is_loose(sentence, group) and not self._has_value(paths, number):
                    yield self._contradiction(text, paths)
                    return

    # --- reading ---

    def _check_list(self, sentence: Sentence, text: str) -> Iterator[Contradiction]:
        """Check a list such as `supplies: 4`."""
        tokens = sentence.tokens
        for first, colon, number in zip(tokens, tokens[1:], tokens[2:], strict=False):
            paths = _paths(first)
            if paths and colon.text in {":", "="} and number.number is not None and not self._has_value(paths, number.number):
                yield self._contradiction(text, paths)
                return

    def _quantity_of(self, group: Group | None) -> list[str]:
        """Return the paths of the quantity that a group is about."""
        if group is None:
            return []
        paths = _paths(group.head)
        if not paths and group.of is not None and (group.word in _AMOUNT_WORDS or group.head.number is not None or group.word in {"rest", "last", "all", "half", "most", "none", "any", "much", "drop", "trace", "bit"} or group.head.tag in {"det", "adj"} or self._is_unit(group)):
            paths = self._quantity_of(group.of)
        if not paths and group.word in _AMOUNT_WORDS and len(group.tokens) > 1:
            paths = next((found for token in group.tokens[:-1] if (found := _paths(token))), [])
        return paths

    def _is_unit(self, group: Group) -> bool:
        return any(kind == "unit" for kind, _ in group.head.refs)

    def _numbered(self, group: Group) -> tuple[list[str], float | None]:
        """Return the quantity of a group, and the number in it: `four supplies`, `four of them`, `3 l of x`."""
        number = next((token.number for token in group.tokens if token.number is not None), None)
        if number is None:
            return [], None
        paths = self._quantity_of(group)
        if not paths and group.of is None:
            paths = [path for kind, path in group.head.refs if kind == "unit"]
        return paths, number

    def _is_loose(self, sentence: Sentence, group: Group) -> bool:
        """Return True if the number of a group is not exact, or another number: `about four`, `four more`."""
        place = sentence.tokens.index(group.tokens[0])
        before = {token.word for token in sentence.tokens[max(0, place - 2) : place]}
        return bool((before | {token.word for token in group.tokens}) & _VAGUE) or "of" in before & {"of"} and False

    def _bound(self, sentence: Sentence, group: Group) -> int:
        """Return 1 if a group names a lower bound, -1 for an upper bound, else 0."""
        place = sentence.tokens.index(group.tokens[0])
        before = [token.word for token in sentence.tokens[max(0, place - 3) : place + 1]]
        if {"least", "over"} & set(before) or ("than" in before and "more" in before):
            return 1
        if {"most", "under", "barely", "hardly", "scarcely"} & set(before) or ("than" in before and {"less", "fewer"} & set(before)):
            return -1
        return 0

    def _wrong_paths(self, sentence: Sentence, clause: Clause, named: list[str]) -> list[str]:
        """Return the paths of the quantity about which a clause is wrong; empty if it is not wrong."""
        found = self._wrong_number(sentence, clause, named)
        if found:
            return found
        paths = self._quantity_of(clause.subject)
        if paths and not clause.copied_subject | (clause.form == PARTICIPLE and not clause.is_perfect and not clause.is_passive):
            pass
        if paths and self._subject_is_wrong(clause, paths):
            return paths
        return self._wrong_object(sentence, clause)

    # --- numbers ---

    def _wrong_number(self, sentence: Sentence, clause: Clause, named: list[str]) -> list[str]:
        subject = self._quantity_of(clause.subject)
        has_number = clause.subject is not None and self._numbered(clause.subject)[1] is not None
        if subject and not has_number and not clause.is_negative:
            wrong = self._wrong_reading(clause, subject)
            if wrong:
                return subject
        for role, group in self._roles(clause):
            paths, number = self._numbered(group)
            if number is not None and not paths and group.head.number is not None and group.of is None:
                paths = named if len(named) == 1 and role != "phrase" and self._is_total(sentence, clause, group, role) else []
            if paths and number is not None and self._number_is_wrong(sentence, clause, role, group, self._narrow(paths, clause, sentence), number):
                return paths
        return []

    def _roles(self, clause: Clause) -> Iterator[tuple[str, Group]]:
        if clause.subject is not None and not clause.copied_subject:
            yield "subject", clause.subject
            yield from (("subject", one) for one in clause.subject.joined)
        for group in clause.objects:
            yield "object", group
            yield from (("object", one) for one in group.joined)
        for word, group in clause.where:
            yield f"{word}", group

    def _number_is_wrong(
        self,
        sentence: Sentence,
        clause: Clause,
        role: str,
        group: Group,
        paths: list[str],
        number: float,
    ) -> bool:
        values, steps = self._values(paths), {abs(step) for step in self._steps(paths)}
        if not values or clause.base in _NEEDS and not (clause.base in {"take", "save"} and role == "subject"):
            return False
        bound = self._bound(sentence, group)
        if bound:
            return not clause.is_negative and all((value - number) * bound < 0 for value in values)
        if clause.is_negative or self._is_loose(sentence, group):
            words = {token.word for token in group.tokens}
            far = max(values) * _FAR < number and not words & {"more", "another", "further", "extra"}
            return far and not clause.is_negative and role in {"subject", "object"}
        if self._has_value(paths, number):
            return False
        is_change = clause.is_a("spend", "gain") or clause.base in {"cost", "cut", "leave"} and role == "by"
        if any(_is_rounded(number, step) for step in steps if step):
            return False
        if role == "object" and is_change or (role == "subject" and clause.is_passive and clause.is_a("spend", "gain")):
            return True
        if role == "subject" and "gone" in clause.rest_words[:2]:
            return True
        if number > max(values) and role not in {"for", "than", "like", "to"}:
            return True
        return self._is_total(sentence, clause, group, role)

    def _is_total(self, sentence: Sentence, clause: Clause, group: Group, role: str) -> bool:
        """Return True if a clause states that a group is all that there is."""
        words = {token.word for token in group.tokens}
        place = sentence.tokens.index(group.tokens[0])
        near = {token.word for token in sentence.tokens[max(0, place - 2) : place]} | set(clause.rest_words) | clause.adverbs | words
        is_part = group.of is not None and group.of.tokens[0].tag in {"det", "poss", "pron"} and group.head.number is not None
        cued = bool(near & _TOTAL_CUES)
        if role == "subject":
            if clause.base in {"remain", "survive", "last"} or (clause.is_passive and clause.base == "leave") or (clause.base == "be" and {"left", "there", "remaining", "available"} & set(clause.rest_words[:4])):
                return True
            return cued and clause.is_a("remain", "contain") and not is_part
        if role == "object":
            if clause.base == "leave" or (clause.base in {"count", "find", "total", "number"} and not is_part):
                return True
            if clause.subject is not None and clause.subject.word in {"there", "that", "this", "it"} and clause.base in {"be", "remain", "make", "leave"}:
                return not is_part or cued
            is_yours = clause.subject is not None and not self._is_of_others(clause)
            return is_yours and clause.is_a("contain") and (cued or clause.base in {"have", "own", "contain", "count"}) and clause.base != "keep" or (clause.base == "be" and cued)
        if role in {"to", "with", "at"}:
            return bool({"down", "up", "left", "back"} & set(clause.rest_words[:3])) or (role == "to" and clause.is_a("fall", "rise", "lower", "raise", "spend"))
        return False

    def _is_of_others(self, clause: Clause) -> bool:
        return any(one != self._facts.after.you for one in clause.subjects())

    def _wrong_reading(self, clause: Clause, paths: list[str]) -> bool:
        """Return True if the value after a subject is wrong: `the pressure stands at 70`, `drops by 3`."""
        values = self._values(paths)
        moves = clause.is_a("rise", "fall", "read", "hold_steady")
        for word, group in clause.phrases:
            number = _bare_number(group, self._is_unit(group))
            if number is None or not values:
                continue
            if word in {"to", "at", "on"} and (moves or clause.base == "be"):
                if group.word == "points" or not self._has_value(paths, number):
                    return True
            elif word == "by" and moves:
                if not any(_is_rounded(number, abs(step)) for step in self._steps(paths)):
                    return True
            elif word in _AT_LEAST and (moves or clause.base == "be") and all(value <= number for value in values):
                return True
            elif word in _AT_MOST and (moves or clause.base == "be") and all(value >= number for value in values):
                return True
        if clause.is_a("read") or clause.base in {"be", "number", "total"}:
            for group in clause.objects[:1]:
                number = _bare_number(group, self._is_unit(group))
                if number is not None and values and not self._has_value(paths, number) and not ({"than"} & set(clause.rest_words)):
                    return True
        return False

    # --- without numbers ---

    def _subject_is_wrong(self, clause: Clause, paths: list[str]) -> bool:
        words = clause.rest_words
        subject = clause.subject
        assert subject is not None  # noqa: S101 - a quantity is its subject
        if subject.word in {"none", "nothing"} or (subject.of is not None and subject.tokens[0].word in {"none", "not"}):
            return clause.is_a("remain") and self._is_not_empty(paths)
        part = subject.tokens[0].word
        if part in {"half", "most", "some", "few", "several", "one", "many"} or subject.owned_by("other") and subject.owner[0][1] not in {"its", "the", "our", "my"}:
            return part == "half" and self._half_is_wrong(clause, paths)
        if clause.base == "be" and not clause.is_progressive and {"half", "almost", "nearly"} & {*words[:2], *clause.adverbs}:
            return False
        if self._is_emptied(clause) and not clause.is_negative:
            return self._is_not_empty(paths)
        if clause.is_negative and not (clause.adverbs & {"never"}):
            return self._negated_is_wrong(clause, paths)
        if clause.base in _FACTORS and not clause.objects:
            return self._factor_is_wrong(paths, _FACTORS[clause.base]) and self._direction_is_wrong(paths, 1 if clause.base != "halve" else -1)
        if self._is_same(clause):
            return all(self._steps([path]) and self._end_step(path) for path in paths)
        sign = self._direction(clause)
        return bool(sign) and self._direction_is_wrong(paths, sign, is_strict=True)

    def _is_emptied(self, clause: Clause) -> bool:
        words = clause.rest_words
        if clause.is_a("empty") and clause.base in {"run", "give"}:
            return words[:1] in (["out"], ["dry"])
        if clause.base in {"be", "lie", "stand", "sit"} or (clause.is_perfect and clause.base in {"go", "be"}):
            found = next((n for n, word in enumerate(words[:4]) if word in _GONE), None)
            if found is None:
                return False
            after = words[found + 1] if found + 1 < len(words) else ""
            return after not in {"from", "to", "up", "down", "on", "through", "wrong", "by", "back", "of"}
        return clause.is_passive and clause.base in {"spend", "exhaust", "deplete", "use", "use-up", "finish"} and clause.subject is not None and {"all", "last", "every"} & {token.word for token in clause.subject.tokens} != set()

    def _is_not_empty(self, paths: list[str]) -> bool:
        values = self._values(paths)
        return bool(values) and not any(_is_rounded(0.0, value) for value in values)

    def _half_is_wrong(self, clause: Clause, paths: list[str]) -> bool:
        if not ({"gone", "left"} & set(clause.rest_words[:2]) or clause.is_a("remain", "empty") or (clause.is_passive and clause.is_a("spend"))):
            return False
        return not clause.is_negative and self._factor_is_wrong(paths, 0.5)

    def _is_same(self, clause: Clause) -> bool:
        words = set(clause.rest_words[:4])
        return clause.base in {"be", "stay", "remain", "hold", "keep", "stand"} and bool(words & _SAME or clause.adverbs & {"steady"}) and not clause.is_progressive

    def _negated_is_wrong(self, clause: Clause, paths: list[str]) -> bool:
        """Return True for `has not changed` if it changed, and `does not rise` if it rose."""
        if clause.base in {"change", "move", "budge", "shift", "stir", "alter"}:
            return all(self._end_step(path) for path in paths)
        if clause.modal or clause.objects or clause.phrases:
            return False
        sign = self._direction(clause)
        ends = [self._end_step(path) for path in paths]
        return bool(sign) and bool(ends) and all(step * sign > 0 for step in ends)

    def _direction(self, clause: Clause) -> int:
        """Return 1 if a clause says that its subject rises, -1 if it falls, else 0."""
        words = clause.rest_words
        if clause.base == "be" and not clause.is_progressive:
            sign = next((1 if word in _UP else -1 for word in words[:3] if word in _UP | _DOWN), 0)
            if not sign or ("never" in clause.adverbs and not clause.is_perfect):
                return 0
            is_compared = "than" in words or "never" in clause.adverbs or words[-1] in {"up", "down"} or len(words) <= 2  # noqa: PLR2004 - `is up`, `much higher`
            return sign if is_compared else 0
        if clause.is_negative or clause.is_passive and not clause.is_a("raise", "lower"):
            return 0
        if clause.is_passive:
            return 1 if clause.is_a("raise") else -1
        if clause.form == PARTICIPLE and not clause.is_perfect:
            return 0
        if any(not one.head.number and one.head.tag != "adj" and not _is_measure(one) for one in clause.objects):
            return 0
        if clause.base in {"run", "wear", "get", "grow"}:
            return -1 if {"low", "thin", "short", "scarce", "smaller", "weaker"} & set(words[:2]) else 1 if clause.base == "grow" else 0
        if clause.is_a("fall"):
            return -1
        return 1 if clause.is_a("rise") else 0

    def _direction_is_wrong(self, paths: list[str], sign: int, *, is_strict: bool = False) -> bool:
        ends = [step for path in paths for step in self._steps([path])]
        if not ends and not is_strict:
            return False
        moved = [step for step in ends if step]
        if not moved:
            return is_strict and bool(self._values(paths))
        return all(step * sign < 0 for step in moved)

    def _wrong_object(self, sentence: Sentence, clause: Clause) -> list[str]:
        """Return the paths of a quantity behind a verb about which a clause is wrong."""
        for word, group in [("", one) for one in clause.objects] + clause.phrases:
            paths = self._quantity_of(group)
            if not paths or any(token.number is not None for token in group.tokens):
                continue
            place = sentence.tokens.index(group.tokens[0])
            before = [token.word for token in sentence.tokens[max(0, place - 2) : place]]
            none = "no" in before[-1:] or before[-2:] == ["not", "a"] or group.word == "none" or (before[-2:-1] == ["no"] and before[-1:] == ["more"])
            if none and (clause.is_a("contain", "remain") or clause.base == "be") and not self._is_of_others(clause) and not clause.copied_subject:
                if self._is_not_empty(paths) and "than" not in clause.rest_words:
                    return paths
                continue
            if word == "of" and clause.base in {"run", "be", "get"} and "out" in clause.rest_words and not clause.is_negative:
                if self._is_not_empty(paths):
                    return paths
                continue
            first = group.tokens[0].word
            is_last = {"last", "rest"} & {token.word for token in group.tokens} or first == "all" or ("every" in before)
            if clause.is_a("spend") and is_last and not clause.is_negative and not word and self._is_not_empty(paths):
                return paths
            compared = self._comparison(sentence, group, before)
            if compared and not clause.is_negative and self._direction_is_wrong(paths, compared):
                return paths
            if not word and not clause.is_negative and not clause.is_passive:
                sign = self._object_direction(clause)
                if sign and self._direction_is_wrong(paths, sign):
                    return paths
        return []

    def _comparison(self, sentence: Sentence, group: Group, before: list[str]) -> int:
        """Return the direction of `more x than before`."""
        place = sentence.tokens.index(group.head)
        after = [token.word for token in sentence.tokens[place + 1 : place + 5]]
        words = {*before, *(token.word for token in group.tokens)}
        if after[:1] != ["than"] or not {"before", "ever", "this", "ago", "yesterday"} & set(after):
            return 0
        return 1 if "more" in words else -1 if words & {"less", "fewer"} else 0

    def _object_direction(self, clause: Clause) -> int:
        if clause.is_a("lower"):
            return -1
        if clause.is_a("raise"):
            return 1
        if clause.base in {"lose", "spend", "burn", "waste", "squander", "consume", "drain"}:
            return -1
        return 1 if clause.base in {"gain", "earn", "recover", "restore"} else 0

    # --- values ---

    def _values(self, paths: Iterable[str]) -> list[float]:
        return [value for path in paths for value in self._facts.values_of(path)]

    def _has_value(self, paths: Iterable[str], number: float) -> bool:
        return any(_is_rounded(number, value) for value in self._values(paths))

    def _steps(self, paths: Iterable[str]) -> set[float]:
        """Return the differences between all values that the paths had in the turn, in order."""
        pairs = (pair for path in paths for pair in combinations(self._facts.values_of(path), 2))
        return {later - earlier for earlier, later in pairs}

    def _end_step(self, path: str) -> float:
        values = self._facts.values_of(path)
        return values[-1] - values[0] if values else 0.0

    def _factor_is_wrong(self, paths: Iterable[str], factor: float) -> bool:
        known = [values for path in paths if (values := self._facts.values_of(path))]
        return bool(known) and not any(
            abs(first * factor - later) <= _RATIO_MARGIN * max(abs(first), 1.0) + 0.5 for first, *rest in known for later in rest
        )

    def _narrow(self, paths: list[str], clause: Clause, sentence: Sentence) -> list[str]:
        """Return the paths of the entities that a sentence names, if they have any."""
        owners = {*sentence.named("entity")}
        own = [path for path in paths if path in self._quantities and self._quantities[path].owner in owners]
        return own or paths

    def _contradiction(self, text: str, paths: Sequence[str]) -> Contradiction:
        told = []
        for path in dict.fromkeys(paths):
            values = self._facts.values_of(path)
            was = f" (before the turn {values[0]:.10g})" if values[0] != values[-1] else ""
            told.append(f"{self._quantities[path].names[0]} is {values[-1]:.10g}{was}")
        return Contradiction("amount", text.strip(), "; ".join(told))


def _paths(token: Token) -> list[str]:
    return [path for kind, path in token.refs if kind == "quantity"]


def _is_measure(group: Group) -> bool:
    """Return True for `a little`, `a notch`, `five points`, which say how much something changes."""
    return group.word in {"little", "notch", "bit", "degree", "points", "point", "hair", "fraction", "touch", "lot", "deal", "inch", "shade", "step", "level"}


def _bare_number(group: Group, is_unit: bool) -> float | None:  # noqa: FBT001 - one caller, by position
    """Return the value of a group that is a number, or a number with a unit."""
    number = next((token.number for token in group.tokens if token.number is not None), None)
    is_bare = group.head.number is not None or is_unit or group.word in {"percent", "per", "%", "degrees", "points", "units"}
    return number if is_bare else None


def _is_rounded(claimed: float, value: float) -> bool:
    """Return True if a claimed number may be a value, rounded to an integer or to one decimal."""
    unit = 1.0 if claimed == int(claimed) else 0.1
    margin = 0.0 if value == int(value) else unit / 2
    return abs(claimed - value) <= margin + _TOLERANCE


_UNUSED = (re, NUMERAL, alternatives, parse_numeral, words_of)
