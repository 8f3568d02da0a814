"""Claims about actions: that something was done, succeeded or failed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from peripety.session.narration.claims.english import load_toml, verb_forms
from peripety.session.narration.claims.record import Contradiction
from peripety.session.narration.claims.words import GERUND, PARTICIPLE, words, words_of
from peripety.session.state_facts import to_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.session.narration.claims.clauses import Clause, Group, Sentence
    from peripety.session.narration.claims.record import TurnFacts


_ARTICLES = words("the a an your some his her their my our")
_PREPOSITIONS = words("for on at with to into after through up down over from")
_MISSES = words(
    "miss misses missed fail fails failed but vain nothing not n't no without wide useless too never jammed"
)
_CHANCE = re.compile(r'"(?:rand\w*|roll\w*|chance|dice|draw)"')


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of action.

    Attributes:
        verbs: what its actor does.
        results: what its object does or is when it succeeded.
        states: what its object is when it failed.
    """

    verbs: frozenset[str]
    results: frozenset[str]
    states: frozenset[str]


@cache
def _kinds() -> tuple[_Kind, ...]:
    rows = (line.split("|") for line in load_toml("vocabulary.toml")["deeds"].values())
    return tuple(_Kind(*(frozenset(part.split()) for part in row)) for row in rows)


@dataclass(frozen=True, slots=True)
class Deed:
    """An action as a verb and its object.

    Attributes:
        action_id: the action.
        name: its name.
        verb: the verb.
        thing: the object; empty for none.
        has_chance: True if the effects depend on chance.
    """

    action_id: str
    name: str
    verb: str
    thing: str
    has_chance: bool

    @property
    def kind(self) -> _Kind:
        """The kinds of action to which the verb belongs."""
        found = [one for one in _kinds() if self.verb in one.verbs]
        return _Kind(
            frozenset({self.verb}).union(*(one.verbs for one in found)),
            frozenset().union(*(one.results for one in found)),
            frozenset().union(*(one.states for one in found)),
        )


def read_deeds(action: Mapping[str, Any]) -> Iterator[Deed]:
    """Yield the readings of an action's name and id as a verb with an object."""
    rules = json.dumps({key: action.get(key) for key in ("derives", "effects", "preconditions")})
    has_chance = _CHANCE.search(rules) is not None
    for name in dict.fromkeys([str(action.get("name") or ""), to_words(action["id"])]):
        verb, *rest = re.findall(r"[^\W_]+(?:['\u2019-][^\W_]+)*", name.lower()) or [""]
        while rest and rest[0] in _ARTICLES | _PREPOSITIONS:
            rest = rest[1:]
        if len(verb) > 1:
            yield Deed(action["id"], action.get("name") or action["id"], verb, " ".join(rest), has_chance)


