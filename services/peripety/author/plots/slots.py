"""Slots of a reading: the words of the user that fill the lines of a plot."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.author.plots.addressing import (
    FIRST_PERSON,
    address_player,
    address_text,
    is_of_third_person,
    replace_words,
    turn_third_person,
)
from peripety.author.plots.cast import PERSONAL, assign_people, is_few, is_marked, own_phrase
from peripety.author.plots.elements import list_elements
from peripety.author.plots.noun_phrases import (
    LONGEST_PHRASE,
    UNFIT,
    NounPhrase,
    build_phrase,
    default_phrase,
    person_phrase,
)
from peripety.author.plots.particulars import fill_sides, find_situation, list_wishes
from peripety.author.plots.phrases import Slots, fill_phrase
from peripety.author.text_analysis.clauses import add_ing
from peripety.author.text_analysis.languages import clean_text
from peripety.author.text_analysis.sides import AGAINST
from peripety.author.text_analysis.tagging import tag_words
from peripety.author.text_analysis.words import load_grammars

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.author.text_analysis.reading import Deadline, Goal, Phrase, Reading

_RELATIVE = re.compile(
    r" (?:that|which) (?:the|my|our|his|her|their|an?|they|he|she|we|i|has|have|is|are|was)\b"
)
_PLAYER = {
    "en": re.compile(
        r"(?:^|[.;,:] )(?:You are ((?:an?|the|your) .+?)(?=,| who | that | and |[.;])|As (an? .+?),? you\b)"
    ),
    "es": re.compile(r"(?i)\b(?:soy|eres) (.+?)(?=,| y | que | pero |[.;]|$)()"),
    "de": re.compile(r"(?i)\b(?:ich bin|bin ich|du bist|bist du) (.+?)(?=,| und | aber |[.;]|$)()"),
    "zh": re.compile("[\u6211\u4f60]\u662f(.+?)(?=[\uff0c\u3002\uff1b]|$)()"),
}
"""Sentences about who the player is, with the words after the verb."""
_OWN_OBJECT = re.compile(
    r"^(\w+(?: \w+)?) you\b(?: all| both)?"
    r"(?=$| (?:alive|safe|together|home|out|through|to|across|over|off|away|back|going|fed|warm))"
)
_POINTING = re.compile(r"(?:stop|prevent|block|avert|avoid) (?:it|this|that|them|him|her)")
"""Goals that only point at what is to be prevented."""
_LONGEST_TEXT = 700
_SHORTEST_TITLE = 6
_BARE_GOAL = 2
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
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_HUNDRED, _THOUSAND = 100, 1000
_SMALL_NUMBER = re.compile(r"(?<![\w$\u20ac\u00a3.,:-])\d{1,4}(?![\w.,:%-]*\d)(?![\w%])")
_MONEY = "quantity"
"""Class of currencies."""
_CONSUMED = frozenset({"food", "substance"})
"""Classes of what is used up, also where the text gives no amount of it."""
_NO_SUPPLIES = frozenset({"animal", *PERSONAL})
"""Classes of what is alive: it is not spent."""
_TRACES = frozenset({"artifact", "communication", "possession", "substance", "food", "animal", "plant"})
"""Classes of things that a question may be about."""
_THINGS = frozenset({"artifact", "group", "location"})
_ZH_LENGTH = re.compile(
    "[\u4e00\u4e8c\u4e24\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341\u534a]+"
    "(?:\u4e2a?(?:\u5929|\u591c|\u5468|\u6708|\u5e74|\u5c0f\u65f6|\u661f\u671f)).*$"
)
"""A length of time at the end of a Chinese goal."""
_LONGEST_WISH = 24
_LONGEST_ACT = 40
"""The most characters of the words of a goal in the name of an action."""
_NEAR = 3
"""The number of words between a thing and a word that describes it."""
_NO_THINGS = PERSONAL | {"time", _MONEY}
"""Classes of objects of a goal that name a person or a measure, not a thing."""
_ONCE = {
    "en": r"\b(?:an?|one)\b",
    "es": r"\b(?:una?|un)\b",
    "de": r"\bein(?:e[nmrs]?)?\b",
    "zh": r"\u4e00[\u4e00-\u9fff]",
}
_SINGLE = {
    **_ONCE,
    "en": r"\b(?:an?|one|the)\b",
    "es": r"\b(?:una?|un|el|la)\b",
    "de": r"\b(?:ein(?:e[nmrs]?)?|der|die|das|de[mn])\b",
}
"""Marks of one single thing; an artifact with an article is one."""
_THEIRS = {
    "en": r"\b(?:his|her|their)\b",
    "es": r"\bsus?\b",
    "de": r"\b(?:sein|ihr)\w*",
}
"""Marks of a thing of another person."""
_WHEN = {"en": r"\b(?:before|after|until|by|at|during)\b"}
"""Words before a time."""
_LEFT_OPEN = {
    "es": ("o", "y", "de", "del", "a", "en", "con", "que", "por", "para", "la", "el"),
    "de": ("und", "oder", "zu", "mit"),
    "en": ("or", "and", "to", "of", "with", "the", "a", "at", "in", "on", "for", "by", "from", "before"),
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
    defaults: dict[str, Any] = {**common["defaults"], **texts.get("defaults", {})}
    if reading.is_alone:
        defaults |= {name: words for name, words in common["alone"].items() if _is_companion(name, texts)}
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
    may_be_person = bool(texts.get("danger_is_person") or texts.get("object_is_held"))
    for name, person in assign_people(reading, texts, quotes=quotes):
        put(name, [person])
    is_thing = (
        goal is not None
        and goal.object is not None
        and (
            goal.object.sense not in _NO_THINGS
            or (may_be_person and goal.object.sense in PERSONAL)
            # A noun with the first sense of a time may be a thing of the player: "get my stage ready".
            or (goal.object.sense == "time" and goal.object.belongs == "player")
        )
        and goal.object.sense not in texts.get("unfit_objects", ())
        and not _is_awaited(goal, reading)
        and not _is_averted(goal, reading)
    )
    is_theirs = "other" if texts.get("object_is_own") else None
    goals = [_target_phrase(goal.object, reading, common)] if is_thing and goal and goal.object else []
    places = [
        build_phrase(place, reading.language)
        for place in _list_places(reading)
        if place.sense not in texts.get("unfit_objects", ()) and place.belongs != is_theirs
        # Persons are where a way leads, but nothing is made of them.
        if texts.get("object_is_place") or place.sense != "group"
    ]
    supply = choose_supply(reading)
    if supply is not None:
        is_money = supply.sense == _MONEY and "money" in common
        put(
            "supply",
            [default_phrase(common["money"]) if is_money else build_phrase(supply, reading.language)],
        )
    else:
        put("supply", ())
    foes = [*_list_foes(reading, common)] if texts.get("danger_may_be_person") and not quotes else []
    dangers = [build_phrase(danger, reading.language) for danger in _list_dangers(reading)]
    # A wish neither follows a way nor guards a thing.
    unfit = texts.get("danger_is_person") or texts.get("object_is_place")
    may_wish = texts.get("danger_may_be_person") and not unfit
    wishes = [_wish_phrase(reading, common)] if may_wish and not quotes else []
    is_averted = goal is not None and _is_averted(goal, reading)
    averted = [build_phrase(goal.object, reading.language)] if is_averted and goal and goal.object else []
    dangers = [*(one for one in averted if texts.get("danger_may_be_person")), *dangers]
    ranked = [*foes, *dangers] if texts.get("danger_is_person") else [*dangers, *foes]
    put("danger", [*ranked, *wishes])
    owned = [
        build_phrase(thing, reading.language)
        for thing in reading.others
        if thing.sense == "artifact"
        and thing.sense not in texts.get("unfit_objects", ())
        and thing.belongs != is_theirs
    ]
    if texts.get("object_is_place"):
        put("object", _rank_targets(reading, goals, places))
    else:
        worn = [build_phrase(thing, reading.language) for thing in reading.worn]
        put("object", [*goals, *places, *(worn if texts.get("object_is_own") else ()), *owned])
    put("place", places)
    slots |= _collect_texts(reading, texts, slots, quotes=quotes)
    return slots if quotes else _add_particulars(slots, reading, texts)


def _is_companion(name: str, texts: Mapping[str, Any]) -> bool:
    """Return True for a part that works with the player, which a player who is alone has to do without."""
    people = texts["people"]
    return name in people and "third" not in people and not people[name].get("opposes")


def _add_particulars(
    slots: dict[str, NounPhrase | str], reading: Reading, texts: Mapping[str, Any]
) -> dict[str, NounPhrase | str]:
    """Return slots with the words of variants, the elements, and the persons without a part."""
    common = texts["common"]
    used = [_PARTICULARS[name] for name in texts.get("applied", ()) if name in _PARTICULARS]
    words = _particular_words(reading, common)
    slots = {**slots, **{name: words[name] for name in used if name in words}}
    slots |= dict(list_elements(reading, slots, common))
    return {**slots, **fill_sides(reading, slots, common)}


def _wish_phrase(reading: Reading, common: Mapping[str, Any]) -> NounPhrase | None:
    """Return the wish of a person as a threat, such as "the wish to turn back"; None without a short one."""
    line = common["wish"].get("danger")
    wish = next((wish for _, wish in list_wishes(reading) if len(wish) <= _LONGEST_WISH), "")
    return default_phrase({**line, "bare": line["bare"].format(wish=wish)}) if line and wish else None


def _target_phrase(target: Phrase, reading: Reading, common: Mapping[str, Any]) -> NounPhrase | None:
    """Return the phrase of the object of a goal; with "your" for a person of the player."""
    phrase = build_phrase(target, reading.language)
    line = common["members"].get("own")
    if phrase is None or not line or target.belongs != "player" or target.sense not in PERSONAL:
        return phrase
    return replace(phrase, bare=fill_phrase(line, {"one": phrase}) or phrase.bare, is_name=True)


def _rank_targets(
    reading: Reading, goals: Sequence[NounPhrase | None], places: Sequence[NounPhrase | None]
) -> list[NounPhrase | None]:
    """Return where a goal leads: places that it names, the object of its verb, then other places."""
    told = reading.goal.text.casefold() if reading.goal else ""
    target = reading.goal.object if reading.goal else None
    grammar = load_grammars().get(reading.language)
    is_carried = (
        grammar is not None
        and reading.goal is not None
        and reading.goal.verb in grammar.words("goals", "carrying")
    )
    is_site = target is not None and not is_carried and target.sense not in {*PERSONAL, "time"}
    if is_site and target is not None:
        goals = [build_phrase(target, reading.language)]
    named = [place for place in places if place and place.bare.split(" ")[-1].casefold() in told]
    # The way does not lead to a thing that is carried.
    return [*named, *(goals if is_site else ()), *places, *(() if is_site or is_carried else goals)]


def choose_supply(reading: Reading) -> Phrase | None:
    """Return the supply that a story counts down; None if the text has none.

    One single thing is not used up, and the object of the goal is not spent on it.
    """
    heads = {reading.goal.object.head} if reading.goal and reading.goal.object else set()
    measured = {amount.of.head for amount in reading.amounts if amount.of is not None and amount.unit}
    for supply in reading.supplies:
        is_alive = supply.sense in _NO_SUPPLIES and supply.head not in measured
        is_theirs = supply.belongs == "other" and is_marked(supply.head, reading, _THEIRS)
        if supply.head in heads or is_alive or is_theirs or not _is_kept(supply, reading):
            continue
        marks = _ONCE if supply.sense != "artifact" else _SINGLE
        is_single = not (supply.is_plural or supply.is_mass) and is_marked(supply.head, reading, marks)
        if supply.head in measured or not is_single or _is_lasting(supply, reading):
            return supply
    # A meal may name a time: "before supper".
    used = (
        one
        for one in reading.others
        if one.sense in _CONSUMED and one.is_mass and not is_marked(one.head, reading, _WHEN)
    )
    return next((one for one in used if one.belongs != "other" and one.head not in heads), None)


def _is_lasting(supply: Phrase, reading: Reading) -> bool:
    """Return True if a word right after a supply is about how long it lasts."""
    words = re.findall(r"\w+", reading.text.casefold())
    head = supply.head.casefold()
    after = words[words.index(head) + 1 :][:_NEAR] if head in words else []
    return not load_grammars()[reading.language].words("things", "lasting").isdisjoint(after[:1])


def _is_kept(supply: Phrase, reading: Reading) -> bool:
    """Return True unless a supply is money that the text gives neither an amount nor a lack of."""
    if supply.sense not in (_MONEY, "possession"):
        return True
    heads = {amount.of.head for amount in reading.amounts if amount.of is not None}
    if supply.head in heads or (supply.sense == _MONEY and reading.amounts):
        return True
    grammar = load_grammars()[reading.language]
    words = re.findall(r"\w+", reading.text.casefold())
    place = next((place for place, word in enumerate(words) if word == supply.head.casefold()), -1)
    near = words[max(place - _NEAR, 0) : place + _NEAR + 1] if place >= 0 else []
    signs = [grammar.words("things", name) for name in ("stock", "lasting", "none")]
    return any(word in sign for word in near for sign in signs)


def _is_averted(goal: Goal, reading: Reading) -> bool:
    """Return True if the object of a goal is what threatens the player: "prevent the thing"."""
    grammar = load_grammars().get(reading.language)
    is_averting = grammar is not None and goal.verb in grammar.words("goals", "averting")
    if grammar is not None and is_averting and goal.object is not None:
        # In "stop them from burning it", the object is not a threat.
        before = goal.text.partition(goal.object.head)[0].casefold().split()
        is_averting = grammar.words("things", "off").isdisjoint(before)
    return is_averting and goal.object is not None and goal.object.sense not in PERSONAL


def _is_awaited(goal: Goal, reading: Reading) -> bool:
    """Return True if the object of a goal is not here yet: "until the thing comes"."""
    grammar = load_grammars().get(reading.language)
    if grammar is None or goal.object is None:
        return False
    if goal.object.head not in goal.text:
        # A pronoun means it, so it is here.
        return False
    before = goal.text.partition(goal.object.head)[0]
    awaiting = grammar.words("times", "awaiting")
    if reading.language == "zh":
        return any(word in before for word in awaiting)
    return not awaiting.isdisjoint(before.casefold().split())


def _list_dangers(reading: Reading) -> list[Phrase]:
    """Return the dangers: forces, then things, then what has happened already, as in "cut off by it"."""
    grammar = load_grammars().get(reading.language)
    past = grammar.words("things", "caused") if grammar is not None else frozenset()

    def rank(danger: Phrase) -> tuple[bool, bool]:
        before = reading.text.casefold().partition(danger.head.casefold())[0].split()[-_NEAR:]
        return not past.isdisjoint(before), danger.sense in _THINGS

    return sorted((one for one in reading.dangers if not _is_kept_safe(one, reading)), key=rank)


def _is_kept_safe(danger: Phrase, reading: Reading) -> bool:
    """Return True for the object of a goal that lasts, such as "keep it", which does not threaten it."""
    grammar, goal = load_grammars().get(reading.language), reading.goal
    if grammar is None or goal is None or goal.object is None:
        return False
    if goal.object.head not in (danger.head, *danger.text.split()):
        return False
    against = grammar.words("things", "against")
    is_fought = any(word in against for word in goal.text.casefold().split())
    return goal.verb in grammar.words("goals", "lasting") and not is_fought


def _list_foes(reading: Reading, common: Mapping[str, Any]) -> Iterator[NounPhrase | None]:
    """Yield the phrases of the persons and groups who are against the player."""
    for person in reading.people:
        if person.side == AGAINST:
            yield own_phrase(person, reading, common)


def _list_places(reading: Reading) -> Iterator[Phrase]:
    """Yield the places that are neither a day nor only named with the deadline."""
    until = reading.deadline.text.casefold() if reading.deadline else ""
    for place in reading.places:
        is_day = place.is_proper and re.search(rf"\bon {re.escape(place.text)}\b", reading.text)
        if not is_day and place.head.casefold() not in until:
            yield place


def _collect_texts(
    reading: Reading, texts: Mapping[str, Any], slots: Slots, *, quotes: bool
) -> dict[str, NounPhrase | str]:
    """Return the slots about the player: the role, the goal, the whole text and the time that is left."""
    common = texts["common"]
    language = common["language"]
    own_goal = _goal_text(reading, common, quotes=quotes)
    told = " ".join(clean_text(reading.text).split())
    if len(told) > _LONGEST_TEXT or "{" in told:
        told = ""
    role = person_phrase(reading.role, common["language"]) if reading.role is not None else None
    addressed = common["own_words"].format(told) if told and quotes else address_text(told, common)
    situation = addressed if quotes or not told else address_text(find_situation(reading), common)
    own_words = addressed if language == "en" else told
    found = {
        "role": role if role and not role.is_name else None,
        "player": "" if quotes else _describe_player(own_words, reading, common),
        "goal": own_goal or fill_phrase(str(texts["goal"]), slots) or "",
        "own_goal": own_goal,
        "main": "" if quotes or not own_goal else _shorten_act(own_goal, reading),
        "told": addressed,
        "situation": situation,
        "headline": "" if quotes else _find_headline(addressed),
        "time_left": _time_left(reading.deadline, common),
        "until": "" if quotes else _until(reading, common),
    }
    return {name: value for name, value in found.items() if value}


def spell_number(number: int) -> str:
    """Return an English number below ten thousand in words."""
    if number < len(_NUMBERS):
        return _NUMBERS[number]
    if number < _HUNDRED:
        ten, one = divmod(number, 10)
        return f"{_TENS[ten]}-{_NUMBERS[one]}" if one else _TENS[ten]
    base, name = (_THOUSAND, "thousand") if number >= _THOUSAND else (_HUNDRED, "hundred")
    many, rest = divmod(number, base)
    link = " and " if 0 < rest < _HUNDRED else " "
    return (
        f"{spell_number(many)} {name}{link}{spell_number(rest)}" if rest else f"{spell_number(many)} {name}"
    )


def _quote(phrase: NounPhrase) -> NounPhrase:
    if phrase.is_name:
        return phrase
    return NounPhrase(f"\u201c{phrase.bare}\u201d", is_plural=phrase.is_plural, is_mass=True)


def _describe_player(text: str, reading: Reading, common: Mapping[str, Any]) -> str:
    """Return the sentence about who the player is, with the words of the text; empty without one."""
    found = _PLAYER[common["language"]].search(text)
    who = (found[1] or found[2]).strip() if found else ""
    if common["language"] != "en":
        # "I am" may be before an adjective.
        is_role = reading.role is not None and reading.role.role and reading.role.role in who
        who = replace_words(who, common) if is_role else ""
    lead = common["role"].partition("{")[0]
    return f"{lead}{who}{common['stop']}" if who and len(who) <= LONGEST_PHRASE else ""


def _find_headline(text: str) -> str:
    """Return the first clause of a text if it can stand alone as a title; empty otherwise."""
    clause = _CLAUSE_END.split(text.strip("\u201c\u201e\u201d"), maxsplit=1)[0].strip()
    return clause if _SHORTEST_TITLE <= len(clause) <= 2 * LONGEST_PHRASE else ""


def _goal_text(reading: Reading, common: Mapping[str, Any], *, quotes: bool) -> str:
    """Return the goal as an infinitive, addressed to the player; empty if no goal fits."""
    goal = reading.goal
    if goal is None or not goal.text:
        return ""
    text = _shorten_goal(_name_prevented(goal, reading, common) or goal.text)
    if quotes:
        return f"\u201c{text}\u201d"
    language = common["language"]
    if language == "en" and len(text.split()) <= _BARE_GOAL:
        # The object of a short goal is a clause: "find out who ...".
        found = re.search(rf"{re.escape(text)}{_TO_CLAUSE_END}", reading.text, re.IGNORECASE)
        text = found[0].strip() if found and len(found[0]) <= 2 * LONGEST_PHRASE else text
    if language == "en":
        text = _SMALL_NUMBER.sub(lambda found: spell_number(int(found[0])), text)
    if language == "zh":
        text = text.lstrip("\u4e0a\u4e0b\u4e2d\u91cc\u524d\u540e")
    text = _AMOUNT_TAIL.sub("", text)
    while text.rpartition(" ")[2] in _LEFT_OPEN.get(language, ()):
        text = text.rpartition(" ")[0]
    is_bare = common["has_articles"] and language != "de" and " " not in text
    if is_bare or len(text) > 2 * LONGEST_PHRASE or UNFIT.search(text):
        # A bare verb is too short for a goal.
        return ""
    turned = address_player(text) if language == "en" else replace_words(text, common)
    turned = turned.removesuffix(".")
    # An act of the player on all of "us" is about the others, too.
    turned = _OWN_OBJECT.sub(r"\1 everyone", turned) if language == "en" else turned
    if language == "en" and goal.object is not None and is_of_third_person(reading.text, goal.text):
        turned = turn_third_person(turned)
    if language == "de" and _starts_with_noun(turned):
        return turned
    return turned[:1].lower() + turned[1:]


def _name_prevented(goal: Goal, reading: Reading, common: Mapping[str, Any]) -> str:
    """Return "keep them from it" in words of the text for a goal such as "prevent it"; empty for another."""
    if not _POINTING.fullmatch(goal.text) or reading.language != "en":
        return ""
    told = ((own_phrase(one, reading, common), one.wish) for one in reading.people if one.side == AGAINST)
    who, wish = next(((who, wish) for who, wish in told if who and wish), (None, ""))
    if who is None:
        return ""
    verb, _, rest = wish.partition(" ")
    return f"keep {who.definite} from {add_ing(verb)} {rest}".strip()


def find_variants(reading: Reading, texts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the conditions of a reading under which a plot has other lines.

    Args:
        reading: the reading.
        texts: the texts of the plot.
    """
    goal = reading.goal.object if reading.goal else None
    unfit = {*texts.get("unfit_objects", ()), *PERSONAL}
    if goal is not None and goal.sense in unfit and build_phrase(goal, reading.language) is not None:
        yield "held"
    if goal is not None and goal.is_plural and goal.sense in PERSONAL:
        yield "crowd"
    if is_few(reading):
        yield "few"
    words = _particular_words(reading, texts["common"])
    yield from (name for name, slot in _PARTICULARS.items() if slot in words)


