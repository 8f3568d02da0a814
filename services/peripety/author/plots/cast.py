"""Cast of a plot: the persons of a text on the side where the text puts them, and members of its groups."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.author.plots.noun_phrases import NounPhrase, build_phrase, person_phrase, pluralize_in
from peripety.author.plots.phrases import fill_phrase
from peripety.author.text_analysis.sides import AGAINST
from peripety.author.text_analysis.words import find_classes, load_grammars

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.author.text_analysis.phrases import Person, Phrase
    from peripety.author.text_analysis.reading import Reading

PERSONAL = frozenset({"person", "group"})
"""Classes of persons and groups."""

_HOUSES = frozenset({"artifact", "object", "location"})
"""Classes of nouns that may stand for the persons in charge of them."""

_RIVAL = "rival"
"""The part of a person who contradicts the player."""
_PARTIES = 2
_SHORTEST_STEM = 5
_OWN = {
    "en": r"\b(?:my|our|your)\b",
    "es": r"\b(?:mis?|nuestr[oa]s?|tus?|vuestr[oa]s?)\b",
    "de": r"\b(?:mein|unser|dein|eu[e]?r)\w*",
    "zh": r"(?:\u6211|\u4f60)(?:\u4eec)?(?:\u7684)?",
}
_HAD = {
    "en": r"\b(?:with|have|has) (?:an?|one|only)\b",
    "es": r"\b(?:con|tengo|tienes|tiene) una?\b",
    "de": r"\b(?:mit eine[mr]|habe? eine?n?|hast eine?n?)\b",
    "zh": r"(?:\u5e26\u7740|\u6709)\u4e00",
}
"""Words before a person whom the player has."""
_SIDING = {
    "en": r"\b(?:on (?:my|our|your) side|with (?:me|us|you)|helps? (?:me|us|you)|stands? by (?:me|us|you))\b",
    "es": r"\b(?:(?:me|nos|te) ayudan?|conmigo|contigo|de (?:mi|tu|nuestro) lado)\b",
    "de": r"\b(?:(?:hilft|helfen) (?:mir|uns|dir)|auf (?:meiner|unserer|deiner) Seite)\b",
}
"""Words after a person who is on the side of the player."""
_MANY = {
    "en": re.compile(r"(?i)\b(?:we|our)\b"),
    "es": re.compile(r"(?i)\bnuestr[oa]s?\b|\b(?:somos|tenemos|debemos|queremos)\b"),
    "de": re.compile(r"(?i)\b(?:wir|unser\w*)\b"),
    "zh": re.compile("[\u6211\u54b1\u4f60]\u4eec"),
}
"""Words of a player who is several persons."""
_WORDS_BETWEEN = 2


def assign_people(
    reading: Reading, texts: Mapping[str, Any], *, quotes: bool = False
) -> Iterator[tuple[str, NounPhrase | None]]:
    """Yield a phrase for each person of a plot; None without a fitting person.

    Whom the goal is about comes first, then two parties, then single persons of the text, then members of a
    group. A person who is against the player has only a part that opposes; one who is absent, or in no state
    to help, has none. On the player's own side are persons of the player and members of groups.

    Args:
        reading: the reading.
        texts: the texts of the plot.
        quotes: the words of the user are in another language, so no phrase is made of them.
    """
    yield from _Casting(reading, texts, quotes=quotes).assign()


class _Casting:
    """State of one casting: the persons and groups that have no part yet."""

    def __init__(self, reading: Reading, texts: Mapping[str, Any], *, quotes: bool) -> None:
        self._reading, self._texts = reading, texts
        stopped = reading.goal.stopped if reading.goal else None
        goal = stopped or (reading.goal.object if reading.goal else None)
        # A pronoun means a thing. Only an organisation with its name can be won over.
        is_named = goal is not None and reading.goal is not None and goal.head in reading.goal.text
        is_asked = is_named and any(part.get("is_anyone") for part in texts["people"].values())
        aims = [
            one
            for one in (goal, *reading.dangers)
            # The object of winning over or beating is a person, whatever the first sense of the noun.
            if one
            and (
                one.sense in PERSONAL
                or one is stopped
                or (one is goal and ((is_asked and one.sense in _HOUSES) or self._is_beaten()))
            )
        ]
        self._quotes = quotes
        self._aimed = next((found for one in aims if (found := self._find_aim(one))), None)
        self._told = reading.goal.text.casefold() if reading.goal else ""
        has_target = any(part.get("from") == "goal" for part in texts["people"].values())
        # A goal that only follows from who comes, or who is against the player, gives them no other part.
        implied = reading.goal is not None and reading.goal.is_implied and not texts.get("is_about_all")
        is_judged = bool(texts.get("judged")) or implied
        free = [
            person
            for person in reading.people
            if not (self._is_aimed(person) and (has_target or not person.is_group))
            and not (is_judged and self._is_judged(person))
        ]
        self._opposed = [one for one in free if one.side == AGAINST and not one.is_group]
        self._opponents = [one for one in free if one.side == AGAINST and one.is_group]
        self._single = [one for one in free if not one.side and not one.is_group]
        groups = [] if quotes else [one for one in free if one.is_group and not one.side]
        is_suspect = bool(texts["people"].get(_RIVAL, {}).get("opposes"))
        if not is_suspect:
            groups = [one for one in groups if not _is_tended(one, reading)]
        if texts.get("groups_suffer"):
            groups = [one for one in groups if is_own(one, reading)]
        self._parties = [*self._members([one for one in groups if one.count == _PARTIES][:1])]
        role = reading.role
        if not quotes and role is not None and (role.is_group or is_body(role, reading.language)):
            groups.append(role)
        self._rest = [*self._members([one for one in groups if one.count != _PARTIES])]
        # A person who contradicts the player in the text does so in the plot.
        self._dissenter = (
            next((one for one in self._single if one.doubts), None)
            if _RIVAL in texts["people"] and not is_suspect
            else None
        )

    def assign(self) -> Iterator[tuple[str, NounPhrase | None]]:
        """Yield the phrase of each part."""
        for name, part in self._texts["people"].items():
            if part.get("from") == "goal" and self._aimed:
                yield name, self._aimed[0]
            elif part.get("from") == "goal":
                yield name, self._find_rival(part)
            else:
                yield name, self._find_person(part, is_rival=name == _RIVAL)

    def _is_beaten(self) -> bool:
        """Return True if the object of the goal is an opponent, which may be a thing: "beat the machine"."""
        grammar, goal = load_grammars().get(self._reading.language), self._reading.goal
        has_opponent = any(part.get("is_opponent") for part in self._texts["people"].values())
        is_beating = (
            grammar is not None and goal is not None and goal.verb in grammar.words("goals", "beating")
        )
        return has_opponent and is_beating

    def _find_rival(self, part: Mapping[str, Any]) -> NounPhrase | None:
        """Return whom the goal names, or another person who is against the player."""
        named = (
            one for one in [*self._opposed, *self._single] if one.name and one.name.casefold() in self._told
        )
        rival = next(named, next(iter(self._opposed), None))
        if rival is None and part.get("is_anyone"):
            rival = next(iter(self._single), None)
        if rival is None and part.get("is_opponent"):
            rival = next((one for one in self._single if self._is_in_the_way(one)), None)
        self._single = [one for one in self._single if one is not rival]
        self._opposed = [one for one in self._opposed if one is not rival]
        if rival is None:
            return group_phrase(self._opponents[0], self._reading.language) if self._opponents else None
        return _group_phrase(rival, self._reading) if rival.name else self._person_phrase(rival)

    def _is_in_the_way(self, person: Person) -> bool:
        """Return True for a named person after a "but" of the text, who is not the player's."""
        is_after = re.search(rf"\bbut\b[^.;:!?]*\b{re.escape(person.name)}\b", self._reading.text)
        return bool(person.name and is_after) and not is_own(person, self._reading)

    def _find_person(self, part: Mapping[str, Any], *, is_rival: bool) -> NounPhrase | None:
        if self._parties:
            return self._parties.pop(0)
        rows = [self._opposed] if part.get("opposes") else []
        if is_rival and self._dissenter in self._single:
            rows.append([one for one in self._single if one is self._dissenter])
        for row in (*rows, self._single):
            for person in row:
                if person is self._dissenter and not is_rival:
                    continue
                phrase = self._person_phrase(person)
                is_fit = (
                    row is self._opposed
                    or not part.get("is_own")
                    or person.doubts
                    or is_own(person, self._reading)
                    or _is_siding(person, self._reading)
                )
                if phrase is not None and is_fit:
                    row.remove(person)
                    self._single = [one for one in self._single if one is not person]
                    return phrase
        return self._rest.pop(0) if self._rest else None

    def _find_aim(self, aim: Phrase) -> tuple[NounPhrase, str] | None:
        """Return the phrase of whom a goal is about, by name if there is one, and the words of the text."""
        for person in self._reading.people:
            if person.role == aim.head and not person.is_group and (phrase := self._person_phrase(person)):
                return phrase, aim.head
        found = build_phrase(aim, self._reading.language)
        return (found, aim.text) if found else None

    def _person_phrase(self, person: Person) -> NounPhrase | None:
        """Return the phrase of a person; without a name, "your" before a person of the player."""
        if self._quotes:
            return person_phrase(person, self._reading.language)
        return own_phrase(person, self._reading, self._texts["common"])

    def _is_aimed(self, person: Person) -> bool:
        return self._aimed is not None and is_same(person, self._aimed[1])

    def _is_judged(self, person: Person) -> bool:
        """Return True if a decision is about a person."""
        return any(word and word.casefold() in self._told for word in (person.name, person.role))

    def _members(self, groups: Sequence[Person]) -> Iterator[NounPhrase]:
        """Yield members of the first group that has a phrase."""
        tables, language = self._texts["common"]["members"], self._reading.language
        for group in groups:
            whole = group_phrase(group, language)
            one = person_phrase(group, language)
            if whole is None or one is None:
                continue
            kind = "two" if group.count == _PARTIES else "of" if is_body(group, language) else "one"
            for line in tables[kind]:
                bare = fill_phrase(line, {"group": whole, "one": one})
                if bare:
                    yield NounPhrase(bare, is_name=one.is_name, language=language)
            return


