"""Claims about endings, actions and dice: that a run ended, or that something succeeded or failed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.session.narration.claims.english import (
    Phrases,
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


_WRONG_ENDINGS = {
    "ongoing": {"won", "lost", "over"},
    "won": {"lost", "on", "not_won"},
    "lost": {"won", "on", "not_lost"},
    "survived": {"on"},
}
_GUESSES = {"on", "not_won", "not_lost"}
_MIN_MESSAGE_CHARACTERS = 12
_NOT_WORDS = re.compile(r"[^\w]+")
_ARTICLES = frozenset({"the", "a", "an", "your", "some"})
_PREPOSITIONS = frozenset({"for", "on", "at", "with", "to"})
_CHANCE = re.compile(r'"(?:rand\w*|roll\w*|chance|dice|draw)"')


@dataclass(frozen=True, slots=True)
class Deed:
    """An action as a verb and its object.

    Attributes:
        action_id: the action.
        name: its name.
        verb: the verb.
        thing: the object.
        has_chance: True if the effects depend on chance.
    """

    action_id: str
    name: str
    verb: str
    thing: str
    has_chance: bool


def read_deeds(action: Mapping[str, Any]) -> Iterator[Deed]:
    """Yield the readings of an action's name and id as a verb with an object."""
    rules = json.dumps({key: action.get(key) for key in ("derives", "effects", "preconditions")})
    has_chance = _CHANCE.search(rules) is not None
    for name in dict.fromkeys([str(action.get("name") or ""), to_words(action["id"])]):
        verb, *rest = re.findall(r"[^\W_]+(?:['\u2019-][^\W_]+)*", name.lower()) or [""]
        while rest and rest[0] in _ARTICLES:
            rest = rest[1:]
        if rest and rest[0] not in _PREPOSITIONS and len(verb) > 1:
            yield Deed(action["id"], action.get("name") or action["id"], verb, " ".join(rest), has_chance)


