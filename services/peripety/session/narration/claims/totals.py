"""Claims of numbers about amounts: totals, differences and bounds."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import number_forms, words, words_of
from peripety.session.narration.claims.record import WrongClaim

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.session.narration.claims.clauses import Group, ProseClause, Sentence
    from peripety.session.narration.claims.english import ProseWord
    from peripety.session.narration.claims.record import TurnFacts


_TOLERANCE = 1e-6
_VAGUE = words(
    "about around nearly almost roughly some approximately maybe perhaps or another further more extra like"
)
_DIFFERENCES = words("less fewer lower higher")
_LEFT = words("left remaining remain remains remained")
_EARLIER = words(
    "morning noon earlier started began before once first originally was were had from instead out been"
)
_ONE = words("the a an this that another each your his her")
_DEFINITE = words("the your all these")
_AMOUNT_WORDS = words(
    "number level amount stock count supply store stores reserve reserves gauge score "
    "tally total pile heap quantity sum reading meter pair couple handful trust"
)
_RATIO_MARGIN = 0.1
_TIME_UNITS = words("second seconds minute minutes hour hours")


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
        if not paths and group.word in {"score", "total", "tally", "count"}:
            # `Delta's total`
            paths = group.owned_by("bearer")
        return paths

    def is_unit(self, group: Group) -> bool:
        """Return True if a group ends in the unit of a quantity."""
        return any(kind == "unit" for kind, _ in group.head.refs)

    def is_single(self, group: Group, paths: Iterable[str]) -> bool:
        """Return True for `the flare` if the quantity is `flares`: one of them, and not their number."""
        names = {name.split()[-1] for path in paths for name in self.quantities[path].names}
        is_one = group.word not in names and bool({*number_forms(group.word)} & names)
        return is_one and group.tokens[0].word in _ONE and "last" not in group.all_words

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
        end = sentence.tokens.index(group.tokens[-1]) + 1
        own = {token.word for token in group.tokens}
        follows = [token.word for token in sentence.tokens[end : end + 2]]
        after = {*follows[:1], *(follows[1:] if follows[:1] == ["the"] else ())}
        if [token.word for token in sentence.tokens[end : end + 3]] == ["at", "a", "time"]:
            return True
        # `seven percent less x` is a difference.
        more = words("more further extra other")
        return bool((before | own) & _VAGUE) or bool((own | after) & (_DIFFERENCES | more))

    def bound(self, sentence: Sentence, group: Group) -> int:
        """Return 1 if a group names a lower bound, -1 for an upper bound, else 0."""
        place = sentence.tokens.index(group.tokens[0])
        before = [token.word for token in sentence.tokens[max(0, place - 3) : place + 1]]
        if "," in before:
            before = before[len(before) - before[::-1].index(",") :]
        if {"least", "over"} & set(before) or ("than" in before and "more" in before):
            return -1 if "no" in before else 1
        if words("most under barely hardly scarcely") & set(before) or (
            "than" in before and {"less", "fewer"} & set(before)
        ):
            return 1 if "no" in before else -1
        return 0

    def has_other_unit(self, sentence: Sentence, paths: Iterable[str]) -> bool:
        """Return True if a sentence has a unit of time that is not that of the paths, as in `two minutes`."""
        known = {self.quantities[path].unit for path in paths}
        told = {token.word for token in sentence.tokens} & _TIME_UNITS
        return bool(known & {"s", "min", "h", "seconds", "minutes", "hours"}) and any(
            word not in known and word[0] not in {unit for unit in known if len(unit) == 1} for word in told
        )

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
        context: Sequence[ProseWord],
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

    def is_of_others(self, clause: ProseClause) -> bool:
        """Return True if the subject of a clause is another person than the player."""
        return any(one != self._facts.after.you for one in clause.subjects())

    def is_yours(self, clause: ProseClause) -> bool:
        """Return True if the player is the subject of a clause."""
        return self._facts.after.you in clause.subjects()

    def contradiction(self, text: str, paths: Sequence[str]) -> WrongClaim:
        """Return the contradiction of a text about some paths."""
        told = []
        for path in dict.fromkeys(paths):
            values = self._facts.values_of(path)
            was = f" (before the turn {values[0]:.10g})" if values[0] != values[-1] else ""
            told.append(f"{self.quantities[path].names[0]} is {values[-1]:.10g}{was}")
        return WrongClaim("amount", text.strip(), "; ".join(told))


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


def paths_of(token: ProseWord) -> list[str]:
    """Return the paths of the quantity that a token names."""
    return [] if token.tag == "verb" else [path for kind, path in token.refs if kind == "quantity"]


_VAGUE = words(
    "about around nearly almost roughly some approximately maybe perhaps or another further more extra like"
)
_AT_LEAST = words("over above past beyond")
_AT_MOST = words("under below beneath")
_LEFT = words("left remaining remain remains remained")
_TOTAL_CUES = _LEFT | words("only just exactly still all last whole mere precisely total altogether")
_SAME_CUES = words("same still unchanged untouched unopened stay stays stayed unmoved intact")
_NEEDS = words_of("sets", "needs")
_SAME_TEXT = re.compile(
    r"\b(?:(?:the )?same|just as|as (?:it|they|he|she|you) (?:was|were|did|had)|as (?:before|ever|at)"
    r"|unchanged|untouched|unopened|chang(?:es?|ed) nothing|add(?:s|ed)? nothing"
    r"|(?:has|have|had|is|was|did|does)(?:n['\u2019]t| not) (?:moved?|changed?|budged?|been touched)"
    r"|not an? \w+ (?:has|had) been touched|not an? \w+ more|(?:shall|will|would) stay|it stays"
    r"|not (?:one|an? \w+) (?:of (?:it|them) )?(?:touched|opened|used|spent|fired|missing|gone)"
    r"|no (?:more|fewer|less) (?:and|or|nor) no (?:more|fewer|less)|and holding|still)\b",
    re.IGNORECASE,
)
_ALL_TEXT = re.compile(
    r"\b(?:that(?:'s| is| was) (?:all|the whole|it)\b|nothing (?:more|else)\b|and no more\b)", re.IGNORECASE
)
_FAR = 2.0


class TotalClaims:
    """Checker of numbers: totals, differences and bounds.

    Args:
        amounts: the amounts of the turn.
    """

    def __init__(self, amounts: AmountReader) -> None:
        self._amounts = amounts

    def find_wrong_list(self, sentence: Sentence) -> list[str]:
        """Check a list such as `supplies: 4`."""
        tokens = sentence.tokens
        for first, colon, number in zip(tokens, tokens[1:], tokens[2:], strict=False):
            paths = paths_of(first)
            if (
                paths
                and colon.text in {":", "="}
                and number.number is not None
                and not self._amounts.has_value(paths, number.number)
            ):
                return paths
        return []

    def find_wrong_fragment(
        self, sentence: Sentence, named: list[str], context: Sequence[ProseWord]
    ) -> list[str]:
        """Return the paths of a wrong part without a verb: `Four supplies.`, `No more supplies.`."""
        part: list[ProseWord] = []
        parts = [part]
        for token in sentence.tokens:
            if token.tag == "break" or token.word == ",":
                part = []
                parts.append(part)
            else:
                part.append(token)
        begins = [tokens[0].word for tokens in parts if tokens]
        if begins.count("no") > 1:
            # `No x, no y.` is a rule.
            return []
        for tokens in parts:
            if (
                any(token.tag in words("verb be have do modal sub to other") for token in tokens)
                or not tokens
            ):
                continue
            if tokens[0].start < sentence.attributed:
                continue
            if sentence.clauses and sentence.clauses[0].subordinator in {"if", "unless"}:
                continue
            found = self._wrong_part(sentence, tokens, named, context)
            if found:
                return found
        return []

    def _wrong_part(
        self, sentence: Sentence, tokens: list[ProseWord], named: list[str], context: Sequence[ProseWord]
    ) -> list[str]:
        told = {token.word for token in tokens}
        about = [path for token in tokens for path in paths_of(token)]
        is_first = tokens[0] is sentence.tokens[0] or not sentence.clauses
        if (
            about
            and is_first
            and (
                (tokens[0].word == "no" and not (tokens[1:] and tokens[1].word in words("new other such")))
                or (
                    tokens[0].word == "out"
                    and tokens[1:2]
                    and tokens[1].word == "of"
                    and not any(token.number is not None for token in tokens)
                )
                or tokens[0].word == "none"
            )
            and "yet" not in told
        ):
            return about if self._amounts.is_not_empty(about) and "doubt" not in told else []
        if any(clause.base in words("cost need require take owe") for clause in sentence.clauses):
            return []
        numbers = [token.number for token in tokens if token.number is not None]
        if numbers == [1] and told & words("every each any"):
            return []
        is_short = len(tokens) < 5  # noqa: PLR2004 - `not one x`
        if about and is_first and numbers == [1] and tokens[0].word == "not" and is_short:
            return about if self._amounts.is_not_empty(about) else []
        if (
            len(numbers) != 1
            or told & (_VAGUE | _DIFFERENCES)
            or told & words("of than for per a like") - ({"of", "a"} if about else set())
        ):
            return []
        units = [path for token in tokens for kind, path in token.refs if kind == "unit"]
        place = next(n for n, token in enumerate(tokens) if token.number is not None)
        after = tokens[place + 1] if place + 1 < len(tokens) else None
        if not about and not units:
            is_bare = after is None or after.word in _LEFT
            follows = sentence.tokens[sentence.tokens.index(tokens[0]) - 1].text == ":"
            about = named if len(named) == 1 and is_bare and (told & _LEFT or follows) else []
        # A unit alone may count something else: `three points in it`.
        paths = about or (units if told & _LEFT else [])
        if not paths or (not is_first and not told & _LEFT and not about):
            return []
        if (
            after is not None
            and after.tag == "noun"
            and not after.refs
            and not _LEFT & {after.word}
            and not units
        ):
            return []
        return paths if self._total_is_wrong(sentence, paths, numbers[0], told, context) else []

    def _total_is_wrong(
        self,
        sentence: Sentence,
        paths: list[str],
        number: float,
        told: set[str],
        context: Sequence[ProseWord],
    ) -> bool:
        values = self._amounts.values(paths)
        if not values or (
            any(is_rounded(number, abs(step)) for step in self._amounts.steps(paths) if step)
            and not told & _LEFT
        ):
            return False
        if not self._amounts.has_value(paths, number):
            return True
        is_alone = not sentence.clauses and len(sentence.tokens) <= len(told) + 1
        place = next((n for n, token in enumerate(sentence.tokens) if token.number == number), 0)
        is_listed = any(token.text == ":" for token in sentence.tokens[max(0, place - 2) : place])
        return self._amounts.is_outdated(sentence, paths, number, context) and (
            is_listed or bool(told & _LEFT) or is_alone
        )

    def find_wrong_same(
        self, sentence: Sentence, text: str, named: list[str], context: Sequence[ProseWord]
    ) -> list[str]:
        """Check that a number which has changed is not called the same."""
        if _SAME_TEXT.search(text) is None or sentence.attributed:
            return []
        if any(clause.is_negative and clause.base in {"be", "remain"} for clause in sentence.clauses):
            return []
        tokens = [*context, *sentence.tokens]
        units = [path for token in tokens for kind, path in token.refs if kind == "unit"]
        for token in sentence.tokens:
            number = token.number
            if number is None:
                continue
            paths = [path for path in [*named, *units] if self._amounts.values_of(path)[:1] == [number]]
            if paths and self._amounts.is_outdated(sentence, paths[:1], number, context, is_same=True):
                return paths[:1]
        return []

    def find_wrong_number(
        self, sentence: Sentence, clause: ProseClause, named: list[str], context: Sequence[ProseWord]
    ) -> list[str]:
        """Return the paths about which the numbers of a clause are wrong; empty if they are not wrong."""
        subject = self._amounts.quantity_of(clause.subject)
        has_number = clause.subject is not None and self._amounts.numbered(clause.subject)[1] is not None
        if subject and has_number and clause.base == "become" and not clause.is_negative:
            current = [value for path in subject for value in self._amounts.values_of(path)[1:]]
            numbers = [
                number
                for one in clause.objects
                if (number := bare_number(one, is_unit=self._amounts.is_unit(one))) is not None
            ]
            if numbers and current and not any(is_rounded(numbers[0], value) for value in current):
                return subject
        if (
            subject
            and (not has_number or clause.base == "become")
            and not clause.is_negative
            and self._wrong_reading(sentence, clause, subject)
        ):
            return subject
        for role, group in self._roles(clause):
            inner = self._amounts.inner_number(group)
            if (
                inner is not None
                and clause.is_a("read", "contain")
                and not clause.is_negative
                and not self._amounts.has_value(paths_of(group.head), inner)
            ):
                return paths_of(group.head)
            paths, number = self._amounts.numbered(group)
            if number is not None and not paths and group.head.number is not None and group.of is None:
                paths = (
                    named
                    if len(named) == 1 and role != "phrase" and self._is_total(sentence, clause, group, role)
                    else []
                )
            if (
                paths
                and number is not None
                and self._number_is_wrong(
                    sentence, clause, role, group, self._amounts.narrow(paths, sentence), number, context
                )
            ):
                return paths
        return []

    def _roles(self, clause: ProseClause) -> Iterator[tuple[str, Group]]:
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
        clause: ProseClause,
        role: str,
        group: Group,
        paths: list[str],
        number: float,
        context: Sequence[ProseWord],
    ) -> bool:
        values, steps = (
            self._amounts.values(paths),
            {abs(step) for step in self._amounts.steps(paths) if step},
        )
        if "short" in clause.rest_words and clause.base == "be":
            # `you are two men short`
            return False
        if self._amounts.has_other_unit(sentence, paths):
            return False
        is_step = any(is_rounded(number, step) for step in steps)
        if is_step and clause.base in words("have get hold take") and not self._amounts.is_yours(clause):
            # `the x has its five coins`
            return False
        if not values or (
            clause.base in _NEEDS and not (clause.base in {"take", "save"} and role == "subject")
        ):
            return False
        if group.of is not None and any(token.number is not None for token in group.of.tokens):
            return False
        bound = self._amounts.bound(sentence, group)
        if bound:
            return not clause.is_negative and all((value - number) * bound < 0 for value in values)
        if clause.is_negative or self._amounts.is_loose(sentence, group):
            told = {token.word for token in group.tokens}
            far = max(values) * _FAR < number and not told & words("more another further extra")
            return far and not clause.is_negative and role in {"subject", "object"}
        is_total = self._is_total(sentence, clause, group, role)
        if self._amounts.has_value(paths, number):
            is_now = clause.is_past if self._amounts.is_past else not clause.is_past and not clause.is_perfect
            same = bool(_SAME_CUES & {token.word for token in sentence.tokens})
            return (
                is_now and (is_total or same) and self._amounts.is_outdated(sentence, paths, number, context)
            )
        if any(is_rounded(number, step) for step in steps) and (
            not is_total or clause.is_a("gain", "spend") or (role == "object" and clause.is_a("rise", "fall"))
        ):
            return False
        is_change = (
            clause.is_a("spend", "kill")
            or clause.base in words("gain earn win receive acquire give-away")
            or clause.base in {"cost", "cut"}
        )
        if (role == "object" and is_change) or (role == "subject" and clause.is_passive and is_change):
            return True
        is_named = any(one.tokens[0].tag == "det" for one in clause.objects)
        is_one = sentence.text[clause.verb_start :].lower().startswith(("was ", "is "))
        is_all = any(one.tokens[0].word == "all" for one in clause.objects[:1])
        if role == "subject" and clause.base == "be" and (is_named or is_one) and not is_all:
            # `a hundred x is the record`
            return False
        is_definite = (
            group.tokens[0].word in _DEFINITE
            or bool(group.owner)
            or (role == "subject" and (bool(paths_of(group.head)) or self._is_own_unit(group)))
        )
        if (
            number > max(values)
            and (is_definite or is_total or self._amounts.is_yours(clause))
            and role not in words("for than like to of")
            and not self._amounts.is_of_others(clause)
        ):
            return True
        return is_total

    def _is_own_unit(self, group: Group) -> bool:
        """Return True if a group ends in a unit of one thing, such as `doses`."""
        return self._amounts.is_unit(group) and group.word not in words_of("levels", "measures")

    def _is_total(self, sentence: Sentence, clause: ProseClause, group: Group, role: str) -> bool:
        """Return True if a clause states that a group is all that there is."""
        told = {token.word for token in group.tokens}
        place = sentence.tokens.index(group.tokens[0])
        near = (
            {token.word for token in sentence.tokens[max(0, place - 2) : place]}
            | set(clause.rest_words)
            | clause.adverbs
            | told
        )
        is_part = (
            group.of is not None
            and group.of.tokens[0].tag in {"det", "poss", "pron"}
            and group.head.number is not None
        )
        end = sentence.tokens.index(group.tokens[-1]) + 1
        follows = sentence.tokens[end].word if end < len(sentence.tokens) else ""
        cued = bool((near | {follows}) & _TOTAL_CUES)
        if role == "subject":
            if clause.base == "be" and any(one.tokens[0].word == "all" for one in clause.objects[:1]):
                # `Two coins is all that you have`
                return True
            if clause.base == "make" and "it" in clause.rest_words[:1]:
                return True
            if _ALL_TEXT.search(sentence.text) is not None and not is_part:
                return True
            if clause.base == "leave" and not (clause.objects or clause.phrases or clause.copied_subject):
                return True
            if clause.base in {"remain", "survive", "last"} or (clause.is_passive and clause.base == "leave"):
                return True
            if clause.base == "be" and words("left there remaining available") & set(clause.rest_words[:4]):
                return True
            return cued and clause.is_a("remain", "contain") and not is_part
        if role == "object":
            counts = clause.base in words("count find total number") and not is_part
            # `He counts your five coins` is what you give.
            if clause.base == "count" and group.owned_by() and not self._amounts.is_yours(clause):
                return False
            if clause.base == "leave" or (counts and not words("out off") & set(clause.rest_words[:1])):
                # `you count out five coins` is what you give.
                return True
            if (
                clause.subject is not None
                and (
                    clause.subject.word in words("there that this") or (clause.subject.word == "it" and cued)
                )
                and clause.base in words("be remain make leave")
            ):
                # `There are two lamps of his own`, and in a longer sentence, may be about others.
                last = sentence.tokens.index(group.tokens[-1]) + 1
                follows = sentence.tokens[last].word if last < len(sentence.tokens) else "."
                is_whole = (len(sentence.clauses) == 1 or follows in {",", ".", ";", "now"}) and (
                    group.of is None or group.of.tokens[0].tag != "poss"
                )
                return cued or (not is_part and (is_whole or clause.base != "be"))
            is_yours = clause.subject is not None and not self._amounts.is_of_others(clause)
            holds = (
                is_yours
                and clause.is_a("contain")
                and clause.base != "keep"
                and (cued or clause.base in words("have own contain count hold"))
                and "out" not in clause.rest_words[:1]
            )
            return holds or (clause.base == "be" and cued)
        if role == "to" and clause.base in words("come amount add total hold bring cling"):
            return True
        if role == "at" and clause.base == "be":
            return True
        if role in {"to", "with", "at"}:
            is_end = clause.base in words("be come go get leave end return have run bring wind use find")
            return (is_end and bool(words("down up left back") & set(clause.rest_words[:3]))) or (
                role == "to" and clause.is_a("fall", "rise", "lower", "raise", "spend")
            )
        return False

    def _wrong_reading(self, sentence: Sentence, clause: ProseClause, paths: list[str]) -> bool:
        """Return True if the value after a subject is wrong: `the pressure stands at 70`, `drops by 3`."""
        values = self._amounts.values(paths)
        if self._amounts.has_other_unit(sentence, paths):
            return False
        moves = clause.is_a("rise", "fall", "read", "hold_steady")
        for word, group in clause.where:
            number = bare_number(group, is_unit=self._amounts.is_unit(group))
            if number is None or not values:
                continue
            if (
                word == "at"
                and (self._amounts.is_unit(group) or (word, group) in clause.fronted)
                and not self._amounts.has_value(paths, number)
            ):
                return True
            if word in {"to", "at", "on"} and (moves or clause.base == "be"):
                if not self._amounts.has_value(paths, number):
                    return True
            elif word == "by" and moves:
                if not any(is_rounded(number, abs(step)) for step in self._amounts.steps(paths)):
                    return True
            elif (
                word in _AT_LEAST
                and (moves or clause.base == "be")
                and all(value <= number for value in values)
            ) or (
                word in _AT_MOST
                and (moves or clause.base == "be")
                and all(value >= number for value in values)
            ):
                return True
        if clause.is_a("read") or clause.base in words("be number total become"):
            for group in clause.objects[:1]:
                if words("more less fewer higher lower") & set(clause.rest_words):
                    continue
                number = bare_number(group, is_unit=self._amounts.is_unit(group))
                if (
                    number is not None
                    and values
                    and not self._amounts.has_value(paths, number)
                    and "than" not in clause.rest_words
                ):
                    return True
        return False
