"""Claims about people and things: alive or dead, present or elsewhere, and who has what."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import (
    SPOKEN,
    Phrases,
    alternatives,
    drop_reported,
    is_negative,
    is_unsure,
    split_clauses,
    tense_forms,
    verb_forms,
)
from peripety.session.narration.claims.record import Contradiction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.session.narration.claims.record import TurnFacts


_NAME_END = r"(?![\w'\u2019-])"
_TAIL = 12
"""Number of characters behind a verb in which a negation belongs to it."""


class PeopleClaims:
    """Checker of claims about the entities of a scenario and the things they hold.

    Args:
        facts: the turn.
        is_past: True if the past is the tense of the story.
    """

    def __init__(self, facts: TurnFacts, *, is_past: bool = False) -> None:
        self._facts = facts
        after = facts.after
        self._you = after.you
        self._others = {entity: names for entity, names in after.names.items() if entity != after.you}
        self._here = facts.places_of(self._you)
        self._places = {
            place: rf"(?:the\s+)?(?:{alternatives(names)})\b"
            for place, names in {**facts.before.place_names, **after.place_names}.items()
        }
        self._things = {*facts.before.holders, *after.holders}
        phrases = self._phrases = Phrases("people", {"spoken": SPOKEN})
        speech, deeds = phrases.words("speech"), phrases.words("deeds")
        self._speaking = tense_forms(speech, is_past=is_past)
        self._doing = tense_forms([*speech, *deeds], is_past=is_past)
        phrases.add_slots(
            speaking=self._speaking,
            gerunds=alternatives(verb_forms(verb)[4] for verb in [*speech, *deeds]),
            **{
                verbs: tense_forms(phrases.words(verbs), is_past=is_past)
                for verbs in ("getting", "giving", "storing", "lifting")
            },
        )
        names = [name for known in after.names.values() for name in known]
        places = [name for known in after.place_names.values() for name in known]
        self.words = frozenset(map(str.lower, [*names, *places, *self._things]))
        """The words that name an entity, a place or a thing."""

    def check(self, sentence: str) -> Iterator[Contradiction]:
        """Yield the claims of a sentence that contradict the record."""
        told = drop_reported(sentence)
        yield from self._check_lives(sentence, told)
        if self._here and not self._phrases.search("remote", sentence):
            yield from self._check_presence(sentence, told)
        for clause in split_clauses(told):
            yield from self._check_where(sentence, clause)
            yield from self._check_holders(sentence, clause)

    def check_speaker(self, entity: str, utterance: str, narrative: str) -> Contradiction | None:
        """Return the contradiction of a line of dialogue by a dead or absent entity, if there is one."""
        name = self._facts.after.name_of(entity)
        if self._facts.is_alive(entity) is False:
            return Contradiction("life", utterance, f"{name} is dead")
        if self._is_elsewhere(entity) and not self._phrases.search("remote", narrative):
            return Contradiction("presence", utterance, f"{name} is in {self._place_of(entity)}")
        return None

    def _named(self, text: str) -> list[str]:
        """Return the other entities whose names occur in a text."""
        lower = text.lower()
        return [
            entity for entity, names in self._others.items() if any(one.lower() in lower for one in names)
        ]

    def _slots(self, entity: str) -> dict[str, str]:
        """Return the slots of the phrases about one entity."""
        name = alternatives(self._facts.after.names.get(entity, ()))
        if entity == self._you:
            return {
                "who": rf"(?:you|I|{name}){_NAME_END}",
                "whose": "your",
                "to": r"\b(?:you|me)\b",
                "their": "(?:your|my)",
                "theirs": "(?:yours|mine)",
            }
        whose = rf"(?:{name})['\u2019]s"
        return {
            "who": rf"(?:{name}){_NAME_END}",
            "whose": whose,
            "to": rf"\b(?:{name})\b{_NAME_END}",
            "their": rf"(?:{whose}|his|her|their)",
            "theirs": whose,
        }

    def _is_hidden(self, before: str) -> bool:
        """Return True if the text before a statement makes it a part of another one."""
        return bool(
            self._phrases.search("hidden_before", before) or self._phrases.search("subordinate", before)
        )

    # --- life ---

    def _check_lives(self, sentence: str, told: str) -> Iterator[Contradiction]:
        for entity in self._named(sentence):
            is_alive = self._facts.is_alive(entity)
            name = self._facts.after.name_of(entity)
            if is_alive is False and (
                self._acts(entity, sentence, told, self._doing) or self._lives(entity, told)
            ):
                yield Contradiction("life", sentence.strip(), f"{name} is dead")
            elif is_alive is True and self._dies(entity, told):
                yield Contradiction("life", sentence.strip(), f"{name} is alive")

    def _acts(self, entity: str, sentence: str, told: str, doing: str) -> bool:
        """Return True if a sentence states that an entity does something in the scene."""
        slots = self._slots(entity)
        # A line of speech has its speaker before or behind the verb.
        if self._phrases.search("spoken_by", sentence, **slots):
            return True
        for found in self._phrases.find_all("acts", told, doing=doing, **slots):
            clause = re.split(r"[;:]|,\s+(?:and|then|but)\s", told[: found.start()])[-1]
            behind = told[found.start() : found.end() + _TAIL]
            if not (self._is_hidden(clause) or is_unsure(clause) or re.search(r"\b(?:never|not)\b", behind)):
                return True
        return self._phrases.search("acts_with", told, doing=doing, **slots) is not None

    def _lives(self, entity: str, told: str) -> bool:
        if is_negative(told) or is_unsure(told):
            return False
        found = self._phrases.search("lives", told, **self._slots(entity))
        return found is not None and not self._phrases.search("hidden_before", told[: found.start()])

    def _dies(self, entity: str, told: str) -> bool:
        slots = self._slots(entity)
        if self._phrases.search("no_life", told, **slots):
            return True
        if is_negative(told) or is_unsure(told):
            return False
        found = self._phrases.search("dies", told, **slots)
        return found is not None and not self._phrases.search("subordinate", told[: found.start()])

    # --- presence ---

    def _is_elsewhere(self, entity: str) -> bool:
        places = self._facts.places_of(entity)
        return bool(places) and bool(self._here) and places.isdisjoint(self._here)

    def _is_with_you(self, entity: str) -> bool:
        is_here = self._facts.places_of(entity) == self._here and len(self._here) == 1
        return is_here and self._facts.is_alive(entity) is not False

    def _place_of(self, entity: str) -> str:
        after = self._facts.after
        return f"the {after.place_names[after.places[entity]][0]}"

    def _names_place(self, sentence: str, places: set[str]) -> bool:
        known = [self._places[place] for place in places]
        return any(re.search(rf"\b{pattern}", sentence, re.IGNORECASE) for pattern in known)

    def _check_presence(self, sentence: str, told: str) -> Iterator[Contradiction]:
        for entity in self._named(sentence):
            name = self._facts.after.name_of(entity)
            is_dead = self._facts.is_alive(entity) is False
            if self._is_elsewhere(entity) and not is_dead and self._appears(entity, sentence, told):
                yield Contradiction("presence", sentence.strip(), f"{name} is in {self._place_of(entity)}")
            elif self._is_with_you(entity) and not is_unsure(told):
                found = self._phrases.search("is_away", told, **self._slots(entity))
                if found is not None:
                    yield Contradiction("presence", sentence.strip(), f"{name} is where you are")
        company = [entity for entity in self._others if self._is_with_you(entity)]
        if company and self._phrases.search("alone", told) and not is_unsure(told):
            name = self._facts.after.name_of(company[0])
            yield Contradiction("presence", sentence.strip(), f"{name} is where you are")

    def _appears(self, entity: str, sentence: str, told: str) -> bool:
        """Return True if a sentence states that an entity of another place is in the scene."""
        if self._names_place(sentence, self._facts.places_of(entity)):
            return False
        is_near = (
            self._phrases.search("near", sentence) is not None
            or self._names_place(sentence, self._here)
            or any(map(self._is_with_you, self._named(sentence)))
        )
        if self._acts(entity, sentence, told, self._doing if is_near else self._speaking):
            return True
        if is_negative(told) or is_unsure(told):
            return False
        found = self._phrases.search("is_here", told, **self._slots(entity))
        return found is not None and not self._phrases.search("subordinate", told[: found.start()])

    def _check_where(self, sentence: str, clause: str) -> Iterator[Contradiction]:
        named = [place for place in self._places if self._names_place(clause, {place})]
        if not named or is_negative(clause) or is_unsure(clause):
            return
        for entity in (self._you, *self._named(clause)):
            places, slots = self._facts.places_of(entity), self._slots(entity)
            for place in named if places else ():
                where = {"place": self._places[place], **slots}
                found = self._phrases.search("is_in", clause, **where) or self._phrases.search(
                    "moves_to", clause, **where
                )
                if found is not None and place not in places and not self._is_hidden(clause[: found.start()]):
                    verb = "are" if entity == self._you else "is"
                    name = self._facts.after.name_of(entity)
                    yield Contradiction(
                        "presence", sentence.strip(), f"{name} {verb} in {self._place_of(entity)}"
                    )

    # --- possession ---

    def _check_holders(self, sentence: str, clause: str) -> Iterator[Contradiction]:
        for thing in self._things:
            if thing not in clause.lower():
                continue
            holders, current = self._facts.holders_of(thing), self._facts.after.holders.get(thing, "")
            denied = self._denied_holder(clause, thing)
            claimed = None if denied is not None else self._claimed_holder(clause, thing)
            if (claimed is not None and claimed not in holders) or (
                denied is not None and {denied} == holders
            ):
                has = "have" if current == self._you else "has"
                name = self._facts.after.name_of(current)
                yield Contradiction("possession", sentence.strip(), f"{name} {has} the {thing}")

    def _denied_holder(self, clause: str, thing: str) -> str | None:
        """Return the entity that a clause takes a thing from without a new holder."""
        if self._phrases.search("not_lost", clause):
            return None
        slots = {"thing": f"{alternatives([thing])}{_NAME_END}"}
        people = (self._you, *self._named(clause))
        lost = (
            one
            for one in people
            if self._phrases.search("no_longer_has", clause, **slots, **self._slots(one))
        )
        return next(lost, None)

    def _claimed_holder(self, clause: str, thing: str) -> str | None:
        """Return the entity that has a thing according to a clause."""
        if is_negative(clause) or is_unsure(clause) or self._phrases.search("does_not_get", clause):
            return None
        slots = {"thing": f"{alternatives([thing])}{_NAME_END}"}
        people = {one: slots | self._slots(one) for one in (self._you, *self._named(clause))}
        for way in ("is_given", "gets"):
            for entity, filled in people.items():
                if self._phrases.search(way, clause, **filled):
                    return entity
        return None