class DeedClaims:
    """Checker of claims about endings, actions and dice.

    Args:
        facts: the turn.
    """

    def __init__(self, facts: TurnFacts) -> None:
        self._facts = facts
        self._deeds = [deed for action in facts.spec.get("actions", ()) for deed in read_deeds(action)]
        self._messages = _unreached_messages(facts)
        you = alternatives(facts.after.names.get(facts.after.you, ()))
        kinds = alternatives(word for roll in facts.rolls for word in _related_words(roll.kind))
        self._phrases = Phrases("deeds", {"you": rf"\b(?:you|I|we|{you})\b", "kinds": kinds})
        verbs = {form for deed in self._deeds for form in verb_forms(deed.verb)}
        self.words = frozenset(
            {*self._phrases.words("signals"), *verbs, *(text.partition(" ")[0] for text in self._messages)}
        )
        """The words with which a claim may begin."""

    def check(self, sentence: str) -> Iterator[Contradiction]:
        """Yield the claims of a sentence that contradict the record."""
        told = drop_reported(sentence)
        yield from self._check_ending(sentence, told)
        yield from self._check_rolls(sentence, told)
        yield from self._check_actions(sentence, told)

    # --- endings ---

    def _check_ending(self, sentence: str, told: str) -> Iterator[Contradiction]:
        text = _normalize(sentence)
        clauses = dict.fromkeys([told.strip(" .!\n"), *split_clauses(told)])
        claimed = {claim for clause in clauses for claim in self._claimed_endings(clause)}
        wrong = _WRONG_ENDINGS[self._facts.status.kind]
        # A narrator that does not know the end of the turn may guess that the run continues.
        wrong = wrong if self._facts.knows_status else wrong - _GUESSES
        if claimed & wrong or any(message in text for message in self._messages):
            kind = self._facts.status.kind
            expected = "the run has not ended" if kind == "ongoing" else f"the run has ended: {kind}"
            yield Contradiction("ending", sentence.strip(), expected)

    def _claimed_endings(self, clause: str) -> Iterator[str]:
        for claim in ("on", "not_won", "not_lost"):
            if self._phrases.search(claim, clause):
                yield claim
                return
        if not is_negative(clause) and not is_unsure(clause):
            yield from (claim for claim in ("won", "lost", "over") if self._phrases.search(claim, clause))

    # --- dice ---

    def _check_rolls(self, sentence: str, told: str) -> Iterator[Contradiction]:
        results = {roll.success for roll in self._facts.rolls}
        if len(results) != 1:
            return
        has_success = results == {True}
        for clause in split_clauses(told):
            claimed = None if is_unsure(clause) else self._claimed_result(clause)
            if claimed is not None and claimed is not has_success:
                expected = "the roll succeeded" if has_success else "the roll failed"
                yield Contradiction("action", sentence.strip(), expected)
                return

    def _claimed_result(self, clause: str) -> bool | None:
        """Return True if a clause states that a test succeeded, False if that it failed, else None."""
        if self._phrases.search("no_failure", clause):
            return True
        if self._phrases.search("failure", clause):
            return False
        return True if self._phrases.search("success", clause) and not is_negative(clause) else None

    # --- actions ---

    def _check_actions(self, sentence: str, told: str) -> Iterator[Contradiction]:
        for deed in self._deeds:
            wrong = self._contradicted_result(deed, told) if deed.thing in told.lower() else None
            if wrong is not None:
                yield Contradiction("action", sentence.strip(), f"the action '{deed.name}' {wrong}")
                return

    def _contradicted_result(self, deed: Deed, told: str) -> str | None:
        """Return the recorded result of an action if a sentence contradicts it."""
        results = [action.accepted for action in self._facts.actions if action.action_id == deed.action_id]
        if True not in results:
            # Prose may look back at an action of an earlier turn.
            is_earlier = not results and deed.action_id in self._facts.done_before and _is_past(deed, told)
            how = "was refused" if results else "is not an action of this turn"
            return how if not is_earlier and self._claims_success(deed, told) else None
        is_open = False in results or deed.has_chance or any(not roll.success for roll in self._facts.rolls)
        return "was carried out" if not is_open and self._claims_failure(deed, told) else None

    def _slots(self, deed: Deed) -> dict[str, str]:
        thing = (
            rf"(?:(?:the|an?|your|our|his|her|their|its|some|that|this)\s+)?{alternatives([deed.thing])}\b"
        )
        return {"verb": deed.verb, "forms": alternatives(verb_forms(deed.verb)), "object": thing}

    def _claims_success(self, deed: Deed, told: str) -> bool:
        slots = self._slots(deed)
        if self._phrases.search("attempt_succeeds", told, **slots):
            return True
        is_yours = False
        for clause in _split_actions(told):
            names_you = self._phrases.search("own_subject", clause) is not None
            is_yours = names_you or (is_yours and not self._phrases.search("other_subject", clause))
            acts = self._phrases.find_all("act", clause, **slots)
            if is_yours and any(self._is_done(deed, clause[: found.start()], found[0]) for found in acts):
                return True
        return False

    def _is_done(self, deed: Deed, before: str, act: str) -> bool:
        """Return True if an act was done, by the text before it in its clause."""
        manages = self._phrases.search("managing", before) is not None
        if is_unsure(before) or (manages and is_negative(before)):
            return False
        if manages:
            return True
        is_gerund = act.split(maxsplit=1)[0].lower() == verb_forms(deed.verb)[4]
        hedges = ("infinitive", "not_own", "not_done")
        return not is_gerund and not any(self._phrases.search(hedge, before) for hedge in hedges)

    def _claims_failure(self, deed: Deed, told: str) -> bool:
        is_open = is_unsure(told.replace("could not", "cannot"))
        return not is_open and self._phrases.search("action_fails", told, **self._slots(deed)) is not None


def _is_past(deed: Deed, told: str) -> bool:
    past = alternatives(verb_forms(deed.verb)[2:4])
    return re.search(rf"\b(?:{past})\s", told, re.IGNORECASE) is not None


def _unreached_messages(facts: TurnFacts) -> list[str]:
    """Return the normalized messages of the endings that were not reached."""
    spec, reached = facts.spec, facts.status.condition
    names = {
        _normalize(str(rule.get(key) or ""))
        for group in ("actions", "random_events")
        for rule in spec.get(group, ())
        for key in ("name", "description")
    }
    ends = [*spec.get("loss_conditions", ()), *(spec.get("win_conditions") or ())]
    texts = [(end["id"] == reached, _normalize(str(end.get("message") or ""))) for end in ends]
    said = names | {text for is_reached, text in texts if is_reached}
    return [text for _, text in texts if text not in said and len(text) >= _MIN_MESSAGE_CHARACTERS]


def _normalize(text: str) -> str:
    return _NOT_WORDS.sub(" ", text.lower()).strip()


def _split_actions(told: str) -> list[str]:
    """Return the parts of a sentence that can each have a verb of their own."""
    parts = (part for clause in split_clauses(told) for part in re.split(r",|\s+and\s+(?=\w+\s)", clause))
    return [part for part in parts if part.strip()]


def _related_words(kind: str) -> tuple[str, ...]:
    """Return the forms of the word for the purpose of a roll, such as climb, climbs and climbing."""
    word = to_words(kind)
    return (word,) if " " in word else verb_forms(word)
