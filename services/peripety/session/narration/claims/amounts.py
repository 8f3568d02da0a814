"""Claims about amounts: totals, differences, directions, comparisons, and that something is used up."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

from peripety.session.narration.claims.record import Contradiction
from peripety.session.narration.claims.verbs import PARTICIPLE, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.session.narration.claims.told_words import Token

    from peripety.session.narration.claims.clauses import Clause, Group, Sentence
    from peripety.session.narration.claims.record import TurnFacts


_FACTORS = {"double": 2.0, "triple": 3.0, "quadruple": 4.0, "halve": 0.5}
_TOLERANCE = 1e-6
_VAGUE = words(
    "about around nearly almost roughly some approximately maybe perhaps or another further more extra like"
)
_AT_LEAST = words("over above past beyond")
_AT_MOST = words("under below beneath")
_LEFT = words("left remaining remain remains remained")
_TOTAL_CUES = _LEFT | words("only just exactly still all last whole mere precisely total altogether")
_SAME_CUES = words("same still unchanged untouched unopened stay stays stayed unmoved intact")
_NEEDS = words(
    "need want require owe promise offer ask trade buy demand bet save take sell "
    "bid expect call share divide weigh believe think"
)
_GONE = words("gone exhausted spent depleted empty finished zero nil over lost out bare")
_SAME = words("same unchanged steady constant level untouched intact unaffected stable unopened")
_UP = words("higher greater stronger bigger larger better up fuller heavier warmer more")
_DOWN = words("lower smaller weaker less fewer worse down emptier lighter colder")
_THEN = words("before ever this ago yesterday at when in last it they you earlier there since")
_EARLIER = words(
    "morning noon earlier started began before once first originally was were had from instead out been"
)
_AMOUNT_WORDS = words(
    "number level amount stock count supply store stores reserve reserves gauge "
    "tally total pile heap quantity sum reading meter pair couple handful trust"
)
_SAME_TEXT = re.compile(
    r"\b(?:(?:the )?same|just as|as (?:it|they|he|she|you) (?:was|were|did|had)|as (?:before|ever|at)|unchanged|untouched|unopened|"
    r"changes? nothing|changed nothing|adds? nothing|added nothing|(?:has|have|had|is|was|did|does)(?:n['\u2019]t| not) (?:moved?|changed?|budged?|been touched)|"
    r"not an? \w+ (?:has|had) been touched|not an? \w+ more|(?:shall|will|would) stay|it stays|and holding|still)\b",
    re.IGNORECASE,
)
_ALL_TEXT = re.compile(
    r"\b(?:that(?:'s| is| was) (?:all|the whole|it)\b|nothing (?:more|else)\b|and no more\b)", re.IGNORECASE
)
_DISTINCT = 12
_RATIO_MARGIN = 0.1
_FAR = 2.0


class AmountClaims:
    """Checker of claims about the quantities of a state.

    Args:
        facts: the turn.
        is_past: True if the past is the tense of the story.
    """

    def __init__(self, facts: TurnFacts, *, is_past: bool = False) -> None:
        self._facts = facts
        self._is_past = is_past
        self._quantities = facts.before.quantities | facts.after.quantities
        self._bands: dict[str, list[tuple[float, tuple[str, ...]]]] = {}
        for path, label in (facts.spec.get("labels") or {}).items():
            bands = label.get("bands") or ()
            if path in self._quantities and bands:
                told_words = [
                    str(one.get("word") or "").lower().removeprefix("a ").removeprefix("an ") for one in bands
                ]
                ends = [float(one.get("upto", float("inf"))) for one in bands]
                self._bands[path] = [
                    (end, tuple(word.split())) for end, word in zip(ends, told_words, strict=True)
                ]

    def check(self, sentence: Sentence, text: str, context: Sequence[Token] = ()) -> Iterator[Contradiction]:
        """Yield the claims of a sentence that contradict the record.

        Args:
            sentence: the sentence without speech.
            text: the sentence.
            context: the tokens of the sentence before.
        """
        if sentence.is_unreal:
            return
        named = list(dict.fromkeys(path for token in (*context, *sentence.tokens) for path in _paths(token)))
        own = {
            path
            for token in sentence.tokens
            for kind, path in token.refs
            if kind in {"quantity", "unit", "bearer"}
        }
        if not named and not own:
            return
        if sentence.clauses and not any(clause.is_asserted for clause in sentence.clauses):
            return
        wrong = self._wrong_list(sentence)
        for clause in sentence.clauses:
            if wrong:
                break
            if clause.is_asserted and not (clause.is_past and clause.is_perfect):
                wrong = self._wrong_clause(sentence, clause, named, context)
        wrong = wrong or self._wrong_same(sentence, text, named, context)
        wrong = wrong or self._wrong_fragment(sentence, named, context) or self._wrong_band(sentence, own)
        if wrong:
            yield self._contradiction(text, wrong)

    # --- reading ---

    def _wrong_list(self, sentence: Sentence) -> list[str]:
        """Check a list such as `supplies: 4`."""
        tokens = sentence.tokens
        for first, colon, number in zip(tokens, tokens[1:], tokens[2:], strict=False):
            paths = _paths(first)
            if (
                paths
                and colon.text in {":", "="}
                and number.number is not None
                and not self._has_value(paths, number.number)
            ):
                return paths
        return []

    def _quantity_of(self, group: Group | None) -> list[str]:
        """Return the paths of the quantity that a group is about."""
        if group is None:
            return []
        paths = _paths(group.head)
        is_count = (
            group.word in _AMOUNT_WORDS or group.head.number is not None or group.head.tag in {"det", "adj"}
        )
        is_part = group.word in words(
            "rest last all half most none any much drop trace bit one each crumb scrap speck ounce shred"
        )
        if not paths and group.of is not None and (is_count or is_part or self._is_unit(group)):
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
            told_words = [token.word for token in group.tokens]
            is_two = told_words[0] == "both" or group.word in {"pair", "couple"}
            number = 2.0 if is_two else 1.0 if "single" in told_words or "lone" in told_words else None
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
        return bool((before | {token.word for token in group.tokens}) & _VAGUE)

    def _bound(self, sentence: Sentence, group: Group) -> int:
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

    def _wrong_clause(
        self, sentence: Sentence, clause: Clause, named: list[str], context: Sequence[Token]
    ) -> list[str]:
        """Return the paths of the quantity about which a clause is wrong; empty if it is not wrong."""
        found = self._wrong_number(sentence, clause, named, context)
        if found:
            return found
        paths = self._quantity_of(clause.subject)
        if paths and self._subject_is_wrong(clause, paths):
            return paths
        if (
            len(named) == 1
            and self._says_none(clause)
            and not self._is_of_others(clause)
            and self._is_not_empty(named)
        ):
            return named
        return self._wrong_object(sentence, clause)

    # --- fragments ---

    def _wrong_fragment(self, sentence: Sentence, named: list[str], context: Sequence[Token]) -> list[str]:
        """Check parts without a verb: `Four supplies.`, `Pressure ninety and steady.`, `No more supplies.`"""
        part: list[Token] = []
        parts = [part]
        for token in sentence.tokens:
            if token.tag == "break" or token.word == ",":
                part = []
                parts.append(part)
            else:
                part.append(token)
        for tokens in parts:
            if (
                any(token.tag in words("verb be have do modal sub to other") for token in tokens)
                or not tokens
            ):
                continue
            if tokens[0].start < sentence.attributed:
                continue
            found = self._wrong_part(sentence, tokens, named, context)
            if found:
                return found
        return []

    def _wrong_part(
        self, sentence: Sentence, tokens: list[Token], named: list[str], context: Sequence[Token]
    ) -> list[str]:
        told_words = {token.word for token in tokens}
        about = [path for token in tokens for path in _paths(token)]
        is_first = tokens[0] is sentence.tokens[0] or not sentence.clauses
        if (
            about
            and is_first
            and (
                tokens[0].word == "no"
                or (
                    tokens[0].word == "out"
                    and tokens[1:2]
                    and tokens[1].word == "of"
                    and not any(token.number is not None for token in tokens)
                )
                or tokens[0].word == "none"
            )
            and "yet" not in told_words
        ):
            return about if self._is_not_empty(about) and "doubt" not in told_words else []
        if any(clause.base in words("cost need require take owe") for clause in sentence.clauses):
            return []
        numbers = [token.number for token in tokens if token.number is not None]
        if (
            len(numbers) != 1
            or told_words & _VAGUE
            or told_words & words("of than for per a like") - ({"of", "a"} if about else set())
        ):
            return []
        units = [path for token in tokens for kind, path in token.refs if kind == "unit"]
        place = next(n for n, token in enumerate(tokens) if token.number is not None)
        after = tokens[place + 1] if place + 1 < len(tokens) else None
        if not about and not units:
            is_bare = after is None or after.word in _LEFT
            follows = sentence.tokens[sentence.tokens.index(tokens[0]) - 1].text == ":"
            about = named if len(named) == 1 and is_bare and (told_words & _LEFT or follows) else []
        paths = about or units
        if not paths or (not is_first and not told_words & _LEFT and not about):
            return []
        if (
            after is not None
            and after.tag == "noun"
            and not after.refs
            and not _LEFT & {after.word}
            and not units
        ):
            return []
        return paths if self._total_is_wrong(sentence, paths, numbers[0], told_words, context) else []

    def _total_is_wrong(
        self,
        sentence: Sentence,
        paths: list[str],
        number: float,
        told_words: set[str],
        context: Sequence[Token],
    ) -> bool:
        values = self._values(paths)
        if not values or (
            any(_is_rounded(number, abs(step)) for step in self._steps(paths) if step)
            and not told_words & _LEFT
        ):
            return False
        if not self._has_value(paths, number):
            return True
        is_alone = not sentence.clauses and len(sentence.tokens) <= len(told_words) + 1
        return self._is_outdated(sentence, paths, number, context) and (bool(told_words & _LEFT) or is_alone)

    def _is_outdated(
        self, sentence: Sentence, paths: list[str], number: float, context: Sequence[Token]
    ) -> bool:
        """Return True if a number is only the value before the turn, and no other one is named."""
        known = [values for path in paths if (values := self._facts.values_of(path))]
        current = [value for values in known for value in values[1:]]
        if not current or any(_is_rounded(number, value) for value in current):
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
        if any(_is_rounded(other, value) for other in others for value in current):
            return False
        return not _EARLIER & {token.word for token in sentence.tokens} - (
            {"was", "were", "had"} if self._is_past else set()
        )

    def _wrong_same(
        self, sentence: Sentence, text: str, named: list[str], context: Sequence[Token]
    ) -> list[str]:
        """Check that a number which has changed is not said to be the same."""
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
            paths = [path for path in [*named, *units] if self._facts.values_of(path)[:1] == [number]]
            if paths and self._is_outdated(sentence, paths[:1], number, context):
                return paths[:1]
        return []

    # --- bands ---

    def _wrong_band(self, sentence: Sentence, own: set[str]) -> list[str]:
        """Check told_words for the level of a quantity: `the pressure is low`."""
        for path in own & self._bands.keys():
            values = self._facts.values_of(path)
            bands = self._bands[path]
            known = {next((word for end, word in bands if value <= end), bands[-1][1]) for value in values}
            for _, word in bands:
                if word and word not in known and self._tells_band(sentence, path, word):
                    return [path]
        return []

    def _tells_band(self, sentence: Sentence, path: str, word: tuple[str, ...]) -> bool:
        for clause in sentence.clauses:
            told = clause.rest_words
            is_about = clause.subject is not None and (
                path in self._quantity_of(clause.subject)
                or ("bearer", path) in clause.subject.head.refs
                or clause.subject.word in {"it", "wind"}
            )
            where = [n for n in range(len(told)) if tuple(told[n : n + len(word)]) == word]
            if not where or not is_about or not clause.is_asserted or clause.is_negative:
                continue
            before = set(told[max(0, where[0] - 3) : where[0]])
            if clause.base in words(
                "be stay remain grow become turn run stand feel seem get blow hold"
            ) and not before & words("like than not no less nearly almost"):
                return True
        return False

    # --- numbers ---

    def _wrong_number(
        self, sentence: Sentence, clause: Clause, named: list[str], context: Sequence[Token]
    ) -> list[str]:
        subject = self._quantity_of(clause.subject)
        has_number = clause.subject is not None and self._numbered(clause.subject)[1] is not None
        if (
            subject
            and (not has_number or clause.base == "become")
            and not clause.is_negative
            and self._wrong_reading(clause, subject)
        ):
            return subject
        for role, group in self._roles(clause):
            inner = self._inner_number(group)
            if (
                inner is not None
                and clause.is_a("read", "contain")
                and not clause.is_negative
                and not self._has_value(_paths(group.head), inner)
            ):
                return _paths(group.head)
            paths, number = self._numbered(group)
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
                    sentence, clause, role, group, self._narrow(paths, sentence), number, context
                )
            ):
                return paths
        return []

    def _inner_number(self, group: Group) -> float | None:
        """Return the number of `a pressure of 70`."""
        return (
            _bare_number(group.of, is_unit=self._is_unit(group.of))
            if group.of is not None and _paths(group.head)
            else None
        )

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
        context: Sequence[Token],
    ) -> bool:
        values, steps = self._values(paths), {abs(step) for step in self._steps(paths) if step}
        if not values or (
            clause.base in _NEEDS and not (clause.base in {"take", "save"} and role == "subject")
        ):
            return False
        if group.of is not None and any(token.number is not None for token in group.of.tokens):
            return False
        bound = self._bound(sentence, group)
        if bound:
            return not clause.is_negative and all((value - number) * bound < 0 for value in values)
        if clause.is_negative or self._is_loose(sentence, group):
            told_words = {token.word for token in group.tokens}
            far = max(values) * _FAR < number and not told_words & words("more another further extra")
            return far and not clause.is_negative and role in {"subject", "object"}
        is_total = self._is_total(sentence, clause, group, role)
        if self._has_value(paths, number):
            is_now = clause.is_past if self._is_past else not clause.is_past and not clause.is_perfect
            same = bool(_SAME_CUES & {token.word for token in sentence.tokens})
            return is_now and (is_total or same) and self._is_outdated(sentence, paths, number, context)
        if any(_is_rounded(number, step) for step in steps) and (
            not is_total or clause.is_a("gain", "spend")
        ):
            return False
        is_change = (
            clause.is_a("spend", "kill")
            or clause.base in words("gain earn win receive acquire give-away")
            or clause.base in {"cost", "cut"}
        )
        if (role == "object" and is_change) or (role == "subject" and clause.is_passive and is_change):
            return True
        if role == "subject" and "gone" in clause.rest_words[:2]:
            return True
        if (
            number > max(values)
            and role not in words("for than like to of")
            and not self._is_of_others(clause)
        ):
            return True
        return is_total

    def _is_total(self, sentence: Sentence, clause: Clause, group: Group, role: str) -> bool:
        """Return True if a clause states that a group is all that there is."""
        told_words = {token.word for token in group.tokens}
        place = sentence.tokens.index(group.tokens[0])
        near = (
            {token.word for token in sentence.tokens[max(0, place - 2) : place]}
            | set(clause.rest_words)
            | clause.adverbs
            | told_words
        )
        is_part = (
            group.of is not None
            and group.of.tokens[0].tag in {"det", "poss", "pron"}
            and group.head.number is not None
        )
        cued = bool(near & _TOTAL_CUES)
        if role == "subject":
            if clause.base == "make" and "it" in clause.rest_words[:1]:
                return True
            if _ALL_TEXT.search(sentence.text) is not None and not is_part:
                return True
            if clause.base in {"remain", "survive", "last"} or (clause.is_passive and clause.base == "leave"):
                return True
            if clause.base == "be" and words("left there remaining available") & set(clause.rest_words[:4]):
                return True
            return cued and clause.is_a("remain", "contain") and not is_part
        if role == "object":
            if clause.base == "leave" or (clause.base in words("count find total number") and not is_part):
                return True
            if (
                clause.subject is not None
                and clause.subject.word in words("there that this it")
                and clause.base in words("be remain make leave")
            ):
                return not is_part or cued
            is_yours = clause.subject is not None and not self._is_of_others(clause)
            holds = (
                is_yours
                and clause.is_a("contain")
                and clause.base != "keep"
                and (cued or clause.base in words("have own contain count hold"))
            )
            return holds or (clause.base == "be" and cued)
        if role == "to" and clause.base in words("come amount add total hold bring cling"):
            return True
        if role in {"to", "with", "at"}:
            return bool(words("down up left back") & set(clause.rest_words[:3])) or (
                role == "to" and clause.is_a("fall", "rise", "lower", "raise", "spend")
            )
        return False

    def _is_of_others(self, clause: Clause) -> bool:
        return any(one != self._facts.after.you for one in clause.subjects())

    def _wrong_reading(self, clause: Clause, paths: list[str]) -> bool:
        """Return True if the value after a subject is wrong: `the pressure stands at 70`, `drops by 3`."""
        values = self._values(paths)
        moves = clause.is_a("rise", "fall", "read", "hold_steady")
        for word, group in clause.where:
            number = _bare_number(group, is_unit=self._is_unit(group))
            if number is None or not values:
                continue
            if (
                word == "at"
                and (self._is_unit(group) or (word, group) in clause.fronted)
                and not self._has_value(paths, number)
            ):
                return True
            if word in {"to", "at", "on"} and (moves or clause.base == "be"):
                if not self._has_value(paths, number):
                    return True
            elif word == "by" and moves:
                if not any(_is_rounded(number, abs(step)) for step in self._steps(paths)):
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
                number = _bare_number(group, is_unit=self._is_unit(group))
                if (
                    number is not None
                    and values
                    and not self._has_value(paths, number)
                    and "than" not in clause.rest_words
                ):
                    return True
        return False

    # --- without numbers ---

    def _subject_is_wrong(self, clause: Clause, paths: list[str]) -> bool:
        told_words = clause.rest_words
        subject = clause.subject
        assert subject is not None  # noqa: S101 - a quantity is its subject
        if (
            "last" in subject.all_words
            and clause.is_a("destroy", "empty")
            and not clause.objects
            and not clause.is_negative
        ):
            return self._is_not_empty(paths)
        if subject.word in {"none", "nothing"} or (
            subject.of is not None and subject.tokens[0].word in {"none", "not"}
        ):
            return clause.is_a("remain") and self._is_not_empty(paths)
        if subject.is_negated and subject.tokens[0].word != "all":
            return (
                (clause.is_a("remain") or (clause.is_passive and clause.base == "leave"))
                and not _UP & set(clause.rest_words)
                and self._is_not_empty(paths)
            )
        part = subject.tokens[0].word
        if part in words("half most some few several one many each every another any") or any(
            token.number is not None for token in subject.tokens
        ):
            return part == "half" and self._half_is_wrong(clause, paths)
        if (
            clause.base == "be"
            and not clause.is_progressive
            and {"half", "almost", "nearly"} & {*told_words[:2], *clause.adverbs}
        ):
            return False
        if self._is_emptied(clause) and not clause.is_negative:
            return self._is_not_empty(paths)
        if clause.is_negative and "never" not in clause.adverbs:
            return self._negated_is_wrong(clause, paths)
        if clause.base in _FACTORS and not clause.objects:
            return self._factor_is_wrong(paths, _FACTORS[clause.base])
        if self._is_same(clause):
            return all(self._end_step(path) for path in paths)
        sign = self._direction(clause)
        return bool(sign) and self._direction_is_wrong(paths, sign, is_strict=True)

    def _is_emptied(self, clause: Clause) -> bool:
        told_words = clause.rest_words
        if clause.is_a("empty") and clause.base in {"run", "give"}:
            return told_words[:1] in (["out"], ["dry"])
        if clause.base in words("be lie stand sit") or (clause.is_perfect and clause.base in {"go", "be"}):
            found = next((n for n, word in enumerate(told_words[:4]) if word in _GONE), None)
            if found is None:
                return False
            after = told_words[found + 1] if found + 1 < len(told_words) else ""
            return after not in words("from to up down on through wrong by back of there")
        used = clause.is_passive and clause.base in words("spend exhaust deplete use use-up finish")
        return (
            used
            and clause.subject is not None
            and bool({"all", "last", "every"} & {token.word for token in clause.subject.tokens})
        )

    def _is_not_empty(self, paths: list[str]) -> bool:
        values = self._values(paths)
        return bool(values) and not any(_is_rounded(0.0, value) for value in values)

    def _half_is_wrong(self, clause: Clause, paths: list[str]) -> bool:
        is_told = (
            {"gone", "left"} & set(clause.rest_words[:2])
            or clause.is_a("remain", "empty")
            or (clause.is_passive and clause.is_a("spend"))
        )
        return bool(is_told) and not clause.is_negative and self._factor_is_wrong(paths, 0.5)

    def _is_same(self, clause: Clause) -> bool:
        told_words = set(clause.rest_words[:4])
        if clause.is_progressive or clause.base not in words("be stay remain hold keep stand"):
            return False
        as_before = (
            "as" in clause.rest_words[:1]
            and clause.base == "be"
            and bool(words("before was were ever same") & set(clause.rest_words))
        )
        return bool(told_words & _SAME) or "steady" in clause.adverbs or as_before

    def _negated_is_wrong(self, clause: Clause, paths: list[str]) -> bool:
        """Return True for `has not changed` if it changed, and `does not rise` if it rose."""
        if clause.base in words("change move budge shift stir alter"):
            return all(self._end_step(path) for path in paths)
        if clause.modal or clause.objects or clause.phrases:
            return False
        sign = self._direction(clause, is_negated=True)
        ends = [self._end_step(path) for path in paths]
        return bool(sign) and bool(ends) and all(step * sign > 0 for step in ends)

    def _direction(self, clause: Clause, *, is_negated: bool = False) -> int:
        """Return 1 if a clause says that its subject rises, -1 if it falls, else 0."""
        told_words = clause.rest_words
        if clause.base == "be" and not clause.is_progressive:
            sign = next((1 if word in _UP else -1 for word in told_words[:3] if word in _UP | _DOWN), 0)
            if not sign or ("never" in clause.adverbs and not clause.is_perfect):
                return 0
            is_compared = (
                "than" in told_words
                or "never" in clause.adverbs
                or told_words[-1] in {"up", "down"}
                or len(told_words) <= 2
            )
            return sign if is_compared else 0
        if (clause.is_negative and not is_negated) or (
            clause.is_passive and not clause.is_a("raise", "lower")
        ):
            return 0
        if clause.is_passive:
            return 1 if clause.is_a("raise") else -1
        if clause.form == PARTICIPLE and not clause.is_perfect:
            return 0
        if any(
            one.head.number is None and one.head.tag != "adj" and not _is_measure(one)
            for one in clause.objects
        ):
            return 0
        if clause.base in words("run wear get grow"):
            return (
                -1
                if words("low thin short scarce smaller weaker") & set(told_words[:2])
                else 1
                if clause.base == "grow"
                else 0
            )
        if clause.is_a("fall"):
            return -1
        return 1 if clause.is_a("rise") else 0

    def _direction_is_wrong(self, paths: list[str], sign: int, *, is_strict: bool = False) -> bool:
        ends = [step for path in paths for step in self._steps([path])]
        moved = [step for step in ends if step]
        if not moved:
            return is_strict and bool(self._values(paths))
        return all(step * sign < 0 for step in moved)

    def _says_none(self, clause: Clause) -> bool:
        """Return True for `there are none left`, `you have none`."""
        if clause.is_negative or clause.base not in {"be", "have", "remain"}:
            return False
        return any(one.word == "none" and one.of is None for one in clause.objects) or (
            clause.subject is not None and clause.subject.word == "none" and clause.is_a("remain")
        )

    def _wrong_object(self, sentence: Sentence, clause: Clause) -> list[str]:
        """Return the paths of a quantity behind a verb about which a clause is wrong."""
        for word, group in [("", one) for one in clause.objects] + clause.phrases:
            paths = self._quantity_of(group)
            if not paths or any(token.number is not None for token in group.tokens):
                continue
            if self._object_is_wrong(sentence, clause, word, group, paths):
                return paths
        return []

    def _object_is_wrong(
        self, sentence: Sentence, clause: Clause, word: str, group: Group, paths: list[str]
    ) -> bool:
        place = sentence.tokens.index(group.tokens[0])
        before = [token.word for token in sentence.tokens[max(0, place - 2) : place]]
        none = (
            "no" in before[-1:]
            or before[-2:] == ["not", "a"]
            or group.word == "none"
            or before[-2:] == ["no", "more"]
        )
        if (
            none
            and (clause.is_a("contain", "remain") or clause.base == "be")
            and not self._is_of_others(clause)
            and not clause.copied_subject
        ):
            return self._is_not_empty(paths) and "than" not in clause.rest_words
        if (
            word == "of"
            and clause.base in {"run", "be", "get"}
            and "out" in clause.rest_words
            and not clause.is_negative
        ):
            return self._is_not_empty(paths)
        told_words = {token.word for token in group.tokens}
        is_all = {"last", "rest", "all"} & told_words or "every" in before or group.tokens[0].word == "all"
        if (
            is_all
            and not clause.is_negative
            and not word
            and clause.is_a("spend", "destroy", "kill", "get")
            and not clause.is_infinitive
        ):
            return self._is_not_empty(paths)
        compared = self._comparison(sentence, group, before)
        if compared and not clause.is_negative and self._direction_is_wrong(paths, compared, is_strict=True):
            return True
        if word or clause.is_negative or clause.is_passive:
            return False
        one = group.tokens[0].word in words("a an another one")
        sign = self._object_direction(clause)
        return bool(sign) and self._direction_is_wrong(paths, sign, is_strict=one)

    def _comparison(self, sentence: Sentence, group: Group, before: list[str]) -> int:
        """Return the direction of `more x than before`."""
        place = sentence.tokens.index(group.head)
        tokens = sentence.tokens[place + 1 : place + 8]
        after = [token.word for token in tokens]
        told_words = {*before, *(token.word for token in group.tokens)}
        if "than" not in after[:5] or any(token.number is not None for token in tokens):
            return 0
        if not _THEN & set(after[after.index("than") + 1 :][:2]):
            return 0
        return 1 if "more" in told_words else -1 if told_words & {"less", "fewer"} else 0

    def _object_direction(self, clause: Clause) -> int:
        if clause.is_a("lower"):
            return -1
        if clause.is_a("raise"):
            return 1
        if clause.base in words("lose spend burn waste squander consume drain"):
            return -1
        return 1 if clause.base in words("gain earn recover restore") else 0

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
            abs(first * factor - later) <= _RATIO_MARGIN * max(abs(first), 1.0) + 0.5
            for first, *rest in known
            for later in rest
        )

    def _narrow(self, paths: list[str], sentence: Sentence) -> list[str]:
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
    return group.word in words(
        "little notch bit degree points point hair fraction touch lot deal inch shade step level"
    )


def _bare_number(group: Group, *, is_unit: bool) -> float | None:
    """Return the value of a group that is a number, or a number with a unit."""
    number = next((token.number for token in group.tokens if token.number is not None), None)
    is_bare = (
        group.head.number is not None or is_unit or group.word in words("percent per % degrees points units")
    )
    return number if is_bare else None


def _is_rounded(claimed: float, value: float) -> bool:
    """Return True if a claimed number may be a value, rounded to an integer or to one decimal."""
    unit = 1.0 if claimed == int(claimed) else 0.1
    margin = 0.0 if value == int(value) else unit / 2
    return abs(claimed - value) <= margin + _TOLERANCE
