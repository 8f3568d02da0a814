"""Particulars of a text: its sentences besides the goal, and the things that no slot of a plot takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from peripety.author.plots.cast import PERSONAL, group_phrase, is_same, own_phrase
from peripety.author.plots.noun_phrases import UNFIT, NounPhrase, build_phrase, person_phrase
from peripety.author.plots.phrases import join_list
from peripety.author.text_analysis.languages import clean_text
from peripety.author.text_analysis.sides import ABSENT, AGAINST, UNABLE
from peripety.author.text_analysis.tagging import tag_words
from peripety.author.text_analysis.words import load_grammars

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.author.plots.phrases import Slots
    from peripety.author.text_analysis.reading import Person, Reading
    from peripety.author.text_analysis.words import Grammar, Word

PERSON, AWAY, THING, PLACE, DANGER = "person", "absent", "thing", "place", "danger"
"""Kinds of details."""

_SENTENCE = re.compile(
    r"[^.!?;\u3002\uff01\uff1f\uff1b]+(?:\.(?=[\d\w])[^.!?;]+)*[.!?;\u3002\uff01\uff1f\uff1b]*"
)
_CLAUSE = re.compile(r"[,\uff0c](?!\d)")
_TITLE_STOP = re.compile(r"\b(Mr|Mrs|Ms|Dr|St|Prof)\.(?= )")
_LEAD = re.compile(r"(?i)(.{8,}?),? and (?:i|we|you)\b")
_COORDINATES = frozenset({"and", "but", "y", "pero", "und", "aber", "doch"})
"""Words before a further sentence."""
_ZH_COORDINATE = re.compile("^(?:\u4f46\u662f|\u4f46|\u800c\u4e14|\u800c|\u53ef\u662f|\u4e0d\u8fc7)")
_PRONOUN = re.compile(r"\b(?:it|them)\b")
_LINKS = frozenset({"prep", "conj", "wh"})
_MOST = 0.7
_VERBS = ("verb", "be", "have", "modal")
_START = 12
"""The number of characters by which a goal is found in its text."""
_COORDINATE = re.compile(
    r",? (?:and|but) (?=(?:the|my|our|your|his|her|their|an?|you|we|i|[A-Z]\w+) )"
    r"|; |, (?=[A-Z]\w+ (?:is|was|has|can) )"
)
"""The border of two clauses with a subject each."""
_RELATIVE = "that"
_FEWEST, _LONGEST, _LATEST_VERB = 3, 14, 6
_SUBJECTS = ("det", "poss", "name", "num", "noun", "adj")
_ALWAYS = frozenset({"at", "every"})
_VAGUE = frozenset({"it", "he", "she", "they", "him", "them", "his", "her", "their", "if"})
_CHANGING = ("supply", "worn", "charge", "leaver")
"""Slots with a gauge of their own."""
_NOW = frozenset({"now", "yet", "again", "still", "soon", "ago", "last", "next", "must", "should", "will"})
_TANGIBLE = frozenset({"artifact", "plant", "animal", "object", "communication", "possession"})
_SITES = frozenset({"", "artifact", "location", "object"})
_SIDES = {AGAINST: "against", ABSENT: "absent", UNABLE: "unable"}


def find_situation(reading: Reading) -> str:
    """Return the sentences of a text without the goal; empty if the goal is all of it."""
    text = _TITLE_STOP.sub(r"\1", " ".join(clean_text(reading.text).split()))
    sentences = [found[0].strip() for found in _SENTENCE.finditer(text) if found[0].strip()]
    if reading.goal is None:
        return text
    gap = "" if reading.language == "zh" else " "
    if reading.goal.is_implied:
        wanted = set(_words(reading.goal.text))
        return gap.join(one for one in sentences if not _is_repeated(one, wanted))
    told = _find_goal(sentences, reading.goal.text)
    kept = [*sentences[:told], *_split_goal(sentences[told], reading), *sentences[told + 1 :]]
    # The goal can be what a semicolon announces.
    return re.sub(r"\s*[;\uff1b]$", "\u3002" if reading.language == "zh" else ".", gap.join(kept))


def _is_repeated(sentence: str, wanted: set[str]) -> bool:
    """Return True if most words of a sentence are among those of a goal."""
    words = _words(sentence)
    return sum(word in wanted for word in words) > _MOST * len(words)


def is_situation_first(reading: Reading) -> bool:
    """Return True if the goal refers to a sentence before it: "Keep them ..." or "find out who ..."."""
    grammar = load_grammars().get(reading.language)
    if grammar is None or reading.goal is None:
        return False
    words = tag_words(reading.goal.text, grammar)
    place = clean_text(reading.text).find(reading.goal.text[:_START])
    begun = _SENTENCE.match(clean_text(reading.text).strip())
    is_later = begun is not None and (place < 0 or place >= begun.end())
    return is_later and any(word.tag in ("pron", "wh") for word in words)


def _find_goal(parts: Sequence[str], goal: str) -> int:
    """Return the place of the part that has most words of the goal."""
    wanted = _words(goal)
    shares = [sum(word in part for word in wanted) for part in map(_words, parts)]
    return shares.index(max(shares))


def _words(text: str) -> list[str]:
    """Return the words of a text; the characters of a text without spaces."""
    words = re.findall(r"\w+", text.casefold())
    return [char for word in words for char in (word if word[0] >= "\u3400" else [word])]


def _split_goal(sentence: str, reading: Reading) -> Iterator[str]:
    """Yield the parts of the sentence of a goal that the goal does not repeat."""
    goal = reading.goal.text if reading.goal else ""
    if reading.language == "zh":
        clauses = _CLAUSE.split(sentence.rstrip("\u3002"))
        del clauses[_find_goal(clauses, goal)]
        if clauses:
            clauses[0] = _ZH_COORDINATE.sub("", clauses[0])
            yield "\uff0c".join(clauses) + "\u3002"
        return
    start = sentence.casefold().find(" ".join(goal.casefold().split()[:2]))
    if lead := _LEAD.match(sentence[: max(start, 0)]):
        yield f"{lead[1]}."
    clauses = _CLAUSE.split(sentence)
    tail = clauses[_find_goal(clauses, goal) + 1 :]
    rest = ",".join(tail).strip().rstrip(".!?;")
    grammar = load_grammars().get(reading.language)
    opener, _, told = rest.partition(" ")
    rest = told if opener.casefold() in _COORDINATES else rest
    first = rest.casefold().split()[:1]
    is_open = grammar is not None and (
        any(grammar.tags.get(word) in _LINKS or word in grammar.words("people", "who") for word in first)
        or not any(word.tag in _VERBS for word in tag_words(rest, grammar))
    )
    if rest and not is_open and rest.casefold() not in goal.casefold():
        yield f"{rest[:1].upper()}{rest[1:]}."


def list_counted(reading: Reading, told: str) -> list[str]:
    """Return the counted things of a text that are not in another text yet, in the words of the user."""
    shown = told.casefold()
    return [
        amount.text[:1].lower() + amount.text[1:]
        for amount in reading.amounts
        if amount.of is not None
        and amount.of.sense not in PERSONAL
        and amount.unit != "percent"
        and amount.text.casefold() not in shown
        and not amount.text.isdigit()
    ]


def fill_sides(reading: Reading, slots: Slots, common: Mapping[str, Any]) -> dict[str, NounPhrase]:
    """Return a phrase for the persons of each side who have no part in the plot."""
    found: dict[str, NounPhrase] = {}
    left = [*_list_left(reading, slots)]
    for side, name in _SIDES.items():
        people = [person for person, _ in left if person.side == side]
        phrases = [phrase for one in people if (phrase := own_phrase(one, reading, common))]
        if len(phrases) == 1:
            found[name] = phrases[0]
        elif phrases:
            names = join_list((phrase.definite for phrase in phrases), common)
            found[name] = NounPhrase(names, is_plural=True, is_name=True, language=reading.language)
    return found


def list_details(
    reading: Reading, slots: Mapping[str, NounPhrase], common: Mapping[str, Any]
) -> list[tuple[str, NounPhrase]]:
    """Return the kind and the phrase of what the text names and no slot takes, in order of their kinds."""
    language = reading.language
    found = [
        (AWAY if person.side == ABSENT else PERSON, own_phrase(person, reading, common) or phrase)
        for person, phrase in _list_left(reading, slots)
        # Opponents, and persons in no state to help, have lines of their own.
        if person.side in ("", ABSENT)
    ]
    counted = [amount.of for amount in reading.amounts if amount.of is not None]
    grammar = load_grammars().get(language)
    units = set(grammar.pairs("times", "units")) if grammar is not None else set()
    for kind, phrases in (
        (THING, [*counted, *reading.supplies, *reading.others]),
        (DANGER, reading.dangers),
        (PLACE, reading.places),
    ):
        for one in phrases:
            phrase = build_phrase(one, language)
            is_fit = one.sense in (_TANGIBLE if kind == THING else _SITES) if kind != DANGER else True
            is_speech = one.sense == "communication" and one.head.endswith("ing")
            is_timed = not units.isdisjoint(one.text.casefold().split())
            # A slot may have the phrase without its last word, as in "the pump" of "the pump running".
            words = one.text.split()[:-1] if kind == DANGER else []
            is_told = any(_is_known(word, slots) for word in (one.head, *words)) or (
                reading.role is not None and one.head in reading.role.role
            )
            if phrase is not None and is_fit and not (is_speech or is_timed or is_told):
                found.append((kind, phrase))
    seen: dict[str, tuple[str, NounPhrase]] = {}
    for kind, phrase in found:
        seen.setdefault(phrase.bare.casefold(), (kind, phrase))
    return [*seen.values()]


def list_facts(reading: Reading, slots: Mapping[str, NounPhrase]) -> list[str]:
    """Return the clauses of a text that stay true in a game, for the end of a sentence.

    A clause about the player alone, about a time, or about what has a gauge can become false.

    Args:
        reading: the reading of a text that addresses the player.
        slots: the words of the user by slot.
    """
    grammar = load_grammars().get(reading.language)
    if grammar is None or reading.language != "en":
        return []
    changing = [slots[name].bare.split()[-1] for name in _CHANGING if name in slots]
    found: list[str] = []
    for sentence in _SENTENCE.findall(find_situation(reading)):
        for clause in _split_clauses(sentence.strip(), grammar):
            words = tag_words(clause, grammar)
            is_own = any(
                word.low == head.casefold() or word.lemma == head for word in words for head in changing
            )
            if _is_lasting_fact(words, grammar) and not is_own and not UNFIT.search(clause):
                first = clause if words[0].tag == "name" else f"{clause[:1].lower()}{clause[1:]}"
                found.append(first)
    return found


def _split_clauses(sentence: str, grammar: Grammar) -> Iterator[str]:
    """Yield the main clauses of a sentence; none of a question or an order."""
    if not sentence.endswith("."):
        return
    parts = [part.strip(" ,") for part in _COORDINATE.split(sentence.rstrip("."))]
    if all(_is_clause(tag_words(part, grammar)) for part in parts):
        # Otherwise, it is a list, or a subject of two: "she and my alpha are here".
        yield from parts


def _is_clause(words: Sequence[Word]) -> bool:
    """Return True if there is a verb, and the words do not end within a subject: "but she"."""
    is_cut = len(words) > 1 and words[-1].tag in ("pron", "player") and words[-2].tag == "conj"
    return any(word.tag in _VERBS for word in words) and not is_cut


def _is_lasting_fact(words: Sequence[Word], grammar: Grammar) -> bool:
    """Return True for words that begin with a subject and its verb, without a time."""
    units = grammar.pairs("times", "units").keys() | grammar.pairs("times", "points").keys()
    if not _FEWEST <= len(words) <= _LONGEST or words[0].tag not in _SUBJECTS:
        return False
    verb = next((at for at, word in enumerate(words) if word.tag in _VERBS), 0)
    of = grammar.words("things", "of") | grammar.words("things", "off")
    before = [word for word in words[:verb] if word.low not in of]
    is_led = 0 < verb < _LATEST_VERB and not any(
        word.tag in ("prep", "wh", "mark", "pron") for word in before
    )
    is_led = is_led and not any(word.low == _RELATIVE for word in before[1:])
    is_timed = any(
        word.low in _NOW or (word.low in units and lead.low not in _ALWAYS)
        for lead, word in zip([words[0], *words], words, strict=False)
    )
    is_vague = any(word.low in _VAGUE for word in words)
    return is_led and not is_timed and not is_vague and words[-1].tag not in ("prep", "conj", "det", "poss")


def list_wishes(reading: Reading) -> list[tuple[NounPhrase, str]]:
    """Return the phrases of the persons who want something else than the player, with their wishes."""
    found: list[tuple[NounPhrase, str]] = []
    for person in reading.people:
        build = group_phrase if person.is_group else person_phrase
        phrase = build(person, reading.language)
        is_told = not person.side and not person.leaves
        wish = _name_thing(person.wish, reading) if person.wish and is_told else ""
        # A person who may leave is an element, with lines of its own.
        if phrase is not None and wish and not UNFIT.search(wish):
            found.append((phrase, wish))
    return found


def _name_thing(wish: str, reading: Reading) -> str:
    """Return an English wish with a thing in place of "it" or "them"; empty if the text has no such thing."""
    pronoun = _PRONOUN.search(wish) if reading.language == "en" else None
    if pronoun is None:
        return wish
    text, is_plural = reading.text.casefold(), pronoun[0] == "them"
    end = text.find(wish.casefold())
    things = (*reading.others, *((reading.goal.object,) if reading.goal else ()))
    places = [
        (at, phrase)
        for one in things
        if one is not None and one.is_plural == is_plural and one.sense and one.sense not in PERSONAL
        if (at := text.rfind(one.head.casefold(), 0, max(end, 0))) >= 0 and (phrase := build_phrase(one))
    ]
    if not places:
        return ""
    _, nearest = max(places, key=lambda one: one[0])
    return _PRONOUN.sub(nearest.definite, wish, count=1)


def _list_left(reading: Reading, slots: Slots) -> Iterator[tuple[Person, NounPhrase]]:
    """Yield the persons without a part in the plot, with their phrases."""
    parts = [value.bare for value in slots.values() if isinstance(value, NounPhrase)]
    for person in reading.people:
        build = group_phrase if person.is_group else person_phrase
        phrase = build(person, reading.language)
        is_cast = any(is_same(person, part) for part in parts if part)
        if phrase is not None and not is_cast and not _is_known(person.name or person.role, slots):
            yield person, phrase


def _is_known(noun: str, slots: Slots) -> bool:
    """Return True if a noun is in the phrase of a slot."""
    low = noun.casefold()
    return any(low in value.bare.casefold() for value in slots.values() if isinstance(value, NounPhrase))
