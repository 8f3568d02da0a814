"""Claims about amounts: numbers, directions, comparisons, levels, and that something is used up."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import (
    NUMERAL,
    PARTICIPLE,
    alternatives,
    number_forms,
    parse_numeral,
    words,
    words_of,
)
from peripety.session.narration.claims.levels import LevelClaims
from peripety.session.narration.claims.totals import AmountReader, TotalClaims, is_rounded, paths_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.session.narration.claims.clauses import Group, ProseClause, Sentence
    from peripety.session.narration.claims.english import ProseWord
    from peripety.session.narration.claims.record import TurnFacts, WrongClaim


_FACTORS = {"double": 2.0, "triple": 3.0, "quadruple": 4.0, "halve": 0.5}
_GONE = words("gone exhausted spent depleted empty finished zero nil over lost out bare")
_SAME = words("same unchanged steady constant level untouched intact unaffected stable unopened")
_UP = words("higher greater stronger bigger larger better up fuller heavier warmer more")
_DOWN = words("lower smaller weaker less fewer worse down emptier lighter colder")
_EARLIER = words("before earlier once when last yesterday ago first by since already")
_WHOLE = words(
    "world house place ship boat camp sight store stores box chest tank barrel can tin jar bag sack purse "
    "wallet pocket pantry cupboard larder drawer rack bunker account bank safe till kitty cellar hold case "
    "bottle keg bin shelf shelves pile heap row stock reserve town city country"
)
_LEFT = words("left remaining remain remains")
_PURPOSE = words("to for like worth that which who better good")
_TIME_NOUNS = words("minutes hours days nights weeks months evenings mornings turns rounds winters")
_THEN = words("before ever this ago yesterday at when in last earlier there since")
_THEN_HAD = words("it they you there we")


class ChangeClaims:
    """Checker of claims without numbers: directions, comparisons, levels, and that something is used up.

    Args:
        facts: the turn.
        amounts: the amounts of the turn.
    """

    def __init__(self, facts: TurnFacts, amounts: AmountReader) -> None:
        self._facts = facts
        self._amounts = amounts
        self._bands: dict[str, list[tuple[float, tuple[str, ...]]]] = {}
        for path, label in (facts.spec.get("labels") or {}).items():
            bands = label.get("bands") or ()
            if path in amounts.quantities and bands:
                told_words = [
                    str(one.get("word") or "").lower().removeprefix("a ").removeprefix("an ") for one in bands
                ]
                ends = [float(one.get("upto", float("inf"))) for one in bands]
                self._bands[path] = [
                    (end, tuple(word.split())) for end, word in zip(ends, told_words, strict=True)
                ]

    def subject_is_wrong(self, clause: ProseClause, paths: list[str]) -> bool:
        """Return True if a clause is wrong about the quantity that is its subject."""
        told_words = clause.rest_words
        subject = clause.subject
        assert subject is not None  # noqa: S101 - a quantity is its subject
        if clause.is_negative and subject.tokens[0].word in words("a an single one"):
            # `Not an x remains.`
            remains = clause.is_a("remain") or clause.base == "leave"
            is_none = clause.base in {"remain", "survive", "last"} or (remains and clause.base != "be")
            return is_none and not clause.modal and self._amounts.is_not_empty(paths)
        if self._amounts.is_single(subject, paths):
            return False
        if (
            "last" in subject.all_words
            and clause.is_a("destroy", "empty")
            and not clause.objects
            and not clause.is_negative
        ):
            return self._amounts.is_not_empty(paths)
        if subject.word in {"none", "nothing"} or (
            subject.of is not None and subject.tokens[0].word in {"none", "not"}
        ):
            return clause.is_a("remain") and self._amounts.is_not_empty(paths)
        if subject.is_negated and subject.tokens[0].word != "all":
            return (
                (clause.is_a("remain") or (clause.is_passive and clause.base == "leave"))
                and not _UP & set(clause.rest_words)
                and self._amounts.is_not_empty(paths)
            )
        part = "" if "last" in subject.all_words else subject.tokens[0].word
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
            return self._amounts.is_not_empty(paths)
        if clause.is_negative and "never" not in clause.adverbs:
            return self._negated_is_wrong(clause, paths)
        if clause.base in _FACTORS and not clause.objects:
            return self._amounts.factor_is_wrong(paths, _FACTORS[clause.base])
        if self._is_same(clause):
            return all(self._amounts.end_step(path) for path in paths)
        sign = self._direction(clause)
        return bool(sign) and self._direction_is_wrong(paths, sign, is_strict=True)

    def _is_emptied(self, clause: ProseClause) -> bool:
        told_words = clause.rest_words
        if clause.is_a("empty") and clause.base in {"run", "give"}:
            return told_words[:1] in (["out"], ["dry"])
        if clause.base in words("be lie stand sit") or (clause.is_perfect and clause.base in {"go", "be"}):
            found = next((n for n, word in enumerate(told_words[:4]) if word in _GONE), None)
            is_it = clause.subject is not None and clause.subject.word == "it"
            if found is None or (is_it and told_words[found] == "over"):
                # `when it was over`
                return False
            after = told_words[found + 1] if found + 1 < len(told_words) else ""
            return after not in words("from to up down on through wrong by back of there")
        used = clause.is_passive and clause.base in words("spend exhaust deplete use use-up finish")
        told = {token.word for token in clause.subject.tokens} if clause.subject is not None else set()
        return used and bool({"all", "last", "every"} & told)

    def _half_is_wrong(self, clause: ProseClause, paths: list[str]) -> bool:
        is_told = (
            {"gone", "left"} & set(clause.rest_words[:2])
            or (clause.is_a("remain", "empty") and clause.base not in words("be stand lie sit rest"))
            or (clause.is_passive and clause.is_a("spend"))
        )
        return bool(is_told) and not clause.is_negative and self._amounts.factor_is_wrong(paths, 0.5)

    def _is_same(self, clause: ProseClause) -> bool:
        told_words = set(clause.rest_words[:4])
        if clause.is_progressive or clause.base not in words_of("sets", "steady"):
            return False
        as_before = (
            "as" in clause.rest_words[:1]
            and clause.base == "be"
            and bool(words("before was were ever same") & set(clause.rest_words))
        )
        return bool(told_words & _SAME) or "steady" in clause.adverbs or as_before

    def _negated_is_wrong(self, clause: ProseClause, paths: list[str]) -> bool:
        """Return True for `has not changed` if it changed, and `does not rise` if it rose."""
        if clause.base in words("change move budge shift stir alter"):
            return all(self._amounts.end_step(path) for path in paths)
        if clause.modal or clause.objects or clause.phrases:
            return False
        if clause.base in words("break crack crumble collapse crash fail falter slip"):
            # `has not broken` is more than `has not fallen`.
            return False
        sign = self._direction(clause, is_negated=True)
        ends = [self._amounts.end_step(path) for path in paths]
        return bool(sign) and bool(ends) and all(step * sign > 0 for step in ends)

    def _direction(self, clause: ProseClause, *, is_negated: bool = False) -> int:
        """Return 1 if the subject of a clause rises, -1 if it falls, else 0."""
        told_words = clause.rest_words
        if clause.base == "be" and not clause.is_progressive:
            if any(one.tokens[0].tag == "det" for one in clause.objects[:1]):
                # `is a worse one`
                return 0
            sign = next((1 if word in _UP else -1 for word in told_words[:3] if word in _UP | _DOWN), 0)
            is_never = "never" in clause.adverbs
            if not sign or is_never is not clause.is_perfect:
                # `is never better`, `has been better`
                return 0
            is_compared = (
                "than" in told_words
                or "never" in clause.adverbs
                or told_words[-1] in {"up", "down"}
                or len(told_words) < 3  # noqa: PLR2004 - `is up`, `is much higher`
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
                if clause.base == "grow" and told_words[:1] != ["more"]
                else 0
            )
        if clause.is_a("fall"):
            return -1
        return 1 if clause.is_a("rise") else 0

    def _direction_is_wrong(self, paths: list[str], sign: int, *, is_strict: bool = False) -> bool:
        ends = [step for path in paths for step in self._amounts.steps([path])]
        moved = [step for step in ends if step]
        if not moved:
            return is_strict and bool(self._amounts.values(paths))
        return all(step * sign < 0 for step in moved)

    def says_none(self, clause: ProseClause) -> bool:
        """Return True for `there are none left`, `you have none`."""
        if clause.is_negative or clause.base not in {"be", "have", "remain"}:
            return False
        return any(one.word == "none" and one.of is None for one in clause.objects) or (
            clause.subject is not None and clause.subject.word == "none" and clause.is_a("remain")
        )

    def find_wrong_object(self, sentence: Sentence, clause: ProseClause) -> list[str]:
        """Return the paths of a quantity behind a verb, if a clause is wrong about it."""
        for word, group in [("", one) for one in clause.objects] + clause.phrases:
            paths = self._amounts.quantity_of(group)
            if not paths and _LEFT & {token.word for token in sentence.tokens}:
                # `not a dollar left`
                paths = [path for kind, path in group.head.refs if kind == "unit"]
            if not paths or any(token.number is not None for token in group.tokens):
                continue
            if self._object_is_wrong(sentence, clause, word, group, paths):
                return paths
        return []

    def _object_is_wrong(
        self, sentence: Sentence, clause: ProseClause, word: str, group: Group, paths: list[str]
    ) -> bool:
        place = sentence.tokens.index(group.tokens[0])
        before = [token.word for token in sentence.tokens[max(0, place - 2) : place]]
        none = (
            "no" in before[-1:]
            or before[-2:] == ["not", "a"]
            or group.word == "none"
            or before[-2:] == ["no", "more"]
            or (group.tokens[0].word in words("a an any single") and before[-1:] in (["not"], ["n't"]))
        )
        end = sentence.tokens.index(group.tokens[-1]) + 1
        follows = sentence.tokens[end].word if end < len(sentence.tokens) else ""
        is_idiom = group.of is not None and not group.of.head.refs and not self._amounts.is_unit(group)
        if none and (follows in _PURPOSE or is_idiom):
            # `no x to spare`, `no grain of comfort`
            return False
        if none and word and clause.base == "be":
            # `a hard road, with no broken x`
            return False
        where = next((one for word, one in clause.phrases if word in {"in", "on"}), None)
        if none and where is not None and not where.owner and not self._is_whole_place(where, paths):
            # `no x in the y` may be about another x.
            return False
        if (
            none
            and (clause.is_a("contain", "remain") or clause.base == "be")
            and not self._amounts.is_of_others(clause)
            and not clause.copied_subject
        ):
            return self._amounts.is_not_empty(paths) and "than" not in clause.rest_words
        if (
            word == "of"
            and clause.base in {"run", "be", "get"}
            and "out" in clause.rest_words
            and not clause.is_negative
        ):
            return self._amounts.is_not_empty(paths)
        told_words = {token.word for token in group.tokens}
        is_all = (
            {"last", "rest", "all", "every"} & told_words
            or "every" in before
            or group.tokens[0].word == "all"
        )
        if (
            is_all
            and not clause.is_negative
            and not word
            and (
                clause.is_a("spend", "destroy", "kill", "get")
                or (
                    group.tokens[-2:-1]
                    and "last" in told_words
                    and clause.base in words("light smoke fire throw shoot strike play toss share")
                )
            )
            and not clause.is_infinitive
        ):
            return self._amounts.is_not_empty(paths)
        compared = self._comparison(sentence, group, before)
        if compared and not clause.is_negative and self._direction_is_wrong(paths, compared, is_strict=True):
            return True
        is_nothing = clause.subject is not None and clause.subject.word in {"nothing", "nobody", "none"}
        if word or clause.is_negative or clause.is_passive or is_nothing:
            return False
        one = group.tokens[0].word in words("a an another one")
        if ("at", "time") in [(preposition, other.word) for preposition, other in clause.phrases]:
            return False
        sign = self._object_direction(clause)
        return bool(sign) and self._direction_is_wrong(paths, sign, is_strict=one)

    @staticmethod
    def _is_whole_place(group: Group, paths: list[str]) -> bool:
        """Return True if a group is the place, the bearer or the container of an amount."""
        is_bearer = any(kind == "bearer" and key in paths for kind, key in group.head.refs)
        return is_bearer or group.word in _WHOLE

    def _comparison(self, sentence: Sentence, group: Group, before: list[str]) -> int:
        """Return the direction of `more x than before`."""
        place = sentence.tokens.index(group.head)
        tokens = sentence.tokens[place + 1 : place + 8]
        after = [token.word for token in tokens]
        told_words = {*before, *(token.word for token in group.tokens)}
        if "than" not in after[:5] or any(token.number is not None for token in tokens):
            return 0
        if words("who whose which that") & set(after[: after.index("than")]):
            # `an x whose y is better than before` compares another thing.
            return 0
        than = after[after.index("than") + 1 :][:2]
        is_past = bool(_THEN_HAD & set(than[:1])) and bool(words("had was were did 'd") & set(than[1:]))
        if not _THEN & set(than) and not is_past:
            # `more than you will ever need`
            return 0
        return 1 if "more" in told_words else -1 if told_words & {"less", "fewer"} else 0

    def _object_direction(self, clause: ProseClause) -> int:
        if clause.is_a("lower"):
            return -1
        if clause.is_a("raise"):
            return 1
        if clause.base in words("lose spend burn waste squander consume drain"):
            return -1
        return 1 if clause.base in words("gain earn recover restore") else 0

    def find_wrong_band(self, sentence: Sentence, own: set[str]) -> list[str]:
        """Check words for the level of a quantity: `the pressure is low`."""
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
                path in self._amounts.quantity_of(clause.subject)
                or ("bearer", path) in clause.subject.head.refs
                or clause.subject.word in {"it", "wind"}
            )
            where = [n for n in range(len(told)) if tuple(told[n : n + len(word)]) == word]
            is_verb = clause.is_progressive and word == (f"{clause.base}ing",)
            if is_about and is_verb and not (clause.objects or clause.modal or clause.is_negative):
                # `The x is freezing` has a level as its verb.
                return clause.is_asserted
            if not where or not is_about or not clause.is_asserted or clause.is_negative:
                continue
            if told[where[0] + len(word) :][:1] in (["at"], ["by"]):
                # `faint at first`
                continue
            before = set(told[max(0, where[0] - 3) : where[0]])
            if clause.base in words(
                "be stay remain grow become turn run stand feel seem get blow hold"
            ) and not before & words("like than not no less nearly almost"):
                return True
        return False


def _is_measure(group: Group) -> bool:
    """Return True for `a little`, `a notch`, `five points`: the size of a change."""
    return group.word in words(
        "little notch bit degree points point hair fraction touch lot deal inch shade step level"
    )


_UNTIL = r"until|till|before|to|left|of"


class DurationClaims:
    """Checker of the time that is left: `nine days left`, `twelve hours before the x`.

    A noun of time is too common to name a quantity by itself, so only these phrases do.

    Args:
        amounts: the amounts of the turn.
    """

    def __init__(self, amounts: AmountReader) -> None:
        self._amounts = amounts
        self._patterns: dict[str, re.Pattern[str]] = {}
        self.words: frozenset[str] = frozenset()
        """The nouns of time."""
        for path, quantity in amounts.quantities.items():
            found = (re.match(rf"(\w+s)\s+(?:{_UNTIL})\b", name) for name in quantity.names)
            noun = next((match[1] for match in found if match is not None and match[1] in _TIME_NOUNS), "")
            if noun:
                unit = alternatives(number_forms(noun))
                self.words |= {*number_forms(noun)}
                self._patterns[path] = re.compile(
                    rf"\b(?:is|are|was|were|has|have|had|leaves?|still|only)\b(?P<before>[^.;:,]{{0,16}}?)\b"
                    rf"(?P<number>{NUMERAL})\s+(?:\w+\s+)?(?:{unit})\b(?:\s+\w+){{0,2}}?\s+"
                    rf"(?:left|remain\w*|until|till|before|yet|to go)\b"
                    rf"|(?<![\w,] )\b(?P<other>{NUMERAL})\s+(?:{unit})"
                    r"(?:\s+(?:is|are|was|were))?"
                    r"(?:\s+(?:left|remain\w*)\b|,\s+that(?:['\u2019]s| is| was) all\b)",
                    re.IGNORECASE,
                )

    def find_wrong(self, sentence: Sentence) -> list[str]:
        """Return the path of the time about which a sentence is wrong; empty if it is not wrong."""
        if len(self._patterns) != 1 or sentence.attributed:
            return []
        if sentence.clauses and not any(clause.is_asserted for clause in sentence.clauses):
            return []
        ((path, pattern),) = self._patterns.items()
        found = pattern.search(sentence.text)
        if found is None or words("not than about least most nearly almost perhaps") & set(
            (found["before"] or "").lower().split()
        ):
            return []
        number = parse_numeral(found["number"] or found["other"])
        return [] if self._amounts.has_value([path], number) else [path]


class AmountClaims:
    """Checker of claims about the quantities of a state.

    Args:
        facts: the turn.
        is_past: True if the past is the tense of the story.
    """

    def __init__(self, facts: TurnFacts, *, is_past: bool = False) -> None:
        self._amounts = AmountReader(facts, is_past=is_past)
        self._totals = TotalClaims(self._amounts)
        self._changes = ChangeClaims(facts, self._amounts)
        self._durations = DurationClaims(self._amounts)
        self._levels = LevelClaims(facts, self._amounts)
        self.words = self._durations.words
        """The words with which a claim may begin, besides names."""

    def check(self, sentence: Sentence, text: str, context: Sequence[ProseWord] = ()) -> Iterator[WrongClaim]:
        """Yield the claims of a sentence that contradict the record.

        Args:
            sentence: the sentence without speech.
            text: the sentence.
            context: the tokens of the sentence before.
        """
        if sentence.is_unreal:
            return
        late = self._durations.find_wrong(sentence)
        if late:
            yield self._amounts.contradiction(text, late)
            return
        named = list(
            dict.fromkeys(path for token in (*context, *sentence.tokens) for path in paths_of(token))
        )
        own = {
            path
            for token in sentence.tokens
            for kind, path in token.refs
            if kind in {"quantity", "unit", "bearer"}
        }
        if not named and not own:
            return
        wrong = self._totals.find_wrong_list(sentence)
        for clause in sentence.clauses:
            if wrong:
                break
            if clause.is_asserted and (
                not (clause.is_past and clause.is_perfect) or self._is_result(sentence, clause)
            ):
                wrong = self._wrong_clause(sentence, clause, named, context)
        if sentence.clauses and not any(clause.is_asserted for clause in sentence.clauses):
            is_if = any(
                clause.subordinator in {"if", "unless"} or clause.is_infinitive for clause in sentence.clauses
            )
            found = self._totals.find_wrong_fragment(sentence, named, context) if is_if else []
            if found:
                yield self._amounts.contradiction(text, found)
            return
        wrong = wrong or self._totals.find_wrong_same(sentence, text, named, context)
        wrong = (
            wrong
            or self._totals.find_wrong_fragment(sentence, named, context)
            or self._changes.find_wrong_band(sentence, own)
            or self._levels.find_wrong(sentence)
        )
        if wrong:
            claim = self._amounts.contradiction(text, wrong)
            yield replace(claim, is_certain=not self._has_right_number(sentence, wrong))

    def _has_right_number(self, sentence: Sentence, paths: Sequence[str]) -> bool:
        """Return True if a number is the value of a quantity or its difference.

        Then what looks wrong is most often another number, or another reading of this one.
        """
        told = {token.number for token in sentence.tokens if token.number is not None}
        right = [self._amounts.values_of(path)[-1] for path in paths]
        right += [abs(step) for path in paths if (step := self._amounts.end_step(path))]
        return any(is_rounded(number, value) for number in told for value in right)

    def _is_result(self, sentence: Sentence, clause: ProseClause) -> bool:
        """Return True for `had fallen to five` in a story in the past: the value is that of the scene."""
        told = {token.word for token in sentence.tokens}
        ends = clause.is_a("fall", "rise") and any(word == "to" for word, _ in clause.phrases)
        return self._amounts.is_past and ends and not clause.subordinator and not told & _EARLIER

    def _wrong_clause(
        self, sentence: Sentence, clause: ProseClause, named: list[str], context: Sequence[ProseWord]
    ) -> list[str]:
        """Return the paths of the quantity about which a clause is wrong; empty if it is not wrong."""
        found = self._totals.find_wrong_number(sentence, clause, named, context)
        if found:
            return found
        paths = self._amounts.quantity_of(clause.subject)
        if paths and self._changes.subject_is_wrong(clause, paths):
            return paths
        if (
            len(named) == 1
            and self._changes.says_none(clause)
            and not self._amounts.is_of_others(clause)
            and self._amounts.is_not_empty(named)
        ):
            return named
        return self._changes.find_wrong_object(sentence, clause)