_PARTICULARS = {"carried": "cargo", "choice": "choice", "trace": "trace"}
"""The slot whose words are the condition of a variant."""


def _particular_words(reading: Reading, common: Mapping[str, Any]) -> dict[str, NounPhrase | str]:
    """Return what a goal takes along, the act that it decides, and the thing that its question is about."""
    found: dict[str, NounPhrase | str | None] = {}
    grammar, goal = load_grammars().get(reading.language), reading.goal
    if grammar is None or goal is None:
        return {}
    if goal.object is not None and goal.verb in grammar.words("goals", "carrying"):
        found["cargo"] = _target_phrase(goal.object, reading, common)
    pattern = common["implied"].get("whether")
    if pattern and (told := re.search(pattern, goal.text)):
        found["choice"] = _cut_act(address_text(told["act"], common).rstrip("."), reading)
    things = (one for one in reading.others if one.sense in _TRACES)
    found["trace"] = next((phrase for one in things if (phrase := build_phrase(one, reading.language))), None)
    return {name: words for name, words in found.items() if words}


def _shorten_act(goal: str, reading: Reading) -> str:
    """Return the words of a goal that takes more than one try, for an action; empty for another goal."""
    grammar = load_grammars()[reading.language]
    if reading.goal is None or reading.goal.verb not in grammar.words("goals", "lasting"):
        return ""
    return _cut_act(goal, reading)


