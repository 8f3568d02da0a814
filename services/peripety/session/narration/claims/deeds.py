"""Claims about endings, actions and dice: prose that says that a run ended, or that something succeeded or failed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from peripety.session.narration.claims.english import (
    alternatives,
    drop_reported,
    is_negative,
    is_unsure,
    split_clauses,
    verb_forms,
)
from peripety.session.narration.claims.record import Contradiction
from peripety.session.state_facts import to_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.session.narration.claims.record import TurnFacts


_GAME = r"(?:game|run|story|scenario|match|adventure|campaign)"
_ALL_OF_IT = (
    rf"(?=\s*$|\s*[,;:.!]|\s+(?:and|at last|now|for good|the {_GAME}|it all|everything|here|already)\b)"
)
_WON = [
    rf"\b(?:you|we|I)(?:\s+have|'ve)?(?:\s+\w+ly)?\s+(?:won|win|triumphed|prevailed){_ALL_OF_IT}(?!\s+(?:the|a)\s+(?!{_GAME})\w)",
    r"\bvictory is (?:yours|ours|complete|won|certain)\b",
    rf"\bthe {_GAME} is (?:won|yours)\b",
    r"\byou are (?:victorious|the winner)\b",
    r"\byour (?:mission|quest) is (?:complete|accomplished|a success)\b",
    r"\bthe mission is (?:complete|accomplished|a success)\b",
]
_LOST = [
    rf"\b(?:you|we|I)(?:\s+have|'ve)?(?:\s+\w+ly)?\s+(?:lost|lose){_ALL_OF_IT}(?!\s+(?:the|a)\s+(?!{_GAME})\w)",
    rf"\byou\s+have\s+lost\s+(?:it|the {_GAME})\b",
    rf"\bthe {_GAME} is lost\b",
    r"\bdefeat is (?:complete|yours|certain)\b",
    r"\byou (?:have been|are) defeated\b",
]
_OVER = [
    rf"\b(?:the|this) {_GAME} (?:is over|has ended|is finished|ends|comes to an end|has come to an end|is at an end)\b",
    r"\bgame over\b",
    rf"\bthe end of the {_GAME}\b",
    r"^\s*the end\s*$",
]
_ON = [
    rf"\bthe {_GAME} (?:goes on|continues|is not over|isn['\u2019]t over|has not ended|is still open)\b",
    r"\bit is not over\b",
    r"\bit isn['\u2019]t over\b",
]
_NOT_WON = [r"\byou have(?: not|n['\u2019]t) won\b"]
_NOT_LOST = [r"\byou have(?: not|n['\u2019]t) lost(?=\s*$|\s*[,;:.!]|\s+(?:and|yet|the game)\b)"]
_WORTH_COMPARING = 12
_TO_BE = re.compile(r"[^\w]+")
_FAILING = r"cannot|can['\u2019]t|can not|could not|fail(?:s|ed)? to|do(?:es)? not|don['\u2019]t|doesn['\u2019]t|did not|didn['\u2019]t|(?:am|are|is) (?:unable|not able) to|do(?:es)? not manage to|did not manage to|do(?:es)? not succeed in"
_NO_SUCCESS = r"\b(?:try|tries|attempt|attempts)\s+to\s+{deed}\b.*(?:\bbut\b.*\bfails?\b|\bwithout success\b|\bin vain\b)"
_NOT_DONE = re.compile(
    r"\b(?:tr(?:y|ies|ied)|attempts?|begins?|starts?|wants?|plans?|ha(?:ve|s) to|needs?|can|cannot|could|fails?|failed|refuses?|about|unable|how|when|whenever|"
    r"if|whether|let|why|before|until|almost|nearly|time|never|not|without(?! waiting| hesita| thinking| delay)|after|as|since|where|who|tomorrow|way)\b",
    re.IGNORECASE,
)
_DETERMINER = r"(?:(?:the|a|an|your|our|his|her|their|its|some|that|this)\s+)?"
_CHANCE = re.compile(r'"(?:rand\w*|roll\w*|chance|dice|draw)"')


class DeedClaims:
    """Checker of claims about endings, actions and dice.

    Args:
        facts: the turn.
    """

    def __init__(self, facts: TurnFacts) -> None:
        self._facts = facts
        self._deeds = [deed for action in facts.spec.get("actions", ()) for deed in _read_deeds(action)]
        self._messages = _unreached_messages(facts)
        you = facts.after.names.get(facts.after.you, ())
        self._subject = rf"\b(?:you|I|we|{alternatives(you)})\b"
        self.words = frozenset(
            {
                "won",
                "win",
                "lost",
                "lose",
                "game",
                "victory",
                "defeat",
                "over",
                "end",
                "ends",
                "victorious",
                "defeated",
                "mission",
                "succeed",
                "fail",
            }
            | {word for deed in self._deeds for word in verb_forms(deed.verb)}
            | {_first_word(message) for message in self._messages}
        )

    def check(self, sentence: str) -> Iterator[Contradiction]:
        """Yield the claims of a sentence that contradict the record."""
        told = drop_reported(sentence)
        yield from self._check_ending(sentence, told)
        yield from self._check_rolls(sentence, told)
        yield from self._check_actions(sentence, told)

    # --- endings ---

    def _check_ending(self, sentence: str, told: str) -> Iterator[Contradiction]:
        kind = self._facts.status.kind
        text = _normalize(sentence)
        if any(message in text for message in self._messages):
            yield Contradiction("ending", sentence.strip(), self._describe_status())
            return
        # A narrator that does not know the end of the turn may guess that the run continues.
        guesses = set() if self._facts.knows_status else {"on", "not won", "not lost"}
        claimed = {
            claim
            for clause in [told.strip(" .!\n"), *split_clauses(told)]
            for claim in _claimed_endings(clause)
        }
        wrong = {
            "ongoing": {"won", "lost", "over"},
            "won": {"lost", "on", "not won"},
            "lost": {"won", "on", "not lost"},
            "survived": {"on"},
        }[kind]
        if (claimed & wrong) - guesses:
            yield Contradiction("ending", sentence.strip(), self._describe_status())

    def _describe_status(self) -> str:
        kind = self._facts.status.kind
        return "the run has not ended" if kind == "ongoing" else f"the run has ended: {kind}"

    # --- dice ---

    def _check_rolls(self, sentence: str, told: str) -> Iterator[Contradiction]:
        rolls = self._facts.rolls
        results = {roll.success for roll in rolls}
        if len(results) != 1:
            return
        kinds = alternatives(
            word for roll in rolls for word in [to_words(roll.kind), *_related_words(roll.kind)]
        )
        test = rf"(?:attempt|roll|check|test|try|effort|{kinds})(?:\s+(?:at|of|to)\s+{_DETERMINER}(?:{kinds}))?(?:\s+(?:check|roll|test|attempt))?"
        success = [
            rf"{self._subject}(?:\s+\w+ly|\s+do)?\s+(?:succeed|succeeds|succeeded)\b(?!\s+in\b)",
            rf"\b(?:the|your|this)\s+{test}\s+(?:is a success|succeeds?|succeeded|pays off|works?|worked)\b",
            r"\bit (?:works|worked)\b(?!\s+(?:like|as|for|best|only))",
            rf"{self._subject}\s+pass(?:es|ed)?\s+(?:the|your)\s+{test}",
            rf"{self._subject}\s+(?:did it|make it without a slip|made it)\b",
        ]
        failure = [
            rf"{self._subject}\s+(?:fail|fails|failed)\b(?!\s+to\b)",
            rf"\b(?:the|your|this)\s+{test}\s+(?:is a failure|fails?|failed|is not enough|comes to nothing|is in vain)\b",
            r"\bit does(?: not|n['\u2019]t) work\b",
            rf"{self._subject}\s+(?:do|did|does)(?: not|n['\u2019]t) (?:succeed|make it)\b",
        ]
        denied = [rf"{self._subject}\s+(?:do|did|does)(?: not|n['\u2019]t) fail\b"]
        for clause in split_clauses(told):
            if is_unsure(clause):
                continue
            has_failure = _matches(failure, clause) and not _matches(denied, clause)
            has_success = _matches(denied, clause) or (_matches(success, clause) and not is_negative(clause))
            if (has_success and not has_failure and results == {False}) or (
                has_failure and results == {True}
            ):
                expected = "the roll failed" if results == {False} else "the roll succeeded"
                yield Contradiction("action", sentence.strip(), expected)
                return

    # --- actions ---

    def _check_actions(self, sentence: str, told: str) -> Iterator[Contradiction]:
        for deed in self._deeds:
            if not re.search(rf"\b(?:{deed.object})\b", told, re.IGNORECASE):
                continue
            results = [
                action.accepted for action in self._facts.actions if action.action_id == deed.action_id
            ]
            if True not in results and self._claims_success(deed, told):
                if not results and deed.action_id in self._facts.done_before and self._is_past(deed, told):
                    continue
                how = "was refused" if results else "was not taken in this turn"
                yield Contradiction("action", sentence.strip(), f"the action '{deed.name}' {how}")
                return
            is_done = results and all(results) and not deed.has_chance and not self._has_failed_roll
            if is_done and self._claims_failure(deed, told):
                yield Contradiction("action", sentence.strip(), f"the action '{deed.name}' was carried out")
                return

    @property
    def _has_failed_roll(self) -> bool:
        return any(not roll.success for roll in self._facts.rolls)

    def _is_past(self, deed: _Deed, told: str) -> bool:
        return (
            re.search(rf"\b(?:{alternatives(verb_forms(deed.verb)[2:4])})\s", told, re.IGNORECASE) is not None
        )

    def _claims_success(self, deed: _Deed, told: str) -> bool:
        base, third, past, participle, gerund = verb_forms(deed.verb)
        what = rf"{_DETERMINER}(?:{deed.object})\b"
        tried = rf"\b(?:attempt|effort|try)\s+to\s+{base}\s+{what}\s+(?:succeeds|works|pays off|is a success)"
        if re.search(tried, told, re.IGNORECASE):
            return True
        with_subject = False
        for clause in _action_clauses(told):
            with_subject = bool(re.search(self._subject, clause, re.IGNORECASE)) or (
                with_subject and not re.match(r"\s*(?:[A-Z]\w+|he|she|they|it)\s", clause)
            )
            for found in re.finditer(
                rf"\b(?:{alternatives([base, third, past, participle, gerund])})\s+{what}",
                clause,
                re.IGNORECASE,
            ):
                before = clause[: found.start()]
                manages = re.search(
                    r"\b(?:manages? to|managed to|able to|succeeds? in|succeeded in|finish(?:es|ed)?|done)\s*$",
                    before,
                    re.IGNORECASE,
                )
                form = found[0].split()[0].lower()
                if form == gerund and not manages:
                    continue
                if (
                    not with_subject
                    or is_unsure(clause)
                    or (re.search(r"\bto\s*$", before, re.IGNORECASE) and not manages)
                ):
                    continue
                if not manages and re.search(r"\b(?:what|whatever|it)\s*$", before, re.IGNORECASE):
                    continue
                if _NOT_DONE.search(before) and not (manages and not is_negative(before)):
                    continue
                return True
        return False

    def _claims_failure(self, deed: _Deed, told: str) -> bool:
        if is_unsure(told.replace("could not", "cannot")):
            return False
        base = verb_forms(deed.verb)[0]
        what = rf"{_DETERMINER}(?:{deed.object})\b(?!\s+(?:again|yet|alone|further|any further|completely|all the way|quickly|quietly))"
        act = rf"{base}\s+{what}"
        return any(
            re.search(pattern, told, re.IGNORECASE)
            for pattern in (
                rf"{self._subject}\s+(?:{_FAILING})\s+(?:manage to\s+)?{act}",
                rf"\b(?:attempt|effort|try)\s+to\s+{act}\s+(?:fails?|failed|is in vain|comes to nothing)",
                _NO_SUCCESS.format(deed=act),
            )
        )


class _Deed:
    """An action as a verb and its object."""

    def __init__(self, action: Mapping[str, Any], name: str, verb: str, thing: str) -> None:
        self.action_id: str = action["id"]
        self.name = name
        self.verb = verb
        self.object = alternatives([thing])
        rules = {key: action.get(key) for key in ("derives", "effects", "preconditions")}
        self.has_chance = _CHANCE.search(json.dumps(rules)) is not None


def _read_deeds(action: Mapping[str, Any]) -> Iterator[_Deed]:
    """Yield the readings of an action's name as a verb with an object."""
    for name in dict.fromkeys([str(action.get("name") or ""), to_words(action["id"])]):
        words = re.findall(r"[^\W_]+(?:['\u2019-][^\W_]+)*", name.lower())
        verb, rest = (words[0], words[1:]) if words else ("", [])
        while rest and rest[0] in {"the", "a", "an", "your", "for", "on", "at", "with", "to", "some"}:
            if rest[0] in {"for", "on", "at", "with", "to"}:
                rest = []  # the object belongs to a preposition
                break
            rest = rest[1:]
        if rest and len(verb) > 1:
            yield _Deed(action, action.get("name") or action["id"], verb, " ".join(rest))


