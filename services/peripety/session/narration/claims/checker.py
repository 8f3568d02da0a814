"""Checker of prose, which compares the claims of each sentence with the record of the turn."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from peripety.author.text_analysis.languages import detect_language
from peripety.session.narration.claims.amounts import AmountClaims
from peripety.session.narration.claims.clauses import resolve_pronouns
from peripety.session.narration.claims.conduct import RetoldSecrets, contains_text, has_machinery
from peripety.session.narration.claims.deeds import DeedClaims, EndingClaims
from peripety.session.narration.claims.english import (
    NameTable,
    SentenceBuffer,
    is_function_word,
    is_question,
    load_toml,
    remove_speech,
    split_sentences,
    words_of,
)
from peripety.session.narration.claims.grammar import read_sentence
from peripety.session.narration.claims.likely import LikelyClaims
from peripety.session.narration.claims.people import LifeClaims, PossessionClaims
from peripety.session.narration.claims.presence import PresenceClaims
from peripety.session.narration.claims.record import WrongClaim
from peripety.session.narration.claims.tagger import tag_tokens
from peripety.session.narration.claims.weighing import ClaimWeigher

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.session.narration.claims.clauses import Sentence
    from peripety.session.narration.claims.deeds import Deed
    from peripety.session.narration.claims.english import ProseWord
    from peripety.session.narration.claims.record import TurnFacts
    from peripety.session.narration.claims.weighing import ClaimCandidate


# A last word of these does not name a place or an amount by itself.
_GENERAL = frozenset(
    [
        "room",
        "place",
        "side",
        "area",
        "floor",
        "door",
        "way",
        "house",
        "hall",
        "thing",
        "part",
        "level",
        "number",
        "figure",
        "amount",
        "count",
        "total",
        "left",
        "time",
        "one",
        "point",
        "end",
        "days",
        "hours",
        "minutes",
        "day",
        "hour",
        "until",
        "above",
        "below",
    ]
)
# `noise of the boat` is a noise, and not a boat.
_HEAD = re.compile(r"(?<=\w)\s+(?:of|in|at|on|to|until|till|beside|behind|above|below|under|about|for)\s")
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)


def name_table(facts: TurnFacts, deeds: Iterable[Deed]) -> NameTable:
    """Return the names of all that the record of a turn knows."""
    table, after = NameTable(), facts.after
    things = {*facts.before.holders, *after.holders}
    people = {
        entity: [_plain(name) for name in (*names, *_short_names(names))]
        for entity, names in after.names.items()
        if entity != after.you and entity.replace("_", " ") not in things
    }
    for entity, names in people.items():
        table.add("entity", entity, names)
    heads = Counter(names[0].split()[-1] for names in people.values())
    for entity, names in people.items():
        # `the night guard` is `the guard` as well.
        head = names[0].split()[-1]
        if names[0].islower() and heads[head] == 1:
            table.add("entity", entity, [head])
    _add_roles(table, facts, things)
    table.add("entity", after.you, [_plain(name) for name in after.names.get(after.you, ())])
    places = {**facts.before.place_names, **after.place_names}
    _add_all(table, "place", {key: [_plain(name) for name in names] for key, names in places.items()})
    _add_all(table, "thing", {thing: [thing, *_titles(facts, thing)] for thing in things})
    quantities = facts.before.quantities | after.quantities
    _add_all(
        table,
        "quantity",
        {path: _quantity_names(one.names) for path, one in quantities.items()},
        has_plural=True,
    )
    units = {
        path: [one.unit, *_UNITS.get(one.unit, "").split()] for path, one in quantities.items() if one.unit
    }
    for path, unit in units.items():
        table.add("unit", path, unit, has_plural=True)
    for path, one in quantities.items():
        table.add("bearer", path, _bearers(one.names))
        bands = ((facts.spec.get("labels") or {}).get(path) or {}).get("bands") or ()
        nouns = [str(band["word"]) for band in bands]
        table.add("quantity", path, [_plain(noun) for noun in nouns if _ARTICLE.match(noun)])
    for thing, _ in {**facts.before.flags, **after.flags}:
        table.add("flag", thing, [thing, thing.split()[-1]])
    for deed in deeds:
        if deed.thing:
            words = deed.thing.split()
            table.add("object", f"{deed.action_id}/{deed.thing}", [deed.thing, words[-1]], has_plural=True)
    return table


# Symbols of units, with the words that prose has for them.
_UNITS = {
    "m": "metres meters",
    "km": "kilometres kilometers",
    "cm": "centimetres centimeters",
    "mm": "millimetres millimeters",
    "l": "litres liters",
    "kg": "kilos kilograms",
    "g": "grams",
    "t": "tons tonnes",
    "h": "hours",
    "min": "minutes",
    "s": "seconds",
    "%": "percent",
    "\u20ac": "euros",
    "$": "dollars",
    "\u00a3": "pounds",
}


def _short_names(names: Sequence[str]) -> list[str]:
    """Return the first and the last word of a longer name, such as a title with a surname."""
    first, *inner = names[0].split() if names else [""]
    return [f"{first} {inner[-1]}"] if len(inner) > 1 and first[:1].isupper() else []


def _plain(name: str) -> str:
    return _ARTICLE.sub("", name)


def _quantity_names(names: Sequence[str]) -> list[str]:
    """Return the names of a quantity, without what follows its noun: `cans of x`, `days until y`."""
    out = []
    for name in names:
        plain = re.sub(r"^[\w\u2019']+['\u2019]s\s+", "", _plain(name))
        first = re.split(r"\s+(?:of|in|at|on|until|till|to|left|above|below|about)\b", plain)[0]
        out += [plain, first, *re.findall(r"\bof\s+(?!(?:the|your|his|her)\b)(.+)$", plain)]
    known = set(out)
    out += [word for one in _synonyms() if not known.isdisjoint(one) for word in one]
    return list(dict.fromkeys(one for one in out if one and one not in _GENERAL))


@cache
def _synonyms() -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(one.split()) for one in load_toml("vocabulary.toml")["synonyms"].values())


def _bearers(names: Sequence[str]) -> list[str]:
    """Return what a quantity belongs to: `trust of the town`, `the town's trust`, `money in the box`."""
    out = []
    for name in names:
        out += re.findall(r"\b(?:of|in|at)\s+the\s+(.+)$", name)
        out += re.findall(r"^(?:the\s+)?(.+?)['\u2019]s\s", name)
    return out


def _add_all(table: NameTable, kind: str, names: dict[str, list[str]], *, has_plural: bool = False) -> None:
    """Add names, and the last word of each longer name if it belongs to one of them only."""
    heads = Counter(
        head for one in names.values() for head in {_HEAD.split(name)[0].split()[-1] for name in one if name}
    )
    for key, known in names.items():
        table.add(kind, key, known, has_plural=has_plural)
        short = [_HEAD.split(name)[0].split()[-1] for name in known if len(name.split()) > 1]
        table.add(
            kind,
            key,
            [one for one in short if heads[one] == 1 and one not in _GENERAL],
            has_plural=has_plural,
        )


def _titles(facts: TurnFacts, thing: str) -> list[str]:
    """Return the names of an entity that is the thing."""
    found = []
    for entity in facts.spec.get("entities") or ():
        words = entity["id"].replace("_", " ")
        if words == thing or str(entity.get("name") or "").lower() == thing:
            found += [_plain(str(entity.get("name") or words)).lower(), words]
    return found


def _add_roles(table: NameTable, facts: TurnFacts, things: Iterable[str]) -> None:
    """Add the nouns by which descriptions introduce people, if each belongs to one person."""
    roles: dict[str, list[str]] = {}
    for entity in facts.spec.get("entities") or ():
        if entity["id"].replace("_", " ") in things or entity["id"] == facts.after.you:
            continue
        found = re.match(
            r"^(?:the|an?|your|his|her|their|my)?\s*((?:[\w'\u2019-]+\s+){0,3}?[\w-]+)"
            r"(?=[,.;:]|\s+(?:of|in|at|who|from|and|with|for|on|to|dead|killed|since)\b|$)",
            str(entity.get("description") or ""),
        )
        words = [
            word
            for word in (found[1].lower().split() if found else ())
            if not word.endswith(("'s", "\u2019s"))
        ]
        if words and not is_function_word(words[-1]) and len(words[-1]) > 2:  # noqa: PLR2004 - a noun
            roles.setdefault(words[-1], []).append(entity["id"])
    for role, owners in roles.items():
        if len(owners) == 1:
            table.add("entity", owners[0], [role])


_PLURALS = frozenset({"you", "they", "we", "i"})
_WORD = re.compile(r"[^\W\d_]+")
_WORD_OR_NUMBER = re.compile(r"\w+")
_LEAST_REPEATED = 5
_REST = frozenset({"left", "remain", "remains", "remained", "remaining"})


class ClaimChecker:
    """Checker of the prose of one turn.

    Args:
        facts: the turn.
    """

    def __init__(self, facts: TurnFacts) -> None:
        premise = facts.spec.get("premise")
        style = premise if isinstance(premise, dict) else {}
        is_past = self._is_past = style.get("tense") == "past"
        self._spec = facts.spec
        self._texts = [_WORD_OR_NUMBER.findall(text.lower()) for text in facts.texts]
        self._secrets = RetoldSecrets(facts.secrets, [*facts.known, *facts.texts] if facts.secrets else ())
        self._you = facts.after.you
        self._is_third = style.get("person") == "third"
        self._amounts = AmountClaims(facts, is_past=is_past)
        self._lives = LifeClaims(facts, is_past=is_past)
        self._presence = PresenceClaims(facts, is_past=is_past)
        self._possessions = PossessionClaims(facts, is_past=is_past)
        self._deeds = DeedClaims(facts)
        self._endings = EndingClaims(facts, is_past=is_past)
        self._likely = LikelyClaims(facts, self._deeds, is_past=is_past)
        self._weigher = ClaimWeigher(facts, self._deeds, is_past=is_past)
        self._names = name_table(facts, self._deeds.deeds)
        self._endings.read_endings(self._names)
        self._words = (
            self._names.words
            | self._amounts.words
            | self._deeds.words
            | self._endings.words
            | self._secrets.words
        ) - _COMMON
        self._beginnings = frozenset(word[:size] for word in self._words for size in range(1, len(word) + 1))

    def check_sentence(self, sentence: str, before: str = "") -> list[WrongClaim]:
        """Return the certain claims of a sentence that contradict the record.

        Args:
            sentence: the sentence.
            before: the sentence before it, to which pronouns may refer.
        """
        return [one for one in self._check_sentence(sentence, before) if one.is_certain]

    def find_likely(self, narrative: str) -> list[WrongClaim]:
        """Return the claims of a whole narration that probably contradict the record.

        A true sentence may look the same, so it is not withheld.

        Args:
            narrative: the prose.
        """
        sentences = split_sentences(narrative)
        likely: list[WrongClaim] = []
        for sentence, before in zip(sentences, ["", *sentences], strict=False):
            found = self._check_sentence(sentence, before)
            certain = {one.kind for one in found if one.is_certain}
            likely += [one for one in found if one.kind not in certain]
        return likely

    def _check_sentence(self, sentence: str, before: str) -> list[WrongClaim]:
        told = remove_speech(sentence)
        if has_machinery(told) and not contains_text(self._spec, sentence):
            return [WrongClaim("words", sentence.strip(), "a story has no words of the program")]
        if self._secrets.is_told(sentence):
            return [WrongClaim("secret", sentence.strip(), "the player has not found this out")]
        if is_question(told) or self._repeats_record(told):
            return []
        parsed, found = self._apply_rules(told, sentence, before)
        weighed = [*self._weigher.check(parsed, sentence, found)]
        if self._presence.is_visit(parsed):
            weighed = [one for one in weighed if one.kind != "presence" or one in found]
        return list(dict.fromkeys(weighed))

    def find_candidates(self, narrative: str) -> tuple[list[ClaimCandidate], bool]:
        """Return the facts that a narration may contradict, and True if a rule is certain.

        Args:
            narrative: the prose.
        """
        sentences = split_sentences(narrative)
        candidates: list[ClaimCandidate] = []
        is_certain = False
        for sentence, before in zip(sentences, ["", *sentences], strict=False):
            told = remove_speech(sentence)
            if not is_question(told) and not self._repeats_record(told):
                parsed, found = self._apply_rules(told, sentence, before)
                candidates += self._weigher.candidates(parsed, found)
                is_certain |= any(one.is_certain for one in found)
        return candidates, is_certain

    def _apply_rules(self, told: str, sentence: str, before: str) -> tuple[Sentence, list[WrongClaim]]:
        context = tag_tokens(remove_speech(before), self._names) if before else []
        resolve_pronouns(context, self._you, is_third=self._is_third)
        parsed = self._parse(told, context)
        found = list(dict.fromkeys(self._find(parsed, sentence, before, context)))
        if any(one.is_certain for one in found):
            # Words that get their meaning from another sentence, or a bare unit, may mean something else.
            alone = self._parse(told, context, is_strict=True)
            named = {
                key for token in alone.tokens for kind, key in token.refs if kind in {"quantity", "bearer"}
            }
            has_rest = any(token.word in _REST for token in alone.tokens)
            for token in alone.tokens if not has_rest else ():
                if token.word in _MEASURES:
                    token.refs = tuple(ref for ref in token.refs if ref[0] != "unit" or ref[1] in named)
            plain = {one.kind for one in self._find(alone, sentence, before, ()) if one.is_certain}
            found = [replace(one, is_certain=one.is_certain and one.kind in plain) for one in found]
        return parsed, list(dict.fromkeys(found))

    def _parse(self, told: str, context: Sequence[ProseWord], *, is_strict: bool = False) -> Sentence:
        parsed = read_sentence(
            told, self._names, self._you, context, is_third=self._is_third, is_strict=is_strict
        )
        for clause in parsed.clauses:
            if clause.has_any_tense and clause.subject is not None and clause.subject.word in _PLURALS:
                clause.is_past = self._is_past
        return parsed

    def _find(
        self, parsed: Sentence, sentence: str, before: str, context: Sequence[ProseWord]
    ) -> Iterator[WrongClaim]:
        yield from self._amounts.check(parsed, sentence, context)
        yield from self._lives.check(parsed, sentence)
        yield from self._presence.check(parsed, sentence, before)
        yield from self._possessions.check(parsed, sentence)
        yield from self._endings.check(parsed, sentence)
        yield from self._deeds.check(parsed, sentence)
        yield from self._likely.check(parsed, sentence, context)

    def _repeats_record(self, told: str) -> bool:
        """Return True if most of a sentence is in a row in a text that the audience has been given."""
        spoken = _WORD_OR_NUMBER.findall(told.lower())
        needed = max(_LEAST_REPEATED, -(-len(spoken) * 2 // 3))
        runs = {tuple(spoken[at : at + needed]) for at in range(len(spoken) - needed + 1)}
        return any(
            tuple(text[at : at + needed]) in runs
            for text in self._texts
            for at in range(len(text) - needed + 1)
        )

    def check(self, narrative: str, dialogue: Sequence[Mapping[str, Any]] = ()) -> list[WrongClaim]:
        """Return the certain claims of a whole narration that contradict the record.

        Args:
            narrative: the prose.
            dialogue: spoken lines, `{entity_id, utterance}`. Their words are not claims, but the dead and the
                absent do not speak.
        """
        found, before = [], ""
        for sentence in split_sentences(narrative):
            found += self.check_sentence(sentence, before)
            before = sentence
        for line in dialogue:
            wrong = self._presence.check_speaker(line["entity_id"], line["utterance"], narrative)
            found += [] if wrong is None else [wrong]
        return found

    def find_claim_start(self, sentence: str, scanned: int = 0) -> tuple[int | None, int]:
        """Return the position of the first word of an incomplete sentence that a claim may need, if any.

        No claim begins before such a word, so the text before it can be released.

        Args:
            sentence: the beginning of a sentence.
            scanned: number of its characters that need no search.

        Returns:
            The position, and the number of characters that need no further search.
        """
        for found in _WORD.finditer(sentence, scanned):
            word = found[0].lower()
            # The last word may be the beginning of another one.
            is_open = found.end() == len(sentence)
            if word in self._words or (is_open and word in self._beginnings):
                return found.start(), found.start()
            if not is_open:
                scanned = found.end()
        return None, scanned


# Units of anything; `doses` and `casks` are units of one thing.
_MEASURES = words_of("levels", "measures")
_COMMON = frozenset(
    {"the", "a", "an", "of", "and", "is", "it", "to", "in", "on", "be", "you", "your", "with", "for", "do"}
)


def is_checkable(narrative: str, language: str | None) -> bool:
    """Return True if claims of a narration can be checked: only English ones can.

    Args:
        narrative: the prose.
        language: the language option of the narrator; None or empty for any.
    """
    if language:
        return language.lower().startswith("en")
    return detect_language([word.casefold() for word in _WORD.findall(narrative)]).code == "en"


class ClaimFilter:
    """Streaming filter of one narration, which releases only sentences that do not contradict the record.

    The beginning of a sentence is released before its end if no word of it belongs to a claim.

    Args:
        checker: the checker; None to release everything.
    """

    def __init__(self, checker: ClaimChecker | None) -> None:
        self._checker = checker
        self._sentences = SentenceBuffer()
        self._released = self._scanned = 0
        self.has_contradiction = False
        """True if a sentence contradicts the record; nothing more is released."""

    def feed(self, text: str) -> str:
        """Feed the next piece of the text; return the text that can be released now."""
        if self._checker is None:
            return text
        if self.has_contradiction:
            return ""
        ready = ""
        for sentence in self._sentences.feed(text):
            if self._checker.check_sentence(sentence):
                self.has_contradiction = True
                return ready
            ready += sentence[self._released :]
            self._released = self._scanned = 0
        return ready + self._release_beginning(self._sentences.rest)

    def _release_beginning(self, rest: str) -> str:
        """Return the part of an incomplete sentence that can be released now."""
        assert self._checker is not None  # noqa: S101 - checked by the caller
        start, self._scanned = self._checker.find_claim_start(rest, self._scanned)
        if start is not None and self._sentences.may_have_ended:
            # Nothing is held back from a sentence that is complete as it is; more text is checked with it.
            if self._checker.check_sentence(rest):
                self.has_contradiction = True
                return ""
            start = None
        end = max(self._released, len(rest) if start is None else start)
        piece, self._released = rest[self._released : end], end
        return piece

    def finish(self) -> str:
        """End the text; return the rest that was held back."""
        if self._checker is None or self.has_contradiction:
            return ""
        sentence = self._sentences.finish()
        if self._checker.check_sentence(sentence):
            self.has_contradiction = True
            return ""
        piece, self._released = sentence[self._released :], 0
        return piece