def _cut_act(goal: str, reading: Reading) -> str:
    """Return the words of an act without times and circumstances; empty if they do not fit into a name."""
    grammar = load_grammars()[reading.language]
    goal = goal[:1].lower() + goal[1:] if reading.language == "en" else goal
    if reading.language == "zh":
        act = re.split("[\uff0c\uff1b]|\u76f4\u5230", goal)[0]
        act = _ZH_LENGTH.sub("", act)
        return act if 1 < len(act) <= _LONGEST_ACT else ""
    stops = grammar.words("goals", "until")
    words = goal.split()
    end = next(
        (place for place, word in enumerate(words) if place > 1 and word.strip(",") in stops), len(words)
    )
    if grammar.verbs_last and end < len(words):
        # The verb would be cut off.
        return ""
    act = " ".join(words[:end]).strip(" ,.")
    return act if end > 1 and len(act) <= _LONGEST_ACT and not UNFIT.search(act) else ""


def _shorten_goal(text: str) -> str:
    """Return the words of a goal, without a relative clause if they are too long for a line."""
    plain = " ".join(text.split()).rstrip(".!?")
    is_long = len(plain) > LONGEST_PHRASE or UNFIT.search(plain)
    # The clause is in the situation, too.
    return _RELATIVE.split(plain, maxsplit=1)[0] if is_long else plain


