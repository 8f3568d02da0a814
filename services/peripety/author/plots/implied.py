"""Goals that follow from a situation, for texts that name none.

A text with a threat, a quarrel or a guest, but without a goal, has a situation that a plot fits. The
lines of its language put the goal into words of the text; without a fitting line the plot is plain.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any

from peripety.author.plots.addressing import address_words
from peripety.author.plots.cast import group_phrase, is_own, own_phrase
from peripety.author.plots.noun_phrases import NounPhrase, build_phrase, person_phrase
from peripety.author.plots.phrases import fill_phrase, join_list
from peripety.author.plots.slots import choose_supply
from peripety.author.text_analysis.phrases import Goal, Phrase
from peripety.author.text_analysis.reading import READ_LIMIT
from peripety.author.text_analysis.sides import ABSENT, AGAINST
from peripety.author.text_analysis.tagging import tag_words
from peripety.author.text_analysis.words import load_grammars

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.author.plots.phrases import Slots
    from peripety.author.text_analysis.phrases import Person
    from peripety.author.text_analysis.reading import Reading
    from peripety.author.text_analysis.words import Word

_LEAST = 1.0
"""The score of one sign of a pattern."""
_MARGIN = 0.25
_UNSURE = frozenset({"decide"})
"""Patterns that a single sign does not show: "or" is in many texts."""
_SOCIAL = frozenset({"save", "win_over", "keep_together"})
"""Patterns about persons: a single sign is not enough without any."""
_NEAR = 3
_HABIT = re.compile(r"(?i)\b(?:each|every) ")
"""Words before an act that an unknown person does again and again."""
_NOTHING = r"(?!)"
"""Pattern without a match."""
_PAIR, _SEVERAL = 2, 3
_NOT_USED_UP = frozenset(
    {"artifact", "communication", "cognition", "animal", "act", "event", "time", "location"}
)
"""Classes of supplies that are not the subject of "make it last"."""
_EVENTS = frozenset({"event", "act", "group", "cognition", "communication"})
"""Classes of events that have a date."""


def imply_goal(reading: Reading, common: Mapping[str, Any]) -> Reading:
    """Return a reading with the pattern and the goal that its situation implies; the same one without any.

    Args:
        reading: the reading.
        common: the texts that all plots of its language share.
    """
    if not reading.text.strip():
        return reading
    candidates = _list_candidates if reading.goal is None else _list_completions
    found = (
        _give_goal(reading, *candidate, common)
        for candidate in candidates(reading, common)
        # Without a goal, signs of a pattern may be enough for the pattern.
        if reading.goal is not None or reading.pattern in ("", candidate[0])
    )
    return next((one for one in found if one is not None), reading)


def _give_goal(
    reading: Reading, pattern: str, kind: str, words: Slots, common: Mapping[str, Any]
) -> Reading | None:
    """Return a reading with a pattern and the goal of a kind; None if no line has all of its words."""
    lines = common["implied"].get(kind)
    if lines is None:
        # The plot names the goal.
        return replace(reading, pattern=pattern)
    text = next((text for line in lines if (text := fill_phrase(line, words))), "")
    if not text:
        return replace(reading, pattern=pattern) if kind == "make_ready" else None
    # An event is what has to be ready.
    phrases = ((one, build_phrase(one, reading.language)) for one in reading.others)
    aims = (words.get("guest"), words.get("piece"))
    target = next((one for one, phrase in phrases if phrase and phrase in aims), None)
    asked = words.get("refuser")
    if isinstance(asked, NounPhrase):
        target = Phrase(
            asked.bare, asked.bare.split(" ")[-1], asked.is_plural, is_proper=asked.is_name, sense="person"
        )
    return replace(reading, pattern=pattern, goal=Goal(kind, target, text, is_implied=True))


def _is_question(goal: Goal, language: str) -> bool:
    """Return True if a goal ends with a verb or a word of a question, without the question."""
    grammar = load_grammars().get(language)
    if goal.object is None and goal.text == f"{goal.verb} {goal.particle}".strip():
        return True
    last = goal.text.rpartition(" ")[2].casefold()
    return grammar is not None and (grammar.tags.get(last) == "wh" or last in grammar.words("people", "who"))


def _list_completions(
    reading: Reading, common: Mapping[str, Any]
) -> Iterator[tuple[str, str, dict[str, NounPhrase | str]]]:
    """Yield what completes a goal of the text: its question, its choice, or a refusal."""
    if reading.goal is None:
        return
    deed = _find_deed(reading, common)
    if deed and reading.pattern in ("", "find_out") and _is_question(reading.goal, reading.language):
        yield "find_out", "culprit", {"deed": deed}
    if reading.pattern:
        return
    if choice := _find_choice(reading, reading.goal.text, common):
        yield "decide", "choice", {"act": choice}
    if any(person.side == AGAINST and not person.is_group for person in reading.people):
        yield "win_over", "refusal", {}


def _list_candidates(
    reading: Reading, common: Mapping[str, Any]
) -> Iterator[tuple[str, str, dict[str, NounPhrase | str]]]:
    """Yield pattern, kind of lines and words for each goal that fits, the surest first."""
    if deed := _find_deed(reading, common):
        yield "find_out", "culprit", {"deed": deed}
    guest = _find_guest(reading)
    if guest is not None:
        yield "make_ready", "guest", {"guest": guest}
    event = _find_event(reading)
    phrase = build_phrase(event, reading.language) if event is not None else None
    if phrase is not None:
        yield "make_ready", "guest", {"guest": phrase}
    refuser = next((person for person in reading.people if person.refusal), None)
    asked = phrase_of(refuser, reading.language) if refuser is not None else None
    if refuser is not None and asked is not None:
        yield "win_over", "refused", {"refuser": asked, "refused": refuser.refusal}
    words = _collect_words(reading, common)
    ranked = [*reading.pattern_scores.items(), ("", 0.0)]
    (best, score), (_, second) = (*ranked, ("", 0.0))[:2]
    is_fit = best not in _SOCIAL or reading.people or reading.charges or score > _LEAST
    if score >= _LEAST and score - second >= _MARGIN and best not in _UNSURE and is_fit:
        yield best, best, words
    yield "hold_out", "threat", words
    if choose_supply(reading) is not None or (reading.deadline is not None and reading.deadline.amount):
        yield "hold_out", "hold_out", words


def _collect_words(reading: Reading, common: Mapping[str, Any]) -> dict[str, NounPhrase | str]:
    """Return the phrases that lines of goals use."""
    supply = choose_supply(reading)
    if supply is not None and supply.sense in _NOT_USED_UP and not _is_of_several(supply, reading):
        supply = None
    found: dict[str, NounPhrase | None] = {
        "threat": next(iter(_list_threats(reading, common)), None),
        "people": _join_people(reading, common),
        "supply": build_phrase(supply, reading.language) if supply is not None else None,
        "piece": next(_list_pieces(reading), None),
    }
    return {name: phrase for name, phrase in found.items() if phrase is not None}


def _is_of_several(supply: Phrase, reading: Reading) -> bool:
    """Return True for things that are counted, at least three."""
    counts = (one.value for one in reading.amounts if one.of is not None and one.of.head == supply.head)
    return supply.is_plural and max(counts, default=0) >= _SEVERAL


def _list_pieces(reading: Reading) -> Iterator[NounPhrase]:
    """Yield the things of the text that can be made ready."""
    for thing in reading.others:
        is_made = thing.sense == "artifact" and thing.belongs != "other"
        if is_made and (phrase := build_phrase(thing, reading.language)):
            yield phrase


def _list_threats(reading: Reading, common: Mapping[str, Any]) -> Iterator[NounPhrase]:
    for danger in reading.dangers:
        if phrase := build_phrase(danger, reading.language):
            yield phrase
    for person in reading.people:
        phrase = own_phrase(person, reading, common)
        if person.side == AGAINST and phrase is not None:
            yield phrase


def _join_people(reading: Reading, common: Mapping[str, Any]) -> NounPhrase | None:
    """Return the first group, or the first two persons."""
    free = [person for person in reading.people if not person.side]
    for person in free:
        if person.is_group:
            return group_phrase(person, reading.language)
    pair = [phrase for person in free[:_PAIR] if (phrase := person_phrase(person, reading.language))]
    if len(pair) < _PAIR:
        return None
    names = join_list((phrase.inflect("acc" if phrase.language == "de" else "") for phrase in pair), common)
    return replace(pair[0], bare=names, is_plural=True, is_name=True)


def phrase_of(person: Person, language: str) -> NounPhrase | None:
    """Return the phrase of a person or of a whole group."""
    return group_phrase(person, language) if person.is_group else person_phrase(person, language)


def _find_deed(reading: Reading, common: Mapping[str, Any]) -> str:
    """Return the rest of a clause whose subject is an unknown person; empty without one."""
    pattern = common["implied"].get("someone")
    found = re.search(pattern, reading.text, re.IGNORECASE) if pattern else None
    if found is None or _HABIT.search(reading.text[: found.start()].rpartition(".")[2]):
        return ""
    deed = " ".join(found["deed"].split())
    if common["language"] == "en":
        return address_words(deed)
    return deed[:1].lower() + deed[1:]


def _find_choice(reading: Reading, goal: str, common: Mapping[str, Any]) -> str:
    """Return the act of a goal that leaves it open, such as "do it or not"; empty for another goal."""
    patterns = common["implied"]
    if re.search(patterns.get("question", _NOTHING), reading.text, re.IGNORECASE):
        return address_words(goal)
    found = re.fullmatch(patterns.get("either", _NOTHING), goal, re.IGNORECASE)
    return found["act"] if found else ""


def _find_guest(reading: Reading) -> NounPhrase | None:
    """Return a person who comes, or an event that starts at a time that the text gives."""
    grammar = load_grammars().get(reading.language)
    if grammar is None:
        return None
    coming = grammar.words("times", "coming")
    words = tag_words(reading.text[:READ_LIMIT], grammar)
    for person in reading.people:
        is_due = person.side != ABSENT or not is_own(person, reading)
        # One of the player who comes back is not a guest.
        if is_due and _is_subject((person.name or person.role).split()[-1], coming, words):
            return phrase_of(person, reading.language)
    starting = grammar.words("times", "starting") if reading.deadline is not None else frozenset[str]()
    others = {one.head: one for one in reversed(reading.others)}
    found = (one for head, one in reversed(others.items()) if _is_subject(head, starting, words))
    return next((phrase for one in found if (phrase := build_phrase(one, reading.language))), None)


def _find_event(reading: Reading) -> Phrase | None:
    """Return the event whose time is the deadline: "the event is in two days"."""
    grammar = load_grammars().get(reading.language)
    if grammar is None or reading.deadline is None or not reading.deadline.text:
        return None
    told, _, _ = reading.text.partition(reading.deadline.text)
    clause = [*takewhile(lambda word: word.tag not in ("end", "mark"), reversed(tag_words(told, grammar)))]
    if not clause or clause[0].tag != "be":
        return None
    nouns = {word.lemma for word in clause}
    return next((one for one in reading.others if one.head in nouns and one.sense in _EVENTS), None)


def _is_subject(noun: str, verbs: frozenset[str], words: Sequence[Word]) -> bool:
    """Return True if one of some verbs follows a noun."""
    if not verbs:
        return False
    for place, word in enumerate(words):
        after = [*takewhile(lambda one: one.tag not in ("end", "mark"), words[place + 1 : place + 2 + _NEAR])]
        if any(one.tag in ("prep", "to") and then.tag == "verb" for one, then in pairwise(after)):
            # It begins to do something.
            continue
        is_same = noun.casefold() in (word.lemma.casefold(), word.low)
        if is_same and any(one.lemma in verbs or one.low in verbs for one in after):
            return True
    return False
