"""Phrases: the user's words, or abstract ones, with correct grammar in the lines of a plot.

A line contains slots. `{supply}` is the definite form ("the alpha", or a name), `{supply.bare}` the words
alone, `{supply.a}` the indefinite form, `{supply's}` the owner, and `{supply:runs/run}` chooses by number.
A line with a slot that has no words is left out by `fill_line`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.author.text_analysis.languages import clean_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.author.text_analysis.reading import Deadline, Goal, Person, Phrase, Reading

_SLOT = re.compile(r"\{(\w+)(?:\.(\w+)|(\u2019s|'s)|:([^/{}]*)/([^{}]*))?\}")
_SENTENCE = re.compile(r"((?:^|[.!?\u2026]\s+)\u201c?)(\w)")
_VOWEL = re.compile(r"(?i)[aeio]|u(?!ni|s[aeiu]|ti)|h(?=our|onest|eir)")
_IRREGULAR = {
    "man": "men",
    "woman": "women",
    "child": "children",
    "person": "people",
    "foot": "feet",
    "tooth": "teeth",
    "mouse": "mice",
    "goose": "geese",
    "ox": "oxen",
    "life": "lives",
    "wife": "wives",
    "knife": "knives",
    "leaf": "leaves",
    "loaf": "loaves",
    "half": "halves",
    "shelf": "shelves",
    "thief": "thieves",
    "wolf": "wolves",
    "calf": "calves",
    "hoof": "hooves",
    "crisis": "crises",
    "sheep": "sheep",
    "fish": "fish",
    "deer": "deer",
    "series": "series",
    "hero": "heroes",
    "potato": "potatoes",
    "tomato": "tomatoes",
    "echo": "echoes",
}
_PLURALS = frozenset(_IRREGULAR.values()) | {"police", "cattle", "people"}
_SINGULAR_ENDINGS = ("ss", "us", "is", "news", "ics")


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """Noun phrase in the forms that lines use.

    Attributes:
        bare: its words without an article, in its number.
        is_plural: True if verbs with it are in the plural.
        is_mass: True if it has no indefinite article.
        is_name: True if it has no article at all.
    """

    bare: str
    is_plural: bool = False
    is_mass: bool = False
    is_name: bool = False

    @property
    def definite(self) -> str:
        """The phrase with the definite article."""
        return self.bare if self.is_name else f"the {self.bare}"

    @property
    def indefinite(self) -> str:
        """The phrase with the indefinite article, where it can have one."""
        if self.is_name or self.is_plural or self.is_mass:
            return self.bare
        return f"{'an' if _VOWEL.match(self.bare) else 'a'} {self.bare}"

    @property
    def owner(self) -> str:
        """The definite phrase as an owner."""
        ends = self.definite.endswith("s")
        return f"{self.definite}\u2019" if ends and self.is_plural else f"{self.definite}\u2019s"


def pluralize(word: str) -> str:
    """Return the plural of an English noun."""
    lowered = word.casefold()
    if lowered in _IRREGULAR:
        return word[:1] + _IRREGULAR[lowered][1:]
    if re.search(r"[^aeiou]y$", lowered):
        return f"{word[:-1]}ies"
    return f"{word}es" if re.search(r"(s|x|z|ch|sh)$", lowered) else f"{word}s"


def is_plural_noun(word: str) -> bool:
    """Return True if an English noun looks like a plural."""
    lowered = word.casefold()
    return lowered in _PLURALS or (lowered.endswith("s") and not lowered.endswith(_SINGULAR_ENDINGS))


def parse_definite(text: str) -> NounPhrase:
    """Return the phrase of a definite form, as a filled line contains it."""
    words = text.split()
    is_name = words[:1] not in (["the"], ["The"])
    bare = text if is_name else " ".join(words[1:])
    # The head is before a preposition: "sacks of grain".
    head = re.split(r" (?:of|for|in|on|at|with|from|to|that|who) ", bare)[0].split()[-1:]
    return NounPhrase(bare, is_plural=not is_name and is_plural_noun("".join(head)), is_name=is_name)


def join_list(items: Iterable[str], common: Mapping[str, Any]) -> str:
    """Join words as a list of the language.

    Args:
        items: the words.
        common: the texts that all plots of the language share.
    """
    *first, last = [*items] or [""]
    return f"{common['comma'].join(first)}{common['and']}{last}" if first else last


_ADDRESS = {
    "i'm": "you are",
    "i am": "you are",
    "i was": "you were",
    "i've": "you have",
    "i'd": "you would",
    "i'll": "you will",
    "am i": "are you",
    "i": "you",
    "we're": "you are",
    "we've": "you have",
    "we'd": "you would",
    "we'll": "you will",
    "we": "you",
    "me": "you",
    "us": "you",
    "my": "your",
    "our": "your",
    "mine": "yours",
    "ours": "yours",
    "myself": "yourself",
    "ourselves": "yourselves",
}
_ADDRESS_WORD = re.compile(rf"\b({'|'.join(sorted(_ADDRESS, key=len, reverse=True))})\b", re.IGNORECASE)
_CAPITAL_WORD = re.compile(r"\b(?:US|I{2,}|IV)\b")
_REQUEST = re.compile(
    r"(?i)(?:please|let me|let us|write|make me|create|give me|i want an? (?:game|story|scenario))\b"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def address_player(text: str) -> str:
    """Return an English text about its writer as one about "you", without requests for a text or a game."""

    def turn(found: re.Match[str]) -> str:
        return found[0] if _CAPITAL_WORD.fullmatch(found[0]) else _ADDRESS[found[0].casefold()]

    plain = " ".join(text.replace("\u2019", "'").split())
    kept = [one for one in _SENTENCE_END.split(plain) if one and not _REQUEST.match(one)]
    turned = capitalize_sentences(_ADDRESS_WORD.sub(turn, " ".join(kept))).replace("'", "\u2019")
    return turned if not turned or turned.endswith((".", "!", "?")) else f"{turned}."


Slots: TypeAlias = "Mapping[str, NounPhrase | str]"
"""The words of the user by slot: noun phrases and plain texts."""


def fill_line(line: str, slots: Slots) -> str | None:
    """Return a line as sentences, with its slots filled and capitals; None if a slot has no words.

    Args:
        line: the line.
        slots: phrases and plain texts by slot.
    """
    text = fill_phrase(line, slots)
    return text and capitalize_sentences(text)


def fill_phrase(line: str, slots: Slots) -> str | None:
    """Return a part of a sentence with its slots filled; None if a slot has no words.

    Args:
        line: the line.
        slots: phrases and plain texts by slot.
    """
    is_complete = True

    def fill(found: re.Match[str]) -> str:
        nonlocal is_complete
        name, form, owner, one, many = found.groups()
        value = slots.get(name)
        if not value:
            is_complete = False
            return ""
        if isinstance(value, str):
            return value
        if one is not None:
            return many if value.is_plural else one
        if owner:
            return value.owner
        forms = {None: value.definite, "bare": value.bare, "a": value.indefinite}
        return forms[form]

    text = _SLOT.sub(fill, line)
    return text if is_complete else None


def capitalize_sentences(text: str) -> str:
    """Return a text with a capital at the start of each sentence."""
    return _SENTENCE.sub(lambda found: found[1] + found[2].upper(), text)


def longest_literal(line: str) -> str:
    """Return the longest part of a line between its slots."""
    return max(_SLOT.sub("\n", line).split("\n"), key=len)


def compile_line(line: str) -> re.Pattern[str]:
    """Return a pattern that reads the definite forms of slots back from a filled line."""
    parts, last, seen = [], 0, set()
    for found in _SLOT.finditer(line):
        parts.append(re.escape(line[last : found.start()]))
        name, form, owner, one, many = found.groups()
        if one is not None:
            parts.append(f"(?:{re.escape(one)}|{re.escape(many)})")
        elif owner or form or name in seen:
            parts.append(".+?")
        else:
            seen.add(name)
            parts.append(f"(?P<{name}>.+?)")
        last = found.end()
    return re.compile(f"{''.join(parts)}{re.escape(line[last:])}$", re.IGNORECASE)


# --- the words of the user ---

_LONGEST = 48
_LONGEST_TEXT = 700
_SHORTEST_TITLE = 6
_CLAUSE_END = re.compile(r"[.,;:!?\u2014\u3002\uff0c\uff1b\uff01\uff1f](?!\d)")
_NUMBERS = (
    *(
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
    ),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_UNFIT = re.compile(r"[\d{}\[\]()<>\\/|_:;\"]")
_PARTIES = ("first", "second")
_PERSONAL = frozenset({"person", "group"})
_NO_THINGS = _PERSONAL | {"time", "quantity"}
"""Classes of objects of a goal that name a person or a measure, not a thing."""


def collect_slots(reading: Reading, texts: Mapping[str, Any], *, quotes: bool = False) -> Slots:
    """Return the slots of a reading for the texts of a plot.

    Args:
        reading: the reading.
        texts: the texts of the plot, with the default words.
        quotes: put quotation marks around the user's words, because they are in another language.
    """
    common = texts["common"]
    defaults = {**common["defaults"], **texts.get("defaults", {})}
    taken: set[str] = set()
    slots: dict[str, NounPhrase | str] = {}

    def put(name: str, phrases: Iterable[NounPhrase | None]) -> None:
        for phrase in phrases:
            if phrase is not None and phrase.bare.casefold() not in taken:
                taken.add(phrase.bare.casefold())
                slots[name] = adapt(_quote(phrase) if quotes else phrase)
                return
        if name in defaults:
            slots[name] = adapt(_default_phrase(defaults[name]))

    def adapt(phrase: NounPhrase) -> NounPhrase:
        return phrase if common["has_articles"] else replace(phrase, is_name=True)

    goal = reading.goal
    for name, person in _assign_people(reading, texts):
        put(name, [person])
    is_thing = goal is not None and goal.object is not None and goal.object.sense not in _NO_THINGS
    goals = [phrase_of(goal.object)] if is_thing and goal and goal.object else []
    places = [*map(phrase_of, reading.places)]
    put("supply", map(phrase_of, reading.supplies))
    put("danger", map(phrase_of, reading.dangers))
    put("object", [*places, *goals] if texts.get("object_is_place") else [*goals, *places])
    put("place", places)
    slots |= _collect_texts(reading, texts, quotes=quotes)
    return slots


def _collect_texts(
    reading: Reading, texts: Mapping[str, Any], *, quotes: bool
) -> dict[str, NounPhrase | str]:
    """Return the slots about the player: the role, the goal, the whole text and the time that is left."""
    common = texts["common"]
    own_goal = _goal_text(reading.goal, common, quotes=quotes)
    told = " ".join(clean_text(reading.text).split())
    if len(told) > _LONGEST_TEXT or "{" in told:
        told = ""
    role = person_phrase(reading.role) if reading.role is not None else None
    addressed = f"\u201c{told}\u201d" if told and quotes else _address(told, common)
    found = {
        "role": role if role and not role.is_name else None,
        "goal": own_goal or str(texts["goal"]),
        "own_goal": own_goal,
        "told": addressed,
        "headline": "" if quotes else _find_headline(addressed),
        "time_left": _time_left(reading.deadline),
    }
    return {name: value for name, value in found.items() if value}


def _assign_people(reading: Reading, texts: Mapping[str, Any]) -> Iterator[tuple[str, NounPhrase | None]]:
    """Yield a phrase for each person of the plot: whom the goal is about, then the others of the text.

    A crowd is left out; two parties are two characters.
    """
    parties = [person for person in reading.people if person.is_group and person.count == len(_PARTIES)]
    single = [person for person in reading.people if not person.is_group]
    people = [phrase for person in single if (phrase := person_phrase(person))]
    if parties:
        people[:0] = [NounPhrase(f"{order} {parties[0].role}") for order in _PARTIES]
    goal = reading.goal.object if reading.goal else None
    aims = [phrase_of(one) for one in (goal, *reading.dangers) if one and one.sense in _PERSONAL]
    aimed = next((phrase for phrase in aims if phrase), None)
    for name, text in texts["people"].items():
        if text.get("from") == "goal" and aimed:
            people = [person for person in people if person.bare.casefold() != aimed.bare.casefold()]
            yield name, aimed
        elif text.get("is_opponent"):
            yield name, None
        else:
            yield name, people.pop(0) if people else None


def phrase_of(phrase: Phrase) -> NounPhrase | None:
    """Return the noun phrase of a phrase of the reading; None if it does not fit into prose."""
    text = " ".join(phrase.text.split())
    if not text or len(text) > _LONGEST or _UNFIT.search(text):
        return None
    if phrase.is_plural and not phrase.is_proper:
        *before, head = text.split()
        is_head_last = phrase.head.casefold() in {head.casefold(), text.casefold()}
        text = " ".join([*before, pluralize(head)]) if is_head_last else text
    return NounPhrase(text, is_plural=phrase.is_plural, is_mass=phrase.is_mass, is_name=phrase.is_proper)


def person_phrase(person: Person) -> NounPhrase | None:
    """Return the noun phrase of a person: the name, else the role."""
    text = " ".join((person.name or person.role).split())
    if not text or len(text) > _LONGEST or _UNFIT.search(text):
        return None
    return NounPhrase(text, is_name=bool(person.name))


def _default_phrase(table: Mapping[str, Any]) -> NounPhrase:
    return NounPhrase(
        table["bare"],
        is_plural=table.get("plural", False),
        is_mass=table.get("mass", False),
        is_name=table.get("name", False),
    )


def _quote(phrase: NounPhrase) -> NounPhrase:
    if phrase.is_name:
        return phrase
    return NounPhrase(f"\u201c{phrase.bare}\u201d", is_plural=phrase.is_plural, is_mass=True)


def _find_headline(text: str) -> str:
    """Return the first clause of a text if it can stand alone as a title; empty otherwise."""
    clause = _CLAUSE_END.split(text, maxsplit=1)[0].strip()
    return clause if _SHORTEST_TITLE <= len(clause) <= 2 * _LONGEST else ""


def _address(text: str, common: Mapping[str, Any]) -> str:
    """Return a text of the user as one about the player."""
    if common["has_articles"]:
        return address_player(text)
    for own, addressed in common["address"].items():
        text = text.replace(own, addressed)
    return text


def _goal_text(goal: Goal | None, common: Mapping[str, Any], *, quotes: bool) -> str:
    """Return the goal as an infinitive, addressed to the player; empty if no goal fits."""
    if goal is None or not goal.text or len(goal.text) > 2 * _LONGEST or _UNFIT.search(goal.text):
        return ""
    text = " ".join(goal.text.split()).rstrip(".!?")
    if quotes:
        return f"\u201c{text}\u201d"
    if common["has_articles"] and " " not in text:
        # A bare verb is too short for a goal.
        return ""
    turned = _address(text, common).removesuffix(".")
    return turned[:1].lower() + turned[1:]


def _time_left(deadline: Deadline | None) -> NounPhrase | None:
    if deadline is None or deadline.amount <= 0 or deadline.amount != int(deadline.amount):
        return None
    amount = int(deadline.amount)
    number = _NUMBERS[amount] if amount < len(_NUMBERS) else str(amount)
    unit = deadline.unit if amount == 1 else f"{deadline.unit}s"
    return NounPhrase(f"{number} {unit}", is_plural=amount != 1, is_name=True)
