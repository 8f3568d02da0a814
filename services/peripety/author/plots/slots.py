"""Slots: the words of the user that fill the lines of a plot, or abstract words where the text has none."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.author.plots.phrases import NounPhrase, address_player, pluralize
from peripety.author.text_analysis.languages import clean_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.author.plots.phrases import Slots
    from peripety.author.text_analysis.reading import Deadline, Goal, Person, Phrase, Reading


_LONGEST = 48
_LONGEST_TEXT = 700
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
    is_thing = goal is not None and goal.object is not None and goal.object.sense not in _PERSONAL
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
    found = {
        "role": role if role and not role.is_name else None,
        "goal": own_goal or str(texts["goal"]),
        "own_goal": own_goal,
        "told": f"\u201c{told}\u201d" if told and quotes else _address(told, common),
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


def _address(text: str, common: Mapping[str, Any]) -> str:
    """Return a text of the user as one about the player."""
    if common["has_articles"]:
        return address_player(text)
    for own, addressed in common["address"].items():
        text = text.replace(own, addressed)
    return text


def _goal_text(goal: Goal | None, common: Mapping[str, Any], *, quotes: bool) -> str:
    """Return the goal as an infinitive, addressed to the player; empty if there is none that fits."""
    if goal is None or not goal.text or len(goal.text) > 2 * _LONGEST or _UNFIT.search(goal.text):
        return ""
    text = " ".join(goal.text.split()).rstrip(".!?")
    if quotes:
        return f"\u201c{text}\u201d"
    turned = _address(text, common).removesuffix(".")
    return turned[:1].lower() + turned[1:]


def _time_left(deadline: Deadline | None) -> NounPhrase | None:
    if deadline is None or deadline.amount <= 0 or deadline.amount != int(deadline.amount):
        return None
    amount = int(deadline.amount)
    number = _NUMBERS[amount] if amount < len(_NUMBERS) else str(amount)
    unit = deadline.unit if amount == 1 else f"{deadline.unit}s"
    return NounPhrase(f"{number} {unit}", is_plural=amount != 1, is_name=True)