def is_few(reading: Reading) -> bool:
    """Return True if the text names no group on the side of the player, and no player who is one."""
    groups = [one for one in reading.people if one.is_group and one.side != AGAINST]
    many = _MANY.get(reading.language)
    is_group = reading.role is not None and reading.role.is_group
    return not groups and not is_group and not (many and many.search(reading.text))


def _is_tended(person: Person, reading: Reading) -> bool:
    """Return True for persons who are cared for, and do no work."""
    return person.role.split(" ")[-1] in load_grammars()[reading.language].words("sides", "tended")


def own_phrase(person: Person, reading: Reading, common: Mapping[str, Any]) -> NounPhrase | None:
    """Return the phrase of a person or of a whole group; with "your" for those of the player without a name.

    Args:
        person: the person or group.
        reading: the reading.
        common: the texts that all plots of the language share.
    """
    build = group_phrase if person.is_group else person_phrase
    phrase = build(person, reading.language)
    line = common["members"].get("own")
    if phrase is None or person.name or not line or not is_own(person, reading):
        return phrase
    return replace(phrase, bare=fill_phrase(line, {"one": phrase}) or phrase.bare, is_name=True)


def _is_siding(person: Person, reading: Reading) -> bool:
    """Return True if a person is on the side of the player by the words after it."""
    siding, noun = _SIDING.get(reading.language), (person.name or person.role).split(" ")[-1]
    return siding is not None and bool(re.search(rf"\b{re.escape(noun)}\b[^.;!?]*{siding}", reading.text))