def _starts_with_noun(text: str) -> bool:
    """Return True if the first word of German words is a noun, with a capital everywhere."""
    grammar = load_grammars()["de"]
    _, first = tag_words(f"und {text}", grammar)[:2]
    return first.is_noun


def _time_left(deadline: Deadline | None, common: Mapping[str, Any]) -> NounPhrase | None:
    if deadline is None or deadline.amount <= 0 or deadline.amount != int(deadline.amount):
        return None
    if common["language"] != "en":
        return None
    amount = int(deadline.amount)
    number = spell_number(amount) if amount < _HUNDRED * _HUNDRED else str(amount)
    unit = deadline.unit if amount == 1 else f"{deadline.unit}s"
    return NounPhrase(f"{number} {unit}", is_plural=amount != 1, is_name=True)


def _until(reading: Reading, common: Mapping[str, Any]) -> str:
    """Return the words about the event that ends the time; empty for a length of time or other words."""
    if reading.deadline is None or reading.deadline.amount or "until" not in common:
        return ""
    language, text = common["language"], reading.deadline.text
    if language == "en":
        found = re.search(rf"{re.escape(text)}(?! to ){_TO_CLAUSE_END}", reading.text)
        text = found[0] if found else text
        text = address_player(text)
        text = text[:1].lower() + text[1:].removesuffix(".")
        text = re.sub(r"^by ", "until ", text)
    is_own = language in FIRST_PERSON and FIRST_PERSON[language].search(text)
    is_fit = (
        re.fullmatch(common["until"]["words"], text)
        and len(text) <= LONGEST_PHRASE
        and not UNFIT.search(text)
    )
    return text if is_fit and not is_own else ""
