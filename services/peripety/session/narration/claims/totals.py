"""Claims of numbers about amounts: totals, differences and bounds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.session.narration.claims.amount_reader import bare_number, is_rounded, paths_of
from peripety.session.narration.claims.words import words, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.session.narration.claims.amount_reader import AmountReader
    from peripety.session.narration.claims.clauses import Clause, Group, Sentence
    from peripety.session.narration.claims.words import Word


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
    r"|and holding|still)\b",
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

    def find_wrong_fragment(self, sentence: Sentence, named: list[str], context: Sequence[Word]) -> list[str]:
        """Return the paths of a wrong part without a verb: `Four supplies.`, `No more supplies.`."""
        part: list[Word] = []
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
            if sentence.clauses and sentence.clauses[0].subordinator in {"if", "unless"}:
                continue
            found = self._wrong_part(sentence, tokens, named, context)
            if found:
                return found
        return []

    def _wrong_part(
        self, sentence: Sentence, tokens: list[Word], named: list[str], context: Sequence[Word]
    ) -> list[str]:
        told = {token.word for token in tokens}
        about = [path for token in tokens for path in paths_of(token)]
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
            and "yet" not in told
        ):
            return about if self._amounts.is_not_empty(about) and "doubt" not in told else []
        if any(clause.base in words("cost need require take owe") for clause in sentence.clauses):
            return []
        numbers = [token.number for token in tokens if token.number is not None]
        if (
            len(numbers) != 1
            or told & _VAGUE
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
        paths = about or units
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
        context: Sequence[Word],
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
        self, sentence: Sentence, text: str, named: list[str], context: Sequence[Word]
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
        self, sentence: Sentence, clause: Clause, named: list[str], context: Sequence[Word]
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
            and self._wrong_reading(clause, subject)
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
        context: Sequence[Word],
    ) -> bool:
        values, steps = (
            self._amounts.values(paths),
            {abs(step) for step in self._amounts.steps(paths) if step},
        )
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
        if any(is_rounded(number, step) for step in steps) and (not is_total or clause.is_a("gain", "spend")):
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
            and not self._amounts.is_of_others(clause)
        ):
            return True
        return is_total

    def _is_total(self, sentence: Sentence, clause: Clause, group: Group, role: str) -> bool:
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
            is_yours = clause.subject is not None and not self._amounts.is_of_others(clause)
            holds = (
                is_yours
                and clause.is_a("contain")
                and clause.base != "keep"
                and (cued or clause.base in words("have own contain count hold"))
            )
            return holds or (clause.base == "be" and cued)
        if role == "to" and clause.base in words("come amount add total hold bring cling"):
            return True
        if role == "at" and clause.base == "be":
            return True
        if role in {"to", "with", "at"}:
            return bool(words("down up left back") & set(clause.rest_words[:3])) or (
                role == "to" and clause.is_a("fall", "rise", "lower", "raise", "spend")
            )
        return False

    def _wrong_reading(self, clause: Clause, paths: list[str]) -> bool:
        """Return True if the value after a subject is wrong: `the pressure stands at 70`, `drops by 3`."""
        values = self._amounts.values(paths)
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
