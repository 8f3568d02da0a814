"""Reading of a free text without a model: role, goal, people, places, supplies and dangers.

A part of the text that is not understood is listed as unread and never guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from peripety.author.text_analysis.clauses import TOLD, Aim, ClauseReader, EnglishClauseReader
from peripety.author.text_analysis.languages import clean_text, detect_language, tokenize
from peripety.author.text_analysis.phrases import Amount, Deadline, Goal, Person, Phrase, find_chunks
from peripety.author.text_analysis.sides import is_player_alone
from peripety.author.text_analysis.tagging import tag_words
from peripety.author.text_analysis.things import ThingReader
from peripety.author.text_analysis.times import find_amounts, find_deadline, find_difficulty
from peripety.author.text_analysis.words import Grammar, Word, find_classes, find_lemmas, load_grammars

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.author.text_analysis.phrases import Chunk

__all__ = ["PATTERNS", "Amount", "Deadline", "Goal", "Person", "Phrase", "Reading", "read_text"]

READ_LIMIT = 12_000
"""Number of characters of a text that are read."""
_LEAST = 2.0
"""The score below which a pattern is not chosen."""
_MARGIN = 0.25
"""The least lead over the second pattern."""
_CUE, _MOST_CUES, _MORE_WORDS, _OTHER_AIM = 1.0, 3, 0.5, 0.3
_SHORTEST_STEM = 4
_TITLE_STOP = re.compile(r"\b(Mr|Mrs|Ms|Dr|St|Prof)\.(?= )")
_OPPOSED = ("take", "stop")
"""Patterns whose goal is about a thing of an opponent."""
_DEFENDED = ("hold_out", "make_ready", "outdo", "prevent")
"""Patterns in which who ends a thing of the player is an opponent."""
_TANGIBLE = ("artifact", "possession", "location", "object", "animal", "substance", "food", "plant", "")
_KEPT = ("artifact", "possession", "location", "group", "plant", "object", "communication")
_RIVALS = ("person", "group", "artifact")
_ENGLISH_SHARE, _HAN_SHARE = 0.6, 0.3

PATTERNS = (
    "hold_out",
    "reach",
    "win_over",
    "find_out",
    "keep_together",
    "outdo",
    "take",
    "save",
    "make_ready",
    "decide",
    "stop",
    "prevent",
)
"""Ids of the dramatic patterns, each named by what the player has to do."""


_SITES = ("artifact", "object", "location")
_TOWARDS = frozenset({"to"})


@dataclass(frozen=True, slots=True)
class Reading:
    """Meaning of a text.

    Attributes:
        text: the text; an English one with the usual spelling of short forms.
        language: its language as a BCP 47 tag; empty if unknown.
        role: who the player is; None if unknown.
        goal: what the player wants to do; None if unknown.
        people: the other persons, in order of the text.
        places: the places.
        supplies: things that can be spent or run out.
        dangers: what threatens the goal.
        deadline: the time that the player has; None if unknown.
        amounts: the numbers other than the deadline.
        difficulty: "easy", "normal" or "hard"; empty if unknown.
        pattern: the best of `PATTERNS`; empty if the text is not understood.
        pattern_scores: the score of each pattern with one, rounded.
        unread: the phrases that are not understood.
        others: the noun phrases among them.
        worn: the things in a bad state, such as "the old thing" or "the thing is broken".
        charges: the animals in need; a person in need is among the people.
        is_alone: True if the player has no companion, by the words of the text.
    """

    text: str
    language: str
    role: Person | None = None
    goal: Goal | None = None
    people: tuple[Person, ...] = ()
    places: tuple[Phrase, ...] = ()
    supplies: tuple[Phrase, ...] = ()
    dangers: tuple[Phrase, ...] = ()
    deadline: Deadline | None = None
    amounts: tuple[Amount, ...] = ()
    difficulty: str = ""
    pattern: str = ""
    pattern_scores: Mapping[str, float] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    others: tuple[Phrase, ...] = ()
    worn: tuple[Phrase, ...] = ()
    charges: tuple[Phrase, ...] = ()
    is_alone: bool = False


def read_text(text: str) -> Reading:
    """Return the meaning of a text, by the grammar of its language; plain for a language without one."""
    visible = _TITLE_STOP.sub(r"\1", clean_text(text[:READ_LIMIT]))
    language = find_language(visible)
    grammar = load_grammars().get(language)
    if grammar is None or not visible.strip():
        return Reading(text, language if language in ("fr", "ja") else "", unread=_split_plain(visible))
    return _read_tagged(_spell_out(text, grammar), _spell_out(visible, grammar), grammar)


def _spell_out(text: str, grammar: Grammar) -> str:
    """Return a text with the usual spelling of short forms of chats: "I'm" for "im"."""
    forms = grammar.pairs("spelling", "words")
    if not forms:
        return text

    def spell(found: re.Match[str]) -> str:
        full = forms[found[0].lower()].replace("_", " ")
        return full[:1].upper() + full[1:] if found[0][:1].isupper() else full

    return re.sub(rf"(?i)(?<![\w'\u2019-])(?:{'|'.join(forms)})(?![\w'\u2019-])", spell, text)


def find_language(text: str) -> str:
    """Return the code of the language, by its script; English also for a fragment of mostly English words."""
    if any("\u3041" <= char <= "\u30fe" for char in text):
        return "ja"
    if sum("\u3400" <= char <= "\u9fff" for char in text) > _HAN_SHARE * len(text):
        return "zh"
    words = [token.casefolded for token in tokenize(text)]
    code = detect_language(words).code
    if code in load_grammars() or not words:
        return code
    known = sum(
        any(find_classes(lemma) for lemma in find_lemmas(word, "en")) for word in words if word.isascii()
    )
    return "en" if known >= _ENGLISH_SHARE * len(words) and known > 1 else code


def find_story_language(spec: Mapping[str, Any]) -> str:
    """Return the code of the language of a scenario: of its opening, and of the names of its actions."""
    names = [action.get("name") or "" for action in spec.get("actions") or ()]
    return find_language("\n".join([spec.get("opening") or "", *names]))


def _split_plain(text: str) -> tuple[str, ...]:
    """Return the sentences of a text that is not understood."""
    return tuple(part for line in text.splitlines() if (part := line.strip()))


def _read_tagged(text: str, visible: str, grammar: Grammar) -> Reading:
    words = tag_words(visible, grammar)
    chunks = find_chunks(words, grammar)
    clauses = (EnglishClauseReader if grammar.code == "en" else ClauseReader)(words, chunks, grammar)
    aims = clauses.find_aims()
    difficulty = find_difficulty(words, grammar)
    main = _choose_aim(aims, grammar, tuned=bool(difficulty))
    if main is not None and grammar.code == "en" and _only_tells(main, grammar):
        main = None
    if main is not None and grammar.code != "en":
        main = clauses.add_prevented(main)
    timed = find_deadline(words, grammar)
    deadline, *span = timed or (None, -1, -1)
    things = ThingReader(
        words,
        chunks,
        grammar,
        role=clauses.role_chunk,
        span=(span[0], span[1]),
        goal=(main.place, main.end) if main else (-1, -1),
    )
    scores = dict(_score_patterns(main, aims, words, clauses.role.role if clauses.role else "", grammar))
    pattern = _choose_pattern(scores) or _find_way(main, grammar) or (main.usual if main else "")
    target = main.goal.object if main else None
    if main is not None and target is not None:
        rows = () if main.prevents else grammar.rows("goals")["counters"]
        counters = any(_matches(row, main.goal.verb, main.tail) for row in rows)
        is_opposed = (pattern in _OPPOSED or counters or not pattern) and things.oppose_owners(
            target.head, (main.place, main.end), is_taken=pattern == "take"
        )
        if is_opposed and counters:
            # The thing that is to end belongs to an opponent.
            pattern = "stop"
            scores = {pattern: main.trust, **scores}
    if main is not None and (pattern in _DEFENDED or main.goal.verb in grammar.words("goals", "saving")):
        things.oppose_enders((main.place, main.end))
    if main is not None and main.goal.stopped is not None and pattern == "prevent":
        things.oppose_person(main.goal.stopped)
    if main is not None and pattern == "take":
        things.oppose_sources((main.place, main.end))
        if target is not None:
            things.oppose_takers(target.head)
    return Reading(
        text=text,
        language=grammar.code,
        role=clauses.role,
        goal=replace(main.goal, text=_POINTING_TIME.sub("", main.goal.text)) if main else None,
        people=tuple(_drop_repeated(things.people)),
        places=tuple(
            chunk.to_phrase()
            for chunk in _order_places(things.places, main if pattern == "reach" else None, chunks, grammar)
        ),
        supplies=tuple(chunk.to_phrase() for chunk in things.supplies),
        dangers=tuple(chunk.to_phrase() for chunk in things.dangers),
        deadline=deadline,
        amounts=tuple(find_amounts(words, chunks, (span[0], span[1]), grammar)),
        difficulty=difficulty,
        pattern=pattern,
        pattern_scores=scores,
        unread=tuple(chunk.to_phrase().text for chunk in things.unread)
        if scores or main
        else _split_plain(visible),
        others=tuple(chunk.to_phrase() for chunk in things.unread),
        worn=tuple(chunk.to_phrase() for chunk in things.worn),
        charges=tuple(chunk.to_phrase() for chunk in things.charges),
        is_alone=is_player_alone(words, chunks, clauses.role_chunk, grammar),
    )


_POINTING_TIME = re.compile(r"\s+(?:by|before|until|till) then$")
"""A limit of time that only points to one that the text names elsewhere."""


def _drop_repeated(people: Sequence[Person]) -> Iterator[Person]:
    """Yield the persons, and each group once: "our brass band", then "the band"."""
    for place, person in enumerate(people):
        longer = (other.role for other in people[:place] if other.is_group)
        if not (person.is_group and any(role.endswith(f" {person.role}") for role in longer)):
            yield person


def _order_places(
    places: Sequence[Chunk], way: Aim | None, chunks: Sequence[Chunk], grammar: Grammar
) -> list[Chunk]:
    """Return the places, for a goal that is a way with where it leads first and where it begins last.

    "Bring us to the bridge" leads to the bridge, which alone would be a thing.
    """
    if way is None:
        return [*places]
    starts = grammar.words("things", "off")
    ordered = sorted(places, key=lambda chunk: chunk.before is not None and chunk.before.low in starts)
    if way.goal.object is not None:
        ends = (
            chunk
            for chunk in chunks
            if way.place < chunk.start < way.end and chunk.before is not None and chunk.before.low in _TOWARDS
        )
        led = (one for one in ends if one.definite in ("det", "poss") and one.has_class(*_SITES, "group"))
        last = next((one for one in led if not one.is_first_class("person", "time")), None)
        return ordered if last is None or last in ordered else [last, *ordered]
    if way.goal.verb not in grammar.words("goals", "carrying"):
        return ordered
    ends = (chunk for chunk in chunks if way.place < chunk.start and chunk.end == way.end)
    last = next((chunk for chunk in ends if chunk.is_after("prep", "to") and chunk.has_class(*_SITES)), None)
    return ordered if last is None or last in ordered else [last, *ordered]


def _choose_aim(aims: Sequence[Aim], grammar: Grammar, *, tuned: bool) -> Aim | None:
    """Return the most trusted goal; a verb with a pattern first, and then the first one."""
    levels = grammar.tables["difficulty"]
    told = {word for name in ("hard", "easy", "normal") for word in levels[name]} if tuned else set()
    fitting = [aim for aim in aims if not told.intersection(aim.tail)]
    settings = grammar.words("goals", "settings")

    def rank(aim: Aim) -> tuple[float, int]:
        # A standing task gives way to another order.
        is_task = aim.goal.verb in settings
        is_known = bool(aim.usual) or _find_best_match(aim, grammar) > 0
        return aim.trust + 1.5 * is_known - is_task, -aim.place

    return max(fitting, key=rank, default=None)


def _only_tells(main: Aim, grammar: Grammar) -> bool:
    """Return True if what the player does anyway, without a duty, has no pattern: "you wake up on a ship"."""
    return main.trust <= TOLD and not _find_best_match(main, grammar)


def _score_patterns(
    main: Aim | None, aims: Sequence[Aim], words: Sequence[Word], role: str, grammar: Grammar
) -> Mapping[str, float]:
    """Return the score of each pattern with one, rounded, the best first."""
    scores: dict[str, float] = {}
    spoken = [word for word in words if word.tag not in ("mark", "end")]
    lemmas, lows = [word.lemma or word.low for word in spoken], [word.low for word in spoken]
    for aim in aims:
        weight = 1.0 if aim is main else _OTHER_AIM
        for pattern, rows in grammar.rows("patterns").items():
            best = max((_score_row(row, aim) for row in rows), default=0.0)
            scores[pattern] = scores.get(pattern, 0.0) + weight * best
    gap = "" if grammar.code == "zh" else " "
    for pattern, rows in grammar.rows("patterns").items():
        if any(_is_done_by(row[0], role) for row in rows):
            scores[pattern] = scores.get(pattern, 0.0) + _CUE
    asks = grammar.words("goals", "asks")
    if any(word.first and word.low in asks for word in words):
        scores["find_out"] = scores.get("find_out", 0.0) + 2 * _CUE
    _favour_object(scores, main, words, grammar)
    if main is not None and main.prevents:
        _favour_prevention(scores, main)
    alone = main is None or not _find_best_match(main, grammar)
    texts = [f"{gap}{gap.join(row)}{gap}" for row in (lemmas, lows)]
    for pattern, rows in grammar.rows("cues").items():
        hits = sum(_weigh_cue(row, gap, texts, alone=alone) for row in rows)
        scores[pattern] = scores.get(pattern, 0.0) + _CUE * min(hits, _MOST_CUES)
    found = [(pattern, round(score, 2)) for pattern, score in scores.items() if score > 0]
    return dict(sorted(found, key=lambda item: (-item[1], item[0])))


def _favour_object(
    scores: dict[str, float], main: Aim | None, words: Sequence[Word], grammar: Grammar
) -> None:
    """Decide between winning a person and winning a thing, for verbs that mean both."""
    causing = grammar.words("goals", "causing")
    moving = causing | grammar.words("goals", "moving")
    is_caused = False
    if main is not None and main.goal.verb in moving:
        # "Bring them to agree" is about the persons, "bring them to the border" about the way.
        is_caused = any(
            word.tag == "to" and then.tag == "verb" for word, then in pairwise(words[main.place : main.end])
        )
    if is_caused and main is not None and main.goal.object and main.goal.object.sense in ("person", "group"):
        # "Get a person to act" is about the person.
        scores["win_over"] = max(scores.values(), default=0.0) + _CUE
    is_got_back = main is not None and main.goal.verb in causing and "back" in main.tail[1:]
    got = main.goal.object if is_got_back and main is not None else None
    if got is not None and got.sense not in ("person", "group"):
        # "Get a thing back" is about the thing, not about a way.
        scores["take"] = max(scores.values(), default=0.0) + _CUE
    target = main.goal.object if main is not None else None
    if main is not None and main.goal.verb in causing:
        _favour_got(scores, main, words, grammar)
    if main is not None and target is not None and _is_in_nature(main, target, words, grammar):
        # Persons are rescued from a natural place without an opponent.
        scores["save"] = scores.pop("take", 0.0) + scores.get("save", 0.0)
    if (
        target is not None
        and target.sense in _KEPT
        and scores.get("save", 0.0) == max(scores.values(), default=1)
    ):
        # A thing is saved by holding out for it.
        scores["hold_out"] = scores.get("hold_out", 0.0) + scores.pop("save")
    is_outlasting = main is not None and main.goal.verb in grammar.words("goals", "outlasting")
    if is_outlasting and target is not None and (target.is_proper or target.sense in _RIVALS):
        # A rival is outlasted by doing better, and a hard time by holding out.
        scores["outdo"] = scores.pop("hold_out", 0.0) + scores.get("outdo", 0.0)
    if main is not None and main.goal.object is not None and scores.get("win_over") == scores.get("take"):
        favoured = "take" if main.goal.object.sense in _TANGIBLE else "win_over"
        if scores.get(favoured):
            scores[favoured] += _CUE


def _favour_prevention(scores: dict[str, float], main: Aim) -> None:
    """Read a goal that prevents an act as one of its own, and not as holding out or as ending a thing."""
    stopped, target = main.goal.stopped, main.goal.object
    if stopped is not None and stopped.belongs == "player" and scores.get("keep_together", 0.0) > main.trust:
        # "Stop my sister from leaving" is about her.
        return
    best = max(scores.pop("hold_out", 0.0), scores.pop("stop", 0.0), main.trust)
    if stopped is not None and stopped.belongs != "player" and target and target.head != stopped.head:
        # "Keep them from leaving" is about the persons, "keep them from killing the alpha" about the act.
        scores.pop("keep_together", None)
    scores["prevent"] = best + _CUE


def _favour_got(scores: dict[str, float], main: Aim, words: Sequence[Word], grammar: Grammar) -> None:
    """Decide what "get" means: "get the key to it", "get him out", "get her to act"."""
    target, tail = main.goal.object, main.tail
    best = max(scores.values(), default=0.0)
    if target is not None and target.head in grammar.words("goals", "access") and "to" in tail:
        scores["take"] = best + _CUE
    elif target is not None and target.sense in ("person", "animal") and "out" in tail:
        scores["save"] = best + _CUE
    elif any(
        word.tag in ("pron", "poss") and to.tag == "to" and act.tag == "verb"
        for word, to, act in zip(*(words[main.place + skip : main.end] for skip in (1, 2, 3)), strict=False)
    ):
        scores["win_over"] = best + _CUE


def _is_in_nature(main: Aim, target: Phrase, words: Sequence[Word], grammar: Grammar) -> bool:
    """Return True for the rescue of several persons from a natural place."""
    off = grammar.words("things", "off")
    told = words[main.place : main.end]
    start = next((at for at, word in enumerate(told) if word.low in off), len(told))
    nouns = [word for word in told[start:] if word.is_noun]
    is_saving = main.goal.verb in grammar.words("goals", "saving") and target.is_plural
    return is_saving and bool(nouns) and nouns[0].classes[:1] == ("object",)


def _is_done_by(verb: str, role: str) -> bool:
    """Return True if an English role is named by a verb, such as "builder" by "build"."""
    stem = role.removesuffix("or").removesuffix("er")
    return stem != role and len(stem) >= _SHORTEST_STEM and verb in (stem, f"{stem}e")


def _weigh_cue(row: Sequence[str], gap: str, texts: Sequence[str], *, alone: bool) -> int:
    """Return the weight of a cue in a text: 0 if absent, 2 for a strong one in a text without a goal."""
    strong = row[-1] == "!"
    words = f"{gap}{gap.join(row[: len(row) - strong])}{gap}"
    return (1 + (strong and alone)) * any(words in text for text in texts)


def _score_row(row: Sequence[str], aim: Aim) -> float:
    if not _matches(row, aim.verb, aim.tail):
        return 0.0
    return aim.trust * (1 + _MORE_WORDS * (len(row) - 1)) / 1.2


def _find_best_match(aim: Aim, grammar: Grammar) -> float:
    """Return the best score of a goal in any pattern."""
    rows = (row for rows in grammar.rows("patterns").values() for row in rows)
    return max((_score_row(row, aim) for row in rows), default=0.0)


def _choose_pattern(scores: Mapping[str, float]) -> str:
    """Return the best pattern; empty if its score or its lead is too small."""
    ranked = [*scores.items(), ("", 0.0), ("", 0.0)]
    (best, score), (_, second) = ranked[0], ranked[1]
    return best if score >= _LEAST and score - second >= _MARGIN else ""


def _find_way(main: Aim | None, grammar: Grammar) -> str:
    """Return the pattern of a way for what the player does: "I drive it across the pass"; else nothing."""
    rows = grammar.rows("patterns").get("reach", ())
    ways = grammar.words("goals", "ways")
    is_way = main is not None and any(_matches(row, main.goal.verb, main.tail) for row in rows)
    return "reach" if main is not None and is_way and not ways.isdisjoint(main.tail) else ""


def _matches(row: Sequence[str], verb: str, tail: Sequence[str]) -> bool:
    """Return True if the row is the verb and words that follow it in this order."""
    if row[0] != verb:
        return False
    rest = iter(tail)
    return all(word in rest for word in row[1:])
