"""Claims about the levels of amounts: nearly empty, high or low, a record, as much as before, none left."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import words, words_of
from peripety.session.narration.claims.totals import is_rounded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.session.narration.claims.clauses import Group, ProseClause, Sentence
    from peripety.session.narration.claims.record import TurnFacts
    from peripety.session.narration.claims.totals import AmountReader

_HALF, _THIRD = 0.5, 1 / 3
_FEW = 3.0
_EMPTY, _LOW, _HIGH = (words_of("levels", name) for name in ("empty", "low", "high"))
_NEARLY = re.compile(
    r"\b(?:nearly|almost|all but|practically|as good as|virtually|next to|close to)\b", re.IGNORECASE
)
_HARDLY = words("barely hardly scarcely")
_PARTS = words_of("levels", "parts")
_PLENTY = words_of("levels", "plenty")
_LINKS = words("be look run stand lie sit seem get grow hang feel stay remain")
_USES = words(
    "use-up burn-through go-through run-through spend exhaust empty use burn drink eat fire run finish"
)
_USED_UP = words("finish exhaust deplete drain use-up empty")
_UNTOUCHED = re.compile(
    r"\b(?:(?:not (?:a|an|one)|no|none|never|without)\b[^,;.]*\b(?:touch(?:ed|ing)?|opened|opening|used"
    r"|using|spent|spending|lost|losing|missing)\b|as (?:full|many|much|high|low|good|strong) as"
    r" (?:it|they|you|ever|before|at|on|when|the)\b|(?:no|not a \w+) (?:more|less|fewer|higher|lower|nearer|"
    r"better|worse|further|closer) than (?:it|they|before|at|yesterday|when|this|there)\b)",
    re.IGNORECASE,
)
_OTHERS = words("but except save until till only before other else again")
_RECORD = re.compile(
    r"\bnever (?:yet )?been (?:so |quite so )?(?P<more>\w+)\b"
    r"|\bnever\b[^.;:]{0,50}?\bso (?P<so>\w+)\b|\ball-time (?P<end>low|high)\b"
    r"|\bat (?:its|their) (?P<most>lowest|highest|best|worst|fullest|strongest|weakest)\b",
    re.IGNORECASE,
)
_DOWN = words(
    "low lower lowest worst weak weaker weakest empty emptier thin thinner fewer less poor sour bleak gloomy "
    "grim wretched shaky bad"
)
_UP = words(
    "high higher highest best strong stronger strongest full fuller fullest more fierce fiercer great "
    "greater good firm steady bright merry cheerful"
)


class LevelClaims:
    """Checker of words for the levels of amounts.

    Args:
        facts: the turn.
        amounts: the amounts of the turn.
    """

    def __init__(self, facts: TurnFacts, amounts: AmountReader) -> None:
        self._amounts = amounts
        self._tops: dict[str, float] = {}
        for path, label in (facts.spec.get("labels") or {}).items():
            ends = [float(band["upto"]) for band in label.get("bands") or () if band.get("upto") is not None]
            if len(ends) > 1 and path in amounts.quantities:
                self._tops[path] = ends[-1]
        for path, quantity in amounts.quantities.items():
            if quantity.unit in {"percent", "%"}:
                self._tops[path] = 100.0

    def find_wrong(self, sentence: Sentence) -> list[str]:
        """Return the paths of an amount about whose level a sentence is wrong; empty if it is not wrong."""
        for clause in sentence.clauses:
            if clause.is_asserted and not clause.modal and not clause.is_infinitive:
                for paths in self._wrong_in(sentence, clause):
                    return paths
        return self._wrong_parts(sentence)

    def _wrong_in(self, sentence: Sentence, clause: ProseClause) -> Iterator[list[str]]:
        subject = clause.subject
        paths = self._amounts.quantity_of(subject)
        if paths and subject is not None and not self._amounts.is_single(subject, paths):
            is_part = subject.tokens[0].word in words("half most some few several one many each every any")
            if not is_part and all(token.number is None for token in subject.tokens):
                if self._is_level_wrong(sentence, clause, paths):
                    yield paths
                if self._is_record_wrong(sentence, clause, paths):
                    yield paths
        if clause.is_negative:
            return
        for word, group in [("", one) for one in clause.objects] + clause.phrases:
            used = self._amounts.quantity_of(group) or self._amounts.quantity_of(group.of)
            is_all = bool(words("last every all") & {*group.all_words, *_before(sentence, group)})
            is_use = clause.verb in _USES or clause.base in _USES
            is_told = is_all and is_use and word in {"", "through", "up"} and not clause.is_passive
            is_own = is_told and not self._amounts.is_of_others(clause)
            if used and is_own and self._amounts.is_not_empty(used):
                yield used

    def _is_level_wrong(self, sentence: Sentence, clause: ProseClause, paths: list[str]) -> bool:
        told = clause.rest_words[:4]
        if clause.is_passive and clause.verb in _USED_UP | {"use"}:
            is_up = clause.verb != "use" or told[:1] == ["up"]
            is_near = _NEARLY.search(sentence.text) is not None or "half" in clause.adverbs
            is_told = is_up and not clause.is_negative and not is_near and not clause.objects
            return is_told and not clause.phrases and self._amounts.is_not_empty(paths)
        if clause.base not in _LINKS or clause.is_progressive or clause.is_passive or clause.is_negative:
            return False
        if {"than", "as", "enough", "too", "for", "in", "on", "of", "with"} & set(told):
            return False
        is_near = bool(words("nearly almost practically virtually") & {*told, *clause.adverbs})
        is_near |= told[:2] in (["all", "but"], ["as", "good"])
        if is_near and _EMPTY & set(told):
            return all(self._is_more(path, _HALF) for path in paths)
        if is_near or words("half not no less more still so") & set(told):
            return False
        if _LOW & set(told):
            return all(self._is_more(path, 1 - _THIRD, is_known=True) for path in paths)
        if _HIGH & set(told):
            return all(self._is_less(path, _THIRD) for path in paths)
        return False

    def _is_more(self, path: str, share: float, *, is_known: bool = False, is_scarce: bool = False) -> bool:
        """Return True if all values of a path are more than a share of its top."""
        values, top = self._amounts.values_of(path), self._tops.get(path)
        if top is not None:
            return bool(values) and min(values) > share * top
        least = max(values[0] * _THIRD, 2 * _FEW) if is_scarce and values else max([*values[:1], _FEW])
        return bool(values) and not is_known and values[-1] >= least

    def _is_less(self, path: str, share: float) -> bool:
        values, top = self._amounts.values_of(path), self._tops.get(path)
        if top is not None:
            return bool(values) and max(values) < share * top
        return bool(values) and all(is_rounded(0.0, value) for value in values)

    def _is_record_wrong(self, sentence: Sentence, clause: ProseClause, paths: list[str]) -> bool:
        """Check `has never been lower` and `is at its highest`."""
        if clause.base not in {"be", "stand", "run", "hit", "reach", "feel"} or clause.modal:
            return False
        found = _RECORD.search(sentence.text)
        if found is None or "than" in sentence.text[found.end() : found.end() + 6]:
            return False
        told = (found["more"] or found["so"] or found["end"] or found["most"]).lower()
        sign = -1 if told in _DOWN else 1 if told in _UP else 0
        return bool(sign) and all(self._amounts.end_step(path) * sign < 0 for path in paths)

    def _wrong_parts(self, sentence: Sentence) -> list[str]:
        """Check `hardly any x`, `the dregs of the x`, `plenty of x`, and an untouched amount."""
        if sentence.clauses and not any(clause.is_asserted for clause in sentence.clauses):
            return []
        told = {token.word for token in sentence.tokens}
        for _, group in sentence.groups:
            paths = self._amounts.quantity_of(group)
            if not paths and group.of is not None and group.word in _PARTS | _PLENTY:
                paths = self._amounts.quantity_of(group.of)
            if not paths:
                continue
            before = _before(sentence, group)
            is_scarce = bool(_HARDLY & set(before[-1:])) and group.tokens[0].word in {"any", "a"}
            is_scarce |= group.word in _PARTS and group.of is not None and not told & words("more another")
            if (
                is_scarce
                and self._is_left(sentence, group)
                and all(self._is_more(one, _HALF, is_scarce=group.word not in _PARTS) for one in paths)
                and "not" not in told
            ):
                return paths
            is_plenty = group.word in _PLENTY and group.of is not None
            if is_plenty and "no" not in before and all(self._is_less(one, 0.1) for one in paths):
                return paths
        return self._wrong_untouched(sentence, told)

    @staticmethod
    def _is_left(sentence: Sentence, group: Group) -> bool:
        """Return True if a part is all that is left: it is the subject, or behind `there is` or `have`."""
        return any(
            (clause.subject is group and clause.is_a("remain"))
            or (group in clause.objects and clause.base in words("be have leave") and not clause.modal)
            for clause in sentence.clauses
            if clause.is_asserted
        )

    def _paths_of(self, group: Group) -> list[str]:
        """Return the paths of an amount that a group names, also by its unit."""
        return self._amounts.quantity_of(group) or [key for kind, key in group.head.refs if kind == "unit"]

    def _wrong_untouched(self, sentence: Sentence, told: set[str]) -> list[str]:
        found = _UNTOUCHED.search(sentence.text)
        if found is None or told & _OTHERS or sentence.attributed:
            return []
        if "without" in told and not found[0].lower().startswith("without"):
            return []
        for clause in sentence.clauses:
            if not clause.is_asserted or clause.modal:
                continue
            groups = [*([clause.subject] if clause.subject is not None else []), *clause.objects]
            named = [path for one in groups for path in self._paths_of(one)]
            if len(set(named)) == 1 and self._amounts.end_step(named[0]):
                start = max(0, clause.span[0])
                if _UNTOUCHED.search(sentence.text, start) is not None:
                    return named[:1]
        return []


def _before(sentence: Sentence, group: Group) -> list[str]:
    place = sentence.tokens.index(group.tokens[0])
    return [token.word for token in sentence.tokens[max(0, place - 2) : place]]