class DeedClaims:
    """Checker of claims about actions.

    Args:
        facts: the turn.
    """

    def __init__(self, facts: TurnFacts) -> None:
        self._facts = facts
        self.deeds = [deed for action in facts.spec.get("actions", ()) for deed in read_deeds(action)]
        self._kinds = {deed: deed.kind for deed in self.deeds}
        names = {name.lower(): entity for entity, known in facts.after.names.items() for name in known}
        self._people = {deed.thing: names[deed.thing] for deed in self.deeds if deed.thing in names}
        self.words = frozenset(form for deed in self.deeds for form in verb_forms(deed.verb))
        """The words with which a claim may begin."""

    def check(self, sentence: Sentence, text: str) -> Iterator[Contradiction]:
        """Yield the claims of a sentence that contradict the record.

        Args:
            sentence: the sentence without speech.
            text: the sentence.
        """
        if not sentence.is_unreal:
            yield from self._check_actions(sentence, text)

    def _check_actions(self, sentence: Sentence, text: str) -> Iterator[Contradiction]:
        named = sentence.named("object")
        subjects = [clause.subject.word for clause in sentence.clauses if clause.subject is not None]
        has_nothing = "nothing" in subjects
        for deed in self.deeds:
            person = self._people.get(deed.thing)
            if person is not None and person not in sentence.named("entity"):
                continue
            is_named = not deed.thing or person is not None or f"{deed.action_id}/{deed.thing}" in named
            if not is_named and not has_nothing:
                continue
            wrong = self._contradicted_result(deed, sentence)
            if wrong is not None:
                yield Contradiction("action", text.strip(), f"the action '{deed.name}' {wrong}")
                return

    def _result_of(self, deed: Deed) -> str:
        """Return `done`, `failed`, `refused` or `untried`; `open` if the record does not show it."""
        results = [action.accepted for action in self._facts.actions if action.action_id == deed.action_id]
        if True not in results:
            return "refused" if results else "untried"
        rolls = [roll for roll in self._facts.rolls if roll.kind == deed.action_id]
        if not rolls and (deed.has_chance or self._facts.rolls):
            accepted = {action.action_id for action in self._facts.actions if action.accepted}
            if len(accepted) != 1 or not self._facts.rolls:
                return "open"
            rolls = list(self._facts.rolls)
        if False in results:
            return "open"
        results = [roll.success for roll in rolls]
        return "done" if all(results) else "failed" if not any(results) else "open"

    def _contradicted_result(self, deed: Deed, sentence: Sentence) -> str | None:
        """Return the recorded result of an action if a sentence contradicts it."""
        result = self._result_of(deed)
        told = {
            "refused": "was refused",
            "untried": "is not an action of this turn",
            "failed": "failed",
            "done": "was carried out",
        }
        if result == "open":
            return None
        attempted = self._attempt_result(deed, sentence)
        if attempted is not None and attempted is not (result == "done"):
            return told[result]
        for clause in sentence.clauses:
            if result == "done":
                wrong = self._claims_failure(deed, clause, sentence)
            else:
                is_earlier = (
                    result == "untried"
                    and deed.action_id in self._facts.done_before
                    and (clause.is_past or clause.is_perfect)
                )
                wrong = not is_earlier and self._claims_success(deed, clause, sentence, result)
            if wrong:
                return told[result]
        return None

    def _attempt_result(self, deed: Deed, sentence: Sentence) -> bool | None:
        """Return the result that a sentence gives to an attempt: `your attempt to open the x fails`."""
        tries = [
            clause
            for clause in sentence.clauses
            if clause.is_infinitive and self._does(deed, clause) and self._has_object(deed, clause)
        ]
        if not tries:
            return None
        told_words = {token.word for token in sentence.tokens if token.start < tries[0].span[1]}
        is_attempt = bool(told_words & words("attempt attempts effort efforts try tries tried attempted bid"))
        later = [clause for clause in sentence.clauses if clause.start > tries[0].start and not clause.modal]
        for clause in later if is_attempt else ():
            is_own = clause.copied_subject or (
                clause.subject is not None
                and (
                    clause.subject.word in words("attempt effort try it")
                    or self._is_yours(clause)
                    or self._is_object(deed, clause.subject)
                )
            )
            ends = clause.base in words("end come meet be result") and bool(
                {"failure", "nothing", "vain"} & set(clause.rest_words)
            )
            if is_own and (clause.base in {"fail", "flop", "misfire"} or ends):
                return clause.is_negative
            if is_own and (
                clause.base in {"succeed", "work"} or (clause.base == "pay" and "off" in clause.rest_words)
            ):
                return not clause.is_negative
        return None

    def _is_object(self, deed: Deed, group: Group | None) -> bool:
        if group is None or not deed.thing:
            return False
        person = self._people.get(deed.thing)
        if person is not None:
            return person in group.keys("entity")
        key = f"{deed.action_id}/{deed.thing}"
        heads = [group, *group.joined, *([group.of] if group.of is not None else [])]
        return any(
            key in one.keys("object") or any(("object", key) in token.refs for token in one.tokens[-2:])
            for one in heads
        )

    def _has_object(self, deed: Deed, clause: Clause) -> bool:
        if not deed.thing:
            return True
        if any(self._is_object(deed, one) for one in clause.objects):
            return True
        return any(
            self._is_object(deed, one)
            for word, one in clause.phrases
            if word in words("at on up through into to down over out from after with of around across")
            or word == deed.verb
        )

    def _is_yours(self, clause: Clause) -> bool:
        return self._facts.after.you in clause.subjects()

    def _does(self, deed: Deed, clause: Clause) -> bool:
        verbs = self._kinds[deed].verbs
        return clause.verb in verbs or clause.base in verbs

    def _claims_success(self, deed: Deed, clause: Clause, sentence: Sentence, result: str) -> bool:
        if not clause.is_asserted or clause.is_negative:
            return False
        if result == "failed" and _MISSES & {token.word for token in sentence.tokens}:
            return False
        kind = self._kinds[deed]
        if self._is_yours(clause):
            if (
                self._does(deed, clause)
                and not clause.is_passive
                and self._has_object(deed, clause)
                and self._is_told_done(deed, clause, result)
            ):
                return True
            states = kind.results & set(clause.rest_words) | (
                {verb_forms(deed.verb)[3]} & set(clause.rest_words)
            )
            later = {
                one.base for one in sentence.clauses if one.governor is clause and one.form == PARTICIPLE
            }
            states |= later & {verb.partition("-")[0] for verb in kind.verbs}
            if (
                clause.base in words_of("sets", "causes")
                and states
                and deed.thing
                and any(self._is_object(deed, one) for one in clause.objects)
            ):
                return True
        if deed.thing and self._is_object(deed, clause.subject):
            told_words = set(clause.rest_words[:4])
            participles = {verb_forms(deed.verb)[3]}
            if clause.is_passive and clause.base in {verb.partition("-")[0] for verb in kind.verbs}:
                return True
            if (clause.base in kind.results or clause.verb in kind.results) and (
                result != "untried" or clause.base not in words("work run hum hold burn glow fall die strike")
            ):
                return not clause.objects or bool({one.word for one in clause.objects} & kind.results)
            strong = told_words & (kind.results | participles)
            if strong and clause.base in words("be stand lie get swing come fly go look hang"):
                return (
                    result != "untried"
                    or clause.base in words("swing come fly get")
                    or bool(told_words & participles)
                )
        return False

    def _is_told_done(self, deed: Deed, clause: Clause, result: str) -> bool:
        if clause.is_infinitive and clause.governor is not None:
            return clause.governor.base in words("manage get succeed dare finish take help")
        if clause.form == GERUND:
            return clause.governor is None or clause.copied_subject
        if clause.form == PARTICIPLE and not clause.is_perfect:
            return False
        if not deed.thing and clause.base != deed.verb:
            return False
        return not (result == "failed" and clause.base in {"try", "push"})

    def _claims_failure(self, deed: Deed, clause: Clause, sentence: Sentence) -> bool:
        if clause.modal in words("would might may should must shall 'd 'll"):
            return False
        kind = self._kinds[deed]
        if (
            clause.subject is not None
            and clause.subject.word == "nothing"
            and clause.is_passive
            and clause.base == deed.verb
        ):
            return True
        if self._is_yours(clause) and self._does(deed, clause) and self._has_object(deed, clause):
            governor = clause.governor
            if clause.is_negative and clause.subordinator == "" and not clause.is_infinitive:
                told_words = words("again yet alone further any completely all quickly quietly until without")
                return not told_words & set(clause.rest_words)
            if (
                clause.is_infinitive
                and governor is not None
                and governor.base == "give"
                and "up" in governor.rest_words
                and not governor.is_negative
            ):
                return not governor.modal
            if (
                clause.is_infinitive
                and governor is not None
                and governor.subordinator == ""
                and not governor.modal
            ):
                fails = governor.base == "fail" and not governor.is_negative
                not_managed = (
                    governor.is_negative
                    and governor.base in words("manage get bring be")
                    and ("able" in governor.rest_words or governor.base != "be")
                )
                unable = governor.base == "be" and "unable" in governor.rest_words
                tries = governor.base in {"try", "attempt"} and self._is_vain(sentence)
                return fails or not_managed or unable or tries
            if clause.base == "give" and clause.verb.endswith("up"):
                return True
        if (
            deed.thing
            and self._is_object(deed, clause.subject)
            and clause.is_asserted | (clause.modal in {"will", "'ll"} and clause.is_negative)
        ):
            if clause.is_negative and (
                clause.modal in {"will", "'ll"}
                or clause.base in kind.results | kind.verbs
                or clause.base in words("budge move give open work")
            ):
                return True
            if clause.base == "refuse":
                return True
            if (
                clause.base in words_of("sets", "stays")
                and kind.states & set(clause.rest_words[:3])
                and not clause.is_negative
            ):
                return clause.base in words_of("sets", "stays_2") or "still" in clause.adverbs
            if clause.is_negative and clause.is_passive and clause.base in kind.verbs:
                return True
        return False

    def _is_vain(self, sentence: Sentence) -> bool:
        text = sentence.text.lower()
        return any(
            one in text
            for one in (
                "but fail",
                "without success",
                "in vain",
                "to no avail",
                "no luck",
                "but it does not",
                "nothing gives",
            )
        )