def is_same(person: Person, words: str) -> bool:
    """Return True if a person is meant by words, also in a short form of them."""
    own, other = person.role.casefold(), words.casefold()
    if not own:
        return person.name.casefold() == other
    if own == other or own == other.split()[-1]:
        return True
    stems = sorted((own[:-1], other[:-1]), key=len)
    return len(stems[0]) >= _SHORTEST_STEM and stems[1].startswith(stems[0])


def is_own(person: Person, reading: Reading) -> bool:
    """Return True if a possessive of the player is before a person in the text."""
    nouns = [noun for noun in (person.role, person.name) if noun]
    told = reading.goal.text.casefold() if reading.goal else ""
    marks = (_OWN,) if person.side == AGAINST else (_OWN, _HAD)
    return any(
        f"your {noun.casefold()}" in told or any(is_marked(noun, reading, mark) for mark in marks)
        for noun in nouns
    )


def is_marked(noun: str, reading: Reading, marks: Mapping[str, str]) -> bool:
    """Return True if one of the words before a noun in the text is a mark of its language."""
    mark = marks.get(reading.language)
    gap = "" if reading.language == "zh" else rf"\s+(?:\w+\s+){{0,{_WORDS_BETWEEN}}}"
    return mark is not None and bool(re.search(rf"{mark}{gap}{re.escape(noun)}", reading.text, re.IGNORECASE))


def is_body(person: Person, language: str) -> bool:
    """Return True if a role is the noun of a whole body of persons, such as "team"."""
    words = person.role.split(" of ")[0].split()
    # A verb may be spelt like a body.
    nouns = [one for one in find_classes(words[-1], language) if one.startswith("noun.")] if words else []
    return nouns[0].startswith("noun.group") if nouns else person.is_group and person.count == 1


def group_phrase(group: Person, language: str) -> NounPhrase | None:
    """Return the phrase of all members of a group, or of its name."""
    phrase = person_phrase(group, language)
    if phrase is None or phrase.is_name or language == "zh":
        return phrase
    if not group.is_plural and is_body(group, language):
        return replace(phrase, bare=phrase.bare.split(" of ")[0])
    return NounPhrase(pluralize_in(phrase.bare, group.role, language), is_plural=True, language=language)


def _group_phrase(person: Person, reading: Reading) -> NounPhrase | None:
    """Return the phrase of a person or, with an article in the text, of a family or team of that name."""
    if person.name and re.search(rf"\bthe {re.escape(person.name)}\b", reading.text):
        return NounPhrase(person.name, is_plural=person.name.endswith("s"))
    return person_phrase(person, reading.language)
