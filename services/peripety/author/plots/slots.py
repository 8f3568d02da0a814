"""Slots of a reading: the words of the user that fill the lines of a plot."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.author.plots.noun_phrases import NounPhrase, pluralize_in
from peripety.author.plots.phrases import Slots, capitalize_sentences, fill_phrase
from peripety.author.text_analysis.languages import clean_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.author.text_analysis.reading import Deadline, Goal, Person, Phrase, Reading

_ADDRESS = {
    "us to": "all of you to",
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
_LEVEL = r"(?:very |really |quite )?(?:hard|difficult|tough|easy|normal)(?:er)?"
_REQUEST = re.compile(
    r"(?i)(?:(?:please|let me|let us|write|make me|create|give me|idk|surprise me)\b"
    r"|i want an? (?:game|story|scenario)\b"
    rf"|(?:make it|it should be) {_LEVEL}(?:,? please)?\W*$|{_LEVEL}(?: mode)?(?:,? please)?\W*$)"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_ACTOR = re.compile(
    r"(?i)(play as )?(an? [^,.;]{3,48}?) (?:(that|who) )?(must|has to|needs to|wants to|tries to)\b"
)
_ACTING = {"has to": "have to", "needs to": "need to", "wants to": "want to", "tries to": "try to"}
_THIRD_PERSON = re.compile(r"\b(?:his|her|its|their)\b(?= [a-z])")


def address_player(text: str) -> str:
    """Return an English text about its writer as one about "you", without requests for a text or a game."""

    def turn(found: re.Match[str]) -> str:
        return found[0] if _CAPITAL_WORD.fullmatch(found[0]) else _ADDRESS[found[0].casefold()]

    plain = " ".join(text.replace("\u2019", "'").split())
    kept = [one for one in _SENTENCE_END.split(plain) if one and not _REQUEST.match(one)]
    kept[:1] = [_address_actor(one) for one in kept[:1]]
    turned = capitalize_sentences(_ADDRESS_WORD.sub(turn, " ".join(kept))).replace("'", "\u2019")
    return turned if not turned or turned.endswith((".", "!", "?")) else f"{turned}."


def _address_actor(sentence: str) -> str:
    """Return a first sentence whose subject is the player, such as "A clerk has to ...", about "you"."""
    found = _ACTOR.match(sentence)
    if found is None:
        return sentence
    _, actor, link, verb = found.groups()
    told = verb if link else _ACTING.get(verb, verb)
    start = f"you are {actor[0].lower()}{actor[1:]}{f' {link}' if link else ', and you'} {told}"
    return start + _THIRD_PERSON.sub("your", sentence[found.end() :])


_LONGEST = 48
_LONGEST_TEXT = 700
_SHORTEST_TITLE = 6
_TO_CLAUSE_END = r"[^.,;:!?\n\u2014]*"
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
_PARTIES = 2
_PERSONAL = frozenset({"person", "group"})
_MONEY = "quantity"
"""Class of currencies."""
_NO_THINGS = _PERSONAL | {"time", _MONEY}
"""Classes of objects of a goal that name a person or a measure, not a thing."""
_SHORTEST_STEM = 5
_OWN = {
    "en": r"\b(?:my|our|your)\b",
    "es": r"\b(?:mis?|nuestr[oa]s?|tus?|vuestr[oa]s?)\b",
    "de": r"\b(?:mein|unser|dein|eu[e]?r)\w*",
    "zh": r"(?:\u6211|\u4f60)(?:\u4eec)?(?:\u7684)?",
}
_ONCE = {
    "en": r"\b(?:an?|one)\b",
    "es": r"\b(?:una?|un)\b",
    "de": r"\bein(?:e[nmrs]?)?\b",
    "zh": r"\u4e00[\u4e00-\u9fff]",
}
_SINGLE = {**_ONCE, "en": r"\b(?:an?|one|the)\b"}
"""Marks of one single thing; an artifact with an article is one."""
_WORDS_BETWEEN = 2
_LEFT_OPEN = {
    "es": ("o", "y", "de", "del", "a", "en", "con", "que", "por", "para", "la", "el"),
    "de": ("und", "oder", "zu", "mit"),
    "en": ("or", "and", "to", "of", "with", "the", "a"),
}
_FIRST_PERSON = {
    "es": re.compile(
        r"(?i)\b(?:soy|estoy|tengo|quiero|debo|puedo|mis?|me|nos|nuestr\w+|somos|tenemos|queremos|yo)\b"
    ),
    "de": re.compile(r"(?i)\b(?:ich|mich|mir|wir|uns|mein\w*|unser\w*)\b"),
}
_AMOUNT_TAIL = re.compile(
    r"\s+(?:in|with|for|within|before|by|at|from|con|en|mit|f\u00fcr)?\s*[^\s,]*[\d$\u20ac\u00a3].*$"
)


def collect_slots(reading: Reading, texts: Mapping[str, Any], *, quotes: bool = False) -> Slots:
    """Return the slots of a reading for the texts of a plot.

    Args:
        reading: the reading.
        texts: the texts of the plot, with the default words.
        quotes: put quotation marks around the user's words, because they are in another language.
    """
    common = texts["common"]
    language = common["language"]
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
            slots[name] = adapt(default_phrase(defaults[name]))

    def adapt(phrase: NounPhrase) -> NounPhrase:
        return replace(phrase, language=language, is_name=phrase.is_name or not common["has_articles"])

    goal = reading.goal
    for name, person in _assign_people(reading, texts, quotes=quotes):
        put(name, [person])
    is_thing = goal is not None and goal.object is not None and goal.object.sense not in _NO_THINGS
    goals = [phrase_of(goal.object, reading.language)] if is_thing and goal and goal.object else []
    places = [phrase_of(place, reading.language) for place in _list_places(reading)]
    supply = choose_supply(reading)
    if supply is not None:
        is_money = supply.sense == _MONEY and "money" in common
        put("supply", [default_phrase(common["money"]) if is_money else phrase_of(supply, reading.language)])
    else:
        put("supply", ())
    put("danger", (phrase_of(danger, reading.language) for danger in reading.dangers))
    put("object", [*places, *goals] if texts.get("object_is_place") else [*goals, *places])
    put("place", places)
    slots |= _collect_texts(reading, texts, slots, quotes=quotes)
    return slots


def choose_supply(reading: Reading) -> Phrase | None:
    """Return the supply that a story counts down; None if the text has none.

    One single thing is not used up, and the object of the goal is not spent on it.
    """
    heads = {reading.goal.object.head} if reading.goal and reading.goal.object else set()
    measured = {amount.of.head for amount in reading.amounts if amount.of is not None and amount.unit}
    for supply in reading.supplies:
        if supply.head in heads or (supply.sense == _MONEY and not reading.amounts):
            continue
        marks = _ONCE if supply.sense != "artifact" else _SINGLE
        is_single = not (supply.is_plural or supply.is_mass) and _is_marked(supply.head, reading, marks)
        if supply.head in measured or not is_single:
            return supply
    return None


def _list_places(reading: Reading) -> Iterator[Phrase]:
    """Yield the places that are neither a day nor only named with the deadline."""
    until = reading.deadline.text.casefold() if reading.deadline else ""
    for place in reading.places:
        is_day = place.is_proper and re.search(rf"\bon {re.escape(place.text)}\b", reading.text)
        if not is_day and place.head.casefold() not in until:
            yield place


def _is_marked(noun: str, reading: Reading, marks: Mapping[str, str]) -> bool:
    """Return True if one of the words before a noun in the text is a mark of its language."""
    mark = marks.get(reading.language)
    gap = "" if reading.language == "zh" else rf"\s+(?:\w+\s+){{0,{_WORDS_BETWEEN}}}"
    return mark is not None and bool(re.search(rf"{mark}{gap}{re.escape(noun)}", reading.text, re.IGNORECASE))


def _collect_texts(
    reading: Reading, texts: Mapping[str, Any], slots: Slots, *, quotes: bool
) -> dict[str, NounPhrase | str]:
    """Return the slots about the player: the role, the goal, the whole text and the time that is left."""
    common = texts["common"]
    own_goal = _goal_text(reading.goal, common, quotes=quotes)
    if _ACTOR.match(reading.text.strip()) and common["language"] == "en":
        own_goal = _THIRD_PERSON.sub("your", own_goal)
    told = " ".join(clean_text(reading.text).split())
    if len(told) > _LONGEST_TEXT or "{" in told:
        told = ""
    role = person_phrase(reading.role, common["language"]) if reading.role is not None else None
    addressed = common["own_words"].format(told) if told and quotes else _address(told, common)
    found = {
        "role": role if role and not role.is_name else None,
        "goal": own_goal or fill_phrase(str(texts["goal"]), slots) or "",
        "own_goal": own_goal,
        "told": addressed,
        "headline": "" if quotes else _find_headline(addressed),
        "time_left": _time_left(reading.deadline, common),
        "until": "" if quotes else _until(reading, common),
    }
    return {name: value for name, value in found.items() if value}


def _assign_people(
    reading: Reading, texts: Mapping[str, Any], *, quotes: bool = False
) -> Iterator[tuple[str, NounPhrase | None]]:
    """Yield a phrase for each person of the plot: whom the goal is about, then the others of the text.

    A crowd is left out; two parties are two characters. Only a person of the player is on the player's side.
    """
    common = texts["common"]
    language = reading.language
    goal = reading.goal.object if reading.goal else None
    aims = [one for one in (goal, *reading.dangers) if one and one.sense in _PERSONAL]
    aimed = next((found for one in aims if (found := _aim_phrase(one, reading))), None)
    parties = [person for person in reading.people if person.is_group and person.count == _PARTIES]
    single = [
        person
        for person in reading.people
        if not person.is_group and not (aimed and _is_same(person, aimed[1]))
    ]
    if parties and not quotes:
        orders = (order.format(parties[0].role) for order in common.get("parties", ()))
        ordered = [NounPhrase(order, language=language) for order in orders]
    else:
        ordered = []
    told = reading.goal.text.casefold() if reading.goal else ""
    for name, text in texts["people"].items():
        if text.get("from") == "goal" and aimed:
            yield name, aimed[0]
            continue
        if text.get("is_opponent"):
            rival = next(
                (person for person in reading.people if person.name and person.name.casefold() in told), None
            )
            single = [person for person in single if person is not rival]
            yield name, _group_phrase(rival, reading) if rival else None
            continue
        if ordered:
            yield name, ordered.pop(0)
            continue
        fitting = [one for one in single if not text.get("is_own") or _is_own(one, reading)]
        chosen = next((one for one in fitting if person_phrase(one, language)), None)
        single = [person for person in single if person is not chosen]
        yield name, person_phrase(chosen, language) if chosen else None


def _aim_phrase(aim: Phrase, reading: Reading) -> tuple[NounPhrase, str] | None:
    """Return the phrase of whom a goal is about, by name if the text has one, and the words of the text."""
    named = (person for person in reading.people if person.name and person.role == aim.head)
    for person in named:
        if phrase := person_phrase(person, reading.language):
            return phrase, aim.head
    found = phrase_of(aim, reading.language)
    return (found, aim.text) if found else None


def _is_same(person: Person, words: str) -> bool:
    """Return True if a person is meant by words, also in a short form of them."""
    own, other = person.role.casefold(), words.casefold()
    if not own:
        return person.name.casefold() == other
    if own == other or own == other.split()[-1]:
        return True
    stems = sorted((own[:-1], other[:-1]), key=len)
    return len(stems[0]) >= _SHORTEST_STEM and stems[1].startswith(stems[0])


def _is_own(person: Person, reading: Reading) -> bool:
    """Return True if a possessive of the player is before a person in the text."""
    return any(noun and _is_marked(noun, reading, _OWN) for noun in (person.role, person.name))


def _group_phrase(person: Person, reading: Reading) -> NounPhrase | None:
    """Return the phrase of a person or, with an article in the text, of a family or team of that name."""
    if re.search(rf"\bthe {re.escape(person.name)}\b", reading.text):
        return NounPhrase(person.name, is_plural=person.name.endswith("s"))
    return person_phrase(person, reading.language)


def phrase_of(phrase: Phrase, language: str = "en") -> NounPhrase | None:
    """Return the noun phrase of a phrase of the reading; None if it does not fit into prose."""
    text = " ".join(phrase.text.split())
    if not text or len(text) > _LONGEST or _UNFIT.search(text):
        return None
    if phrase.is_plural and not phrase.is_proper and language != "zh":
        text = pluralize_in(text, phrase.head, language if language in _OWN else "en")
    return NounPhrase(
        text,
        is_plural=phrase.is_plural,
        is_mass=phrase.is_mass,
        is_name=phrase.is_proper,
        language=language,
    )


def person_phrase(person: Person, language: str = "en") -> NounPhrase | None:
    """Return the noun phrase of a person: the name, else the role."""
    text = " ".join((person.name or person.role).split())
    if not text or len(text) > _LONGEST or _UNFIT.search(text):
        return None
    return NounPhrase(text, is_name=bool(person.name), language=language)


def default_phrase(table: Mapping[str, Any], language: str = "en") -> NounPhrase:
    """Return the phrase of default words."""
    return NounPhrase(
        table["bare"],
        is_plural=table.get("plural", False),
        is_mass=table.get("mass", False),
        is_name=table.get("name", False),
        language=language,
    )


def _quote(phrase: NounPhrase) -> NounPhrase:
    if phrase.is_name:
        return phrase
    return NounPhrase(f"\u201c{phrase.bare}\u201d", is_plural=phrase.is_plural, is_mass=True)


def _find_headline(text: str) -> str:
    """Return the first clause of a text if it can stand alone as a title; empty otherwise."""
    clause = _CLAUSE_END.split(text.strip("\u201c\u201e\u201d"), maxsplit=1)[0].strip()
    return clause if _SHORTEST_TITLE <= len(clause) <= 2 * _LONGEST else ""


def _address(text: str, common: Mapping[str, Any]) -> str:
    """Return a text of the user as one about the player; in quotation marks if its verbs cannot be turned."""
    language = common["language"]
    if language == "en":
        return address_player(text)
    if language in _FIRST_PERSON:
        if text and _FIRST_PERSON[language].search(text):
            return str(common["own_words"].format(text))
        return (
            capitalize_sentences(text)
            if not text or text.endswith((".", "!", "?"))
            else f"{capitalize_sentences(text)}."
        )
    return _address_words(text, common)


def _address_words(text: str, common: Mapping[str, Any]) -> str:
    """Return a text with the words about the writer replaced by those about the player."""
    edge = r"\b" if common["has_articles"] else ""
    for own, addressed in common["address"].items():
        text = re.sub(rf"{edge}{own}{edge}", addressed, text)
    return text


def _goal_text(goal: Goal | None, common: Mapping[str, Any], *, quotes: bool) -> str:
    """Return the goal as an infinitive, addressed to the player; empty if no goal fits."""
    if goal is None or not goal.text or len(goal.text) > 2 * _LONGEST:
        return ""
    text = " ".join(goal.text.split()).rstrip(".!?")
    if quotes:
        return f"\u201c{text}\u201d"
    language = common["language"]
    text = _AMOUNT_TAIL.sub("", text)
    while text.rpartition(" ")[2] in _LEFT_OPEN.get(language, ()):
        text = text.rpartition(" ")[0]
    if _UNFIT.search(text) or (common["has_articles"] and language != "de" and " " not in text):
        # A bare verb is too short for a goal.
        return ""
    turned = address_player(text) if language == "en" else _address_words(text, common)
    turned = turned.removesuffix(".")
    return turned[:1].lower() + turned[1:]


def _time_left(deadline: Deadline | None, common: Mapping[str, Any]) -> NounPhrase | None:
    if deadline is None or deadline.amount <= 0 or deadline.amount != int(deadline.amount):
        return None
    if common["language"] != "en":
        return None
    amount = int(deadline.amount)
    number = _NUMBERS[amount] if amount < len(_NUMBERS) else str(amount)
    unit = deadline.unit if amount == 1 else f"{deadline.unit}s"
    return NounPhrase(f"{number} {unit}", is_plural=amount != 1, is_name=True)


def _until(reading: Reading, common: Mapping[str, Any]) -> str:
    """Return the words about the event that ends the time; empty for a length of time or other words."""
    if reading.deadline is None or reading.deadline.amount or "until" not in common:
        return ""
    language, text = common["language"], reading.deadline.text
    if language == "en":
        found = re.search(rf"{re.escape(text)}{_TO_CLAUSE_END}", reading.text)
        text = found[0] if found else text
        text = address_player(text)
        text = text[:1].lower() + text[1:].removesuffix(".")
    is_own = language in _FIRST_PERSON and _FIRST_PERSON[language].search(text)
    is_fit = (
        re.fullmatch(common["until"]["words"], text) and len(text) <= _LONGEST and not _UNFIT.search(text)
    )
    return text if is_fit and not is_own else ""