def _unreached_messages(facts: TurnFacts) -> list[str]:
    """Return the normalized messages of the endings that were not reached."""
    spec, reached = facts.spec, facts.status.condition
    others = {
        _normalize(str(rule.get(key) or ""))
        for group in ("actions", "random_events")
        for rule in spec.get(group, ())
        for key in ("name", "description")
    }
    ends = [*spec.get("loss_conditions", ()), *(spec.get("win_conditions") or ())]
    same = {_normalize(str(end.get("message") or "")) for end in ends if end["id"] == reached}
    texts = {_normalize(str(end.get("message") or "")) for end in ends if end["id"] != reached}
    return [text for text in texts - same - others if len(text) >= _WORTH_COMPARING]


def _normalize(text: str) -> str:
    return _TO_BE.sub(" ", text.lower()).strip()


def _first_word(text: str) -> str:
    return text.partition(" ")[0]


def _claimed_endings(clause: str) -> Iterator[str]:
    if _matches(_ON, clause):
        yield "on"
        return
    if _matches(_NOT_WON, clause):
        yield "not won"
        return
    if _matches(_NOT_LOST, clause):
        yield "not lost"
        return
    if is_negative(clause) or is_unsure(clause):
        return
    if _matches(_WON, clause):
        yield "won"
    if _matches(_LOST, clause):
        yield "lost"
    if _matches(_OVER, clause):
        yield "over"


def _matches(patterns: list[str], clause: str) -> bool:
    return any(re.search(pattern, clause, re.IGNORECASE) for pattern in patterns)


def _action_clauses(told: str) -> list[str]:
    """Return the parts of a sentence that can each have a verb of their own, with their subjects."""
    return [
        part
        for clause in split_clauses(told)
        for part in re.split(r",|\s+and\s+(?=\w+\s)", clause)
        if part.strip()
    ]


def _related_words(kind: str) -> list[str]:
    """Return other forms of the purpose of a roll: `climb`, `climbing`."""
    word = to_words(kind)
    return [] if " " in word else list(verb_forms(word)[1:])
