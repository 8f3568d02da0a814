"""Weighed claims: signs of a contradiction that prove nothing alone, added up with packed weights.

Rules read constructions, so they miss a deed that only its effect shows, or a level in other words. Here
each person, thing, amount, action and ending that a sentence may be about is a candidate. Its signs are
classes of words, phrases, concepts, the rules that found something, and where the words stand. Their weights
are those of a logistic model, `tests/bench/claim_weights.py` trains them on texts of several authors. A
threshold for each kind makes false alarms rare in texts of authors that the training did not see. A lower
one, the least weight of what a rule has found, withholds nothing that looks like honest prose.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import (
    SPOKEN,
    is_function_word,
    load_toml,
    number_forms,
    verb_table,
    words,
    words_of,
)
from peripety.session.narration.claims.record import WrongClaim
from peripety.session.narration.claims.totals import AmountReader, is_rounded

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from peripety.session.narration.claims.clauses import ProseClause, Sentence
    from peripety.session.narration.claims.deeds import DeedClaims
    from peripety.session.narration.claims.english import ProseWord
    from peripety.session.narration.claims.record import TurnFacts


_WORD = re.compile(r"[^\W\d_]+")
_LEAST_LETTERS = 3
_NEAR = 6
_CACHED = 16_384
_OUTCOMES = {
    "untried": "is not an action of this turn",
    "refused": "was refused",
    "failed": "failed",
    "done": "was carried out",
}


RULE_SIGN = "R:True"
"""Sign that a rule has found a certain contradiction."""

_SHORT = 9
"""Findings of rules in sentences with fewer words need no weight: false alarms are very rare there."""


@dataclass(frozen=True, slots=True)
class ClaimCandidate:
    """A fact that a sentence may contradict.

    Attributes:
        kind: the kind of the claim.
        expected: the fact of the record.
        signs: the signs with their strengths.
    """

    kind: str
    expected: str
    signs: dict[str, float]


@dataclass(frozen=True, slots=True)
class _AmountTopic:
    """Words for more and for less of what an amount measures."""

    names: frozenset[str]
    more: frozenset[str]
    less: frozenset[str]


@dataclass(frozen=True, slots=True)
class _WeighedAmount:
    """A quantity of the turn."""

    path: str
    before: float
    now: float
    bands: tuple[str, ...]
    band: int
    concepts: frozenset[str]
    topics: tuple[_AmountTopic, ...]

    @property
    def step(self) -> float:
        return self.now - self.before


@dataclass(frozen=True, slots=True)
class _WeighedAction:
    """The words of an action by their part, and its result."""

    expected: str
    result: str
    verb: frozenset[str]
    name: frozenset[str]
    description: frozenset[str]
    verbs: frozenset[str]
    results: frozenset[str]
    states: frozenset[str]
    own: frozenset[str]
    verb_concepts: frozenset[str]
    noun_concepts: frozenset[str]


@cache
def _classes() -> Mapping[str, frozenset[str]]:
    return {name: words(text) for name, text in load_toml("signs.toml")["classes"].items()}


@cache
def _phrases() -> Mapping[str, re.Pattern[str]]:
    return {name: re.compile("|".join(parts)) for name, parts in load_toml("signs.toml")["phrases"].items()}


@cache
def _topics() -> tuple[_AmountTopic, ...]:
    rows = load_toml("signs.toml")["topics"].values()
    return tuple(_AmountTopic(*(words(part) for part in row)) for row in rows)


@cache
def _concepts() -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for name, text in load_toml("signs.toml")["concepts"].items():
        for word in text.split():
            found.setdefault(word, set()).add(name)
            found.setdefault(_lemma(word), set()).add(name)
    return {word: frozenset(names) for word, names in found.items()}


@dataclass(frozen=True, slots=True)
class _ClaimWeights:
    """Weights of a kind of claim.

    Attributes:
        signs: the weight of each sign.
        least: the weight that a claim of signs alone must exceed.
        least_of_rules: the weight that the finding of a rule must exceed.
    """

    signs: Mapping[str, float]
    least: float
    least_of_rules: float


@cache
def _weights() -> Mapping[str, _ClaimWeights]:
    """Return the weights of each kind."""
    text = resources.files(__package__).joinpath("weights.txt").read_text(encoding="utf-8")
    weights: dict[str, dict[str, float]] = {}
    thresholds: dict[tuple[str, str], float] = {}
    for line in text.splitlines():
        if line[0] == "#":
            continue
        kind, *sign, weight = line.split(" ")
        if sign in (["="], ["~"]):
            thresholds[kind, sign[0]] = float(weight)
        else:
            weights.setdefault(kind, {})[" ".join(sign)] = float(weight)
    return {
        kind: _ClaimWeights(signs, thresholds[kind, "="], thresholds[kind, "~"])
        for kind, signs in weights.items()
    }


@lru_cache(maxsize=_CACHED)
def _lemma(word: str) -> str:
    readings = verb_table().get(word)
    if readings:
        return readings[0].lemma
    return word if is_function_word(word) else number_forms(word)[:2][-1]


@lru_cache(maxsize=_CACHED)
def _content(text: str) -> frozenset[str]:
    found = _WORD.findall(text.lower())
    return frozenset(
        _lemma(word) for word in found if not is_function_word(word) and len(word) >= _LEAST_LETTERS
    )


def _concepts_of(lemmas: Iterable[str]) -> frozenset[str]:
    known = _concepts()
    return frozenset(name for lemma in lemmas for name in known.get(lemma, ()))


class _ClaimSigns(dict[str, float]):
    """Signs of one candidate."""

    def put(self, sign: str, strength: float = 1.0) -> None:
        self[sign] = strength


class _SentenceReading:
    """A sentence as sets of words, for the signs of all candidates.

    Args:
        sentence: the sentence without speech.
        rules: what the rules found in it.
    """

    def __init__(self, sentence: Sentence, rules: Sequence[WrongClaim]) -> None:
        self.sentence = sentence
        self.tokens = sentence.tokens
        self.words = frozenset(part for token in self.tokens for part in (token.word, *token.word.split()))
        self.lemmas = frozenset(_lemma(part) for token in self.tokens for part in token.word.split())
        self.concepts = _concepts_of(self.lemmas)
        self._text = sentence.text.lower()
        self._phrases: dict[str, bool] = {}
        classes = load_toml("signs.toml")["flags"]
        self.flags = [name for name, text in classes.items() if self.words & words(text)]
        if SPOKEN in self.words:
            self.flags.append("SPEECH")
        self._counts: dict[str, int] = {}
        self._sizes = [*self._read_sizes()]
        self.is_negative, self.is_unsure = "NEG" in self.flags, "HYP" in self.flags
        self.rules = Counter((one.kind, one.is_certain) for one in rules)
        self.expected = {one.kind: one.expected for one in rules}

    def _read_sizes(self) -> Iterator[str]:
        """Yield marks of the numbers of words, of clauses, and of persons, places and things."""
        named = {ref for token in self.tokens for ref in token.refs if ref[0] in {"entity", "place", "thing"}}
        sizes = {
            "TOKENS": len(self.tokens) // 10,
            "CLAUSES": len(self.sentence.clauses),
            "NAMED": len(named),
        }
        for name, size in sizes.items():
            yield f"{name}{min(size, 4)}"

    def begin(self, kind: str) -> _ClaimSigns:
        """Return the signs that all candidates of a kind share."""
        signs = _ClaimSigns((flag, 1.0) for flag in self.flags)
        if self.sentence.is_unreal or not all(one.is_asserted for one in self.sentence.clauses):
            signs.put("UNREAL")
        if self.sentence.is_unreal:
            signs.put("UNREALS")
        for certain in (True, False):
            if self.rules[kind, certain]:
                signs.put(f"R:{certain}")
        if RULE_SIGN in signs:
            for mark in (*self.flags, *self._sizes):
                signs.put(f"R&{mark}")
        return signs

    def add_classes(
        self, signs: _ClaimSigns, before: str, names: str, pool: Collection[str] | None = None
    ) -> None:
        """Add a sign for each class with a word in the sentence, or in a part of it."""
        for name in names.split():
            known = _classes()[name.lstrip("n")]
            if pool is None and name not in self._counts:
                self._counts[name] = len(self.words & known)
            count = self._counts[name] if pool is None else len(known.intersection(pool))
            if not count:
                continue
            signs.put(f"{before}{name}")
            if count > 1:
                signs.put(f"{before}{name}2")
            if self.is_negative:
                signs.put(f"{before}{name}&NEG")
            if self.is_unsure:
                signs.put(f"{before}{name}&HYP")

    def add_phrases(self, signs: _ClaimSigns, before: str, names: str) -> None:
        """Add a sign for each kind of phrase in the sentence."""
        for name in names.split():
            if name not in self._phrases:
                self._phrases[name] = _phrases()[name].search(self._text) is not None
            if self._phrases[name]:
                signs.put(f"{before}P{name}")
                if self.is_unsure:
                    signs.put(f"{before}P{name}&HYP")

    def near(self, places: Iterable[int]) -> set[str]:
        """Return the words around some tokens."""
        return {
            part
            for place in places
            for token in self.tokens[max(0, place - _NEAR) : place + _NEAR + 1]
            for part in token.word.split()
        }

    def gap(self, first: Iterable[int], second: Collection[int]) -> int:
        """Return the distance of two names in steps of two tokens, at most five."""
        return min(5, min(abs(one - other) for one in first for other in second) // 2)


class ClaimWeigher:
    """Checker that weighs the signs of contradictions.

    Args:
        facts: the turn.
        deeds: the actions of the scenario.
        is_past: True if the past is the tense of the story.
    """

    def __init__(self, facts: TurnFacts, deeds: DeedClaims, *, is_past: bool = False) -> None:
        self._facts, self._is_past = facts, is_past
        self._you = facts.after.you
        self._reader = AmountReader(facts, is_past=is_past)
        states = {(True, True): "A", (False, False): "D", (True, False): "X"}
        self._lives = {
            one: states.get((facts.before.alive.get(one), facts.after.alive.get(one)), "?")  # type: ignore[arg-type]  # an unknown life has no key
            for one in facts.after.names
            if one != self._you
        }
        self._amounts = {path: self._amount(path) for path in facts.after.quantities}
        self._expected_amounts = {
            path: self._reader.contradiction("", [path]).expected for path in self._amounts
        }
        self._actions = [*self._read_actions(deeds)]
        named = Counter(word for one in self._actions for word in one.name | one.verb | one.description)
        self._ends = []
        for end in (*facts.spec.get("win_conditions", ()), *facts.spec.get("loss_conditions", ())):
            told = _content(" ".join(str(end.get(key) or "") for key in ("name", "description", "message")))
            if facts.status.kind == "ongoing" or end["id"] != facts.status.condition:
                own = told - named.keys() - self._proper
                self._ends.append((told, own, _concepts_of(told)))

    def _amount(self, path: str) -> _WeighedAmount:
        after = self._facts.after.quantities[path]
        before = self._facts.before.quantities.get(path, after)
        bands = ((self._facts.spec.get("labels") or {}).get(path) or {}).get("bands") or ()
        ends = [float(one.get("upto", float("inf"))) for one in bands]
        band = next((place for place, end in enumerate(ends) if after.value <= end), len(ends) - 1)
        names = {word for name in after.names for word in name.split()}
        return _WeighedAmount(
            path,
            before.value,
            after.value,
            tuple(str(one.get("word") or "").lower() for one in bands),
            band,
            _concepts_of(_lemma(word) for word in (*names, after.unit)),
            tuple(topic for topic in _topics() if topic.names & names),
        )

    def _read_actions(self, deeds: DeedClaims) -> Iterator[_WeighedAction]:
        spec, after = self._facts.spec, self._facts.after
        entities = " ".join(str(one.get("name") or "") for one in spec.get("entities") or ())
        places = " ".join(name for names in after.place_names.values() for name in names)
        self._proper = _content(f"{entities} {places}")
        texts = {
            one["id"]: (
                str(one.get("name") or one["id"].replace("_", " ")),
                str(one.get("description") or ""),
            )
            for one in spec.get("actions", ())
        }
        count = Counter(word for parts in texts.values() for word in _content(" ".join(parts)))
        for action_id, (name, description) in texts.items():
            own = [one for one in deeds.deeds if one.action_id == action_id]
            result = deeds.result_of(own[0]) if own else "open"
            if result == "open":
                continue
            verb = frozenset(_lemma(word) for word in _WORD.findall(name.lower())[:1])
            nouns, more = _content(name) - verb, _content(description)
            kinds = [one.kind for one in own]
            yield _WeighedAction(
                f"the action '{own[0].name}' {_OUTCOMES[result]}",
                result,
                verb,
                nouns,
                more - nouns,
                frozenset(_lemma(one.partition("-")[0]) for kind in kinds for one in kind.verbs) - verb,
                frozenset(_lemma(one) for kind in kinds for one in kind.results),
                frozenset(_lemma(one) for kind in kinds for one in kind.states),
                frozenset(word for word in nouns | more if count[word] == 1 and word not in self._proper),
                _concepts_of(verb),
                _concepts_of(nouns | more),
            )

    def check(self, sentence: Sentence, text: str, rules: Sequence[WrongClaim]) -> Iterator[WrongClaim]:
        """Yield what the rules found, and further claims whose signs weigh enough.

        A finding that weighs too little is not certain.

        Args:
            sentence: the sentence without speech.
            text: the sentence.
            rules: what the rules found in it.
        """
        clauses = sentence.clauses
        is_weighed = not (
            sentence.is_unreal
            or sentence.attributed
            or (clauses and not any(one.is_asserted for one in clauses))
        )
        certain = {one.kind for one in rules if one.is_certain}
        heaviest: dict[str, float] = {}
        claims = []
        for one in self.candidates(sentence, rules) if certain or is_weighed else ():
            known = _weights()[one.kind]
            weight = sum(
                known.signs[sign] * strength for sign, strength in one.signs.items() if sign in known.signs
            )
            weight += known.signs[""]
            if RULE_SIGN in one.signs and len(sentence.tokens) >= _SHORT:
                heaviest[one.kind] = max(weight, heaviest.get(one.kind, weight))
            if is_weighed and one.kind not in certain and weight > known.least:
                claims.append(WrongClaim(one.kind, text.strip(), one.expected))
        light = {kind for kind, weight in heaviest.items() if weight <= _weights()[kind].least_of_rules}
        yield from (replace(one, is_certain=one.is_certain and one.kind not in light) for one in rules)
        yield from claims

    def candidates(self, sentence: Sentence, rules: Sequence[WrongClaim]) -> Iterator[ClaimCandidate]:
        """Yield all that a sentence may be wrong about.

        Args:
            sentence: the sentence without speech.
            rules: what the rules found in it.
        """
        read = _SentenceReading(sentence, rules)
        people: dict[str, list[int]] = {}
        places: dict[str, list[int]] = {}
        things: dict[str, list[int]] = {}
        for at, token in enumerate(sentence.tokens):
            for kind, key in token.refs:
                if kind == "entity" and (key == self._you or key in self._lives):
                    people.setdefault(key, []).append(at)
                elif kind == "place":
                    places.setdefault(key, []).append(at)
                elif kind == "thing":
                    things.setdefault(key, []).append(at)
        yield from self._weigh_lives(read, people)
        yield from self._weigh_presence(read, people, places)
        yield from self._weigh_things(read, people, things)
        yield self._weigh_ending(read)
        yield from self._weigh_actions(read)
        yield from self._weigh_numbers(read)
        yield from self._weigh_levels(read)

    def _manner(self, clause: ProseClause) -> str:
        """Return marks of a clause: not a plain fact, perfect, and another tense than that of the story."""
        is_plain = clause.is_asserted and not clause.is_negative and not clause.modal
        marks = "" if is_plain else "?"
        marks += "p" if clause.is_perfect else ""
        return marks + ("t" if clause.is_past != self._is_past else "")

    # --- people and things ---

    def _weigh_lives(
        self, read: _SentenceReading, people: Mapping[str, Sequence[int]]
    ) -> Iterator[ClaimCandidate]:
        others = [one for one in people if one != self._you]
        for person in others:
            state = f"{self._lives[person]}:"
            signs = read.begin("life")
            signs.put(state)
            read.add_phrases(signs, state, "DEATH LIVES")
            read.add_classes(signs, state, "DEAD SIGNS BREATH ACTS")
            read.add_classes(signs, state, "nDEAD nSIGNS nACTS", read.near(people[person]))
            for other in others:
                if other != person:
                    signs.put(f"{state}other{self._lives[other]}")
            for clause in read.sentence.clauses:
                if person in clause.subjects():
                    marks = f"{state}s{'!' if clause.is_negative else ''}{self._manner(clause)}"
                    self._put_verb(signs, marks, clause)
                for group in clause.objects:
                    if person in group.keys("entity"):
                        signs.put(f"{state}o:{clause.base}")
                for group in clause.groups():
                    if person in group.owned_by():
                        signs.put(f"{state}own")
                        signs.put(f"{state}own:{group.word}")
            is_dead = self._facts.after.alive.get(person) is False
            expected = f"{self._facts.after.name_of(person)} is {'dead' if is_dead else 'alive'}"
            yield ClaimCandidate("life", expected, signs)
        if not others and "life" in read.expected:
            yield ClaimCandidate("life", read.expected["life"], read.begin("life"))

    @staticmethod
    def _put_verb(signs: _ClaimSigns, marks: str, clause: ProseClause) -> None:
        signs.put(marks)
        signs.put(f"{marks}:{clause.base}")
        for sense in clause.senses:
            signs.put(f"{marks}#{sense}")

    def _place_of(self, entity: str) -> str:
        after = self._facts.after
        verb = "are" if entity == self._you else "is"
        place = after.places.get(entity, "")
        return f"{after.name_of(entity)} {verb} in {after.place_names.get(place, (place,))[0]}"

    def _weigh_presence(
        self, read: _SentenceReading, people: Mapping[str, Sequence[int]], places: Mapping[str, Sequence[int]]
    ) -> Iterator[ClaimCandidate]:
        here, is_read = self._facts.places_of(self._you), False
        for person, at in people.items():
            known = self._facts.places_of(person)
            if not known or self._lives.get(person) in {"D", "X"}:
                continue
            expected = self._place_of(person)
            for place, spots in places.items():
                if place in known:
                    continue
                is_read = True
                signs = self._elsewhere(read, people, person, place, at, spots)
                # A look or a voice from a place may be about another one.
                if not signs.keys() & {"E:prep:from", "Y:prep:from"}:
                    yield ClaimCandidate("presence", expected, signs)
            if person == self._you:
                continue
            is_read = True
            signs = read.begin("presence")
            who = "H:" if known & here else "W:"
            signs.put(who)
            read.add_classes(signs, who, "FAR")
            if who == "W:":
                read.add_phrases(signs, who, "NEARYOU")
                read.add_classes(signs, who, "nNEAR", read.near(at))
                read.add_classes(signs, who, "SENSES")
                if places:
                    signs.put("W:place")
                if self._you in people:
                    signs.put("W:you")
                    signs.put(f"W:gap:{read.gap(at, people[self._you])}")
            for clause in read.sentence.clauses:
                if person in clause.subjects():
                    marks = f"{who}s{self._manner(clause)}"
                    self._put_verb(signs, marks, clause)
                    for group in clause.objects:
                        if self._you in group.keys("entity"):
                            signs.put(f"{marks}:you")
                    for word, group in clause.phrases:
                        if self._you in (*group.keys("entity"), *group.owned_by()):
                            signs.put(f"{marks}:{word}you")
                elif self._you in clause.subjects() and any(
                    person in one.keys("entity") for one in clause.groups()
                ):
                    signs.put(f"{who}y:{clause.base}")
                    for word, group in clause.phrases:
                        if person in group.keys("entity"):
                            signs.put(f"{who}y:{word}")
            yield ClaimCandidate("presence", expected, signs)
        if not is_read and "presence" in read.expected:
            yield ClaimCandidate("presence", read.expected["presence"], read.begin("presence"))

    def _elsewhere(
        self,
        read: _SentenceReading,
        people: Mapping[str, Sequence[int]],
        person: str,
        place: str,
        at: Sequence[int],
        spots: Sequence[int],
    ) -> _ClaimSigns:
        """Return the signs that a person is in a place."""
        signs = read.begin("presence")
        who = "Y:" if person == self._you else "E:"
        signs.put(who)
        first, last = min(
            ((one, other) for one in at for other in spots), key=lambda two: abs(two[0] - two[1])
        )
        before = reversed(read.tokens[max(0, last - 3) : last])
        signs.put(f"{who}prep:{next((one.word for one in before if one.tag in {'prep', 'to'}), 'none')}")
        signs.put(f"{who}gap:{min(5, abs(first - last) // 2)}")
        signs.put(f"{who}order:{first < last}")
        if place in self._facts.places_of(self._you):
            signs.put(f"{who}here")
        for clause in read.sentence.clauses:
            groups = [*clause.objects, *(group for _, group in clause.where)]
            if person in clause.subjects() and any(
                place in (*one.keys("place"), *one.places) for one in groups
            ):
                self._put_verb(signs, f"{who}s{self._manner(clause)}", clause)
        read.add_classes(signs, who, "SENSES FAR NEAR")
        if any(one != person and place in self._facts.places_of(one) for one in people):
            signs.put(f"{who}otherthere")
        return signs

    def _holder_of(self, thing: str) -> str:
        after = self._facts.after
        holder = after.holders.get(thing, "")
        verb = "have" if holder == self._you else "has"
        if holder not in after.names and holder != self._you:
            return f"the {thing} is in the {after.name_of(holder)}"
        return f"{after.name_of(holder)} {verb} the {thing}"

    def _weigh_things(
        self, read: _SentenceReading, people: Mapping[str, Sequence[int]], things: Mapping[str, Sequence[int]]
    ) -> Iterator[ClaimCandidate]:
        is_read = False
        for thing, at in things.items():
            holders = self._facts.holders_of(thing)
            if not holders:
                continue
            is_read, expected = True, self._holder_of(thing)
            for person, spots in people.items():
                if person not in holders:
                    signs = self._held(read, thing, person, at, spots)
                    if len(holders) > 1:
                        signs.put("moved")
                    if holders & people.keys():
                        signs.put("holderhere")
                    yield ClaimCandidate("possession", expected, signs)
            signs = read.begin("possession")
            signs.put("L:")
            for clause in read.sentence.clauses:
                if any(thing in one.keys("thing") for one in clause.groups()):
                    marks = self._manner(clause)
                    signs.put(f"L:{marks}:{clause.base}")
                    if thing in clause.subjects("thing"):
                        signs.put(f"L:subject{marks}")
                        for word, _ in clause.phrases:
                            signs.put(f"L:subject{marks}:{word}")
            yield ClaimCandidate("possession", expected, signs)
        if not is_read and "possession" in read.expected:
            yield ClaimCandidate("possession", read.expected["possession"], read.begin("possession"))

    def _held(
        self, read: _SentenceReading, thing: str, person: str, at: Sequence[int], spots: Sequence[int]
    ) -> _ClaimSigns:
        """Return the signs that a person has a thing."""
        signs = read.begin("possession")
        who = "Y:" if person == self._you else "E:"
        signs.put(who)
        signs.put(f"{who}gap:{read.gap(at, spots)}:{min(spots) < at[0]}")
        read.add_classes(signs, who, "HOLDS")
        bodies = words_of("words", "holder")
        for clause in read.sentence.clauses:
            marks = self._manner(clause) + ("i" if clause.is_infinitive else "")
            is_object = any(thing in one.keys("thing") for one in clause.objects)
            is_about = is_object or thing in clause.subjects("thing")
            if person in clause.subjects() and is_object:
                self._put_verb(signs, f"{who}so{marks}", clause)
            if person in clause.subjects() and any(
                word == "with" and thing in group.keys("thing") for word, group in clause.phrases
            ):
                signs.put(f"{who}with{marks}")
            for word, group in clause.where if is_about else ():
                if person in group.owned_by() and group.word in bodies:
                    signs.put(f"{who}body{marks}")
                    signs.put(f"{who}body{marks}:{word}")
                if person in group.keys("entity"):
                    signs.put(f"{who}in{marks}:{word}")
                    signs.put(f"{who}in{marks}:{word}:{clause.base}")
            if is_object and any(person in one.keys("entity") for one in clause.objects):
                signs.put(f"{who}give{marks}")
        for _, group in read.sentence.groups:
            if thing in group.keys("thing"):
                owners = group.owned_by()
                if owners:
                    signs.put(f"{who}{'own' if person in owners else 'ownother'}")
                if group.tokens[0].word in {"a", "an", "no", "another"}:
                    signs.put(f"{who}det:{group.tokens[0].word}")
        return signs

    # --- endings and actions ---

    def _weigh_ending(self, read: _SentenceReading) -> ClaimCandidate:
        is_over = self._facts.status.kind != "ongoing"
        now = "END:" if is_over else "ON:"
        best = (0, 0, 0)
        for told, own, concepts in self._ends:
            found = len(read.lemmas & own), len(read.lemmas & told), len(read.concepts & concepts)
            best = max(best, found, key=lambda one: (one[0], one[1] + one[2]))
        signs = read.begin("ending")
        signs.put(now)
        read.add_phrases(signs, now, "FINAL SAVED RUIN NONE")
        for name, count in zip(("own", "word", "concept"), best, strict=True):
            if count:
                signs.put(f"{now}{name}", min(count, 3))
        if best[2]:
            read.add_phrases(signs, f"{now}concept&", "FINAL SAVED RUIN")
        if best[0] or best[1]:
            read.add_phrases(signs, f"{now}word&", "FINAL SAVED RUIN")
        read.add_classes(signs, now, "ENDS UNDONE")
        signs.put(f"{now}ends", min(len(read.words & _classes()["ENDS"]), 5))
        if best[0] and read.words & _classes()["UNDONE"]:
            signs.put(f"{now}own&UNDONE")
        for word in read.words & _classes()["WHOLE"]:
            signs.put(f"{now}f:{word}")
        if any(self._you in clause.subjects() for clause in read.sentence.clauses):
            signs.put(f"{now}you")
        expected = "the run has ended" if is_over else "the run has not ended"
        return ClaimCandidate("ending", read.expected.get("ending", expected), signs)

    def _weigh_actions(self, read: _SentenceReading) -> Iterator[ClaimCandidate]:
        is_read = False
        for action in self._actions:
            counts = {
                "name": len(read.lemmas & action.name),
                "description": len(read.lemmas & action.description),
                "verb": bool(read.lemmas & action.verb),
                "verbs": bool(read.lemmas & action.verbs),
                "verbconcept": bool(read.concepts & action.verb_concepts),
                "nounconcept": len(read.concepts & action.noun_concepts),
            }
            if not any(counts.values()):
                continue
            is_read = True
            counts |= {
                "results": bool(read.lemmas & action.results),
                "states": bool(read.lemmas & action.states),
                "own": len(read.lemmas & action.own),
            }
            signs = read.begin("action")
            groups = [f"{action.result}:"]
            groups += ["undone:"] if action.result != "done" else []
            groups += ["untouched:"] if action.result in {"untried", "refused"} else []
            for now in groups:
                self._put_action(read, signs, now, action, counts)
            yield ClaimCandidate("action", action.expected, signs)
        if not is_read and "action" in read.expected:
            yield ClaimCandidate("action", read.expected["action"], read.begin("action"))

    def _put_action(
        self,
        read: _SentenceReading,
        signs: _ClaimSigns,
        now: str,
        action: _WeighedAction,
        counts: Mapping[str, int],
    ) -> None:
        signs.put(now)
        for name, count in counts.items():
            if count:
                signs.put(f"{now}{name}", min(int(count), 3))
        is_verb = counts["verb"] or counts["verbs"]
        has_noun = counts["name"] or counts["own"]
        is_done = counts["verbconcept"] or counts["verbs"]
        is_about = counts["nounconcept"] or counts["name"] or counts["description"]
        if is_verb and counts["name"]:
            signs.put(f"{now}verb&name")
        if counts["name"] and counts["name"] == len(action.name):
            signs.put(f"{now}allname")
        if counts["verbconcept"] and counts["nounconcept"]:
            signs.put(f"{now}concepts")
        if not counts["name"] and (counts["verbconcept"] or counts["nounconcept"]):
            signs.put(f"{now}onlyconcept")
        read.add_phrases(signs, now, "OMITTED FAILED DONE")
        read.add_classes(signs, now, "GOOD BAD OMITS")
        if has_noun:
            read.add_phrases(signs, f"{now}noun&", "OMITTED FAILED DONE")
            for flag in read.flags:
                signs.put(f"{now}noun&{flag}")
            for name in ("GOOD", "BAD", "OMITS"):
                if read.words & _classes()[name]:
                    signs.put(f"{now}noun&{name}")
        if is_done and is_about:
            read.add_phrases(signs, f"{now}about&", "OMITTED FAILED DONE")
        for clause in read.sentence.clauses:
            marks = self._manner(clause) + ("i" if clause.is_infinitive else "")
            marks += "Y" if self._you in clause.subjects() else "O"
            heads = {
                _lemma(part) for one in clause.groups() for token in one.tokens for part in token.word.split()
            }
            if clause.base in action.verb | action.verbs:
                signs.put(f"{now}does{marks}")
                if heads & action.name:
                    signs.put(f"{now}doesit{marks}")
            if heads & (action.name | action.own):
                signs.put(f"{now}has{marks}")
                for sense in clause.senses:
                    signs.put(f"{now}has{marks}#{sense}")

    # --- amounts ---

    def _weigh_numbers(self, read: _SentenceReading) -> Iterator[ClaimCandidate]:
        """Weigh the numbers: the value now, the value before, the difference, or none of these."""
        amounts = self._amounts
        named = {key for token in read.tokens for kind, key in token.refs if kind in _AMOUNT_KINDS}
        numbers = {token.number for token in read.tokens if token.number is not None}
        values = {one.now for one in amounts.values()}
        known = {number for one in amounts.values() for number in (one.before, one.now, abs(one.step))}
        for at, token in enumerate(read.tokens):
            if token.number is None or token.number == 1 or not amounts:
                continue
            number = token.number
            follow = read.tokens[at + 1] if at + 1 < len(read.tokens) else None
            before = read.tokens[at - 1] if at else None
            near = read.tokens[max(0, at - 1) : at + 5]
            linked = {key for one in near for kind, key in one.refs if kind in _COUNTED} & amounts.keys()
            pool = [amounts[path] for path in linked or (named & amounts.keys()) or amounts]
            kind = self._kind_of_number(read.tokens[at + 1 : at + 4], follow, named)
            state = (
                "now"
                if any(is_rounded(number, one.now) for one in pool)
                else "before"
                if any(is_rounded(number, one.before) for one in pool)
                else "step"
                if any(number == abs(one.step) for one in pool)
                else "other"
                if number in known
                else "none"
            )
            signs = read.begin("amount")
            signs.put(f"{state}:")
            signs.put(f"{kind}:{state}:")
            if before is not None and is_function_word(before.word):
                signs.put(f"{state}:before:{before.word}")
                signs.put(f"{kind}:{state}:before:{before.word}")
            if follow is not None and is_function_word(follow.word):
                signs.put(f"{state}:after:{follow.word}")
            if follow is not None and follow.word in words_of("levels", "measures"):
                signs.put(f"{state}:measure")
            size = next((limit for limit in (2, 4, 9, 20) if number <= limit), 99)
            signs.put(f"{state}:size:{size}")
            read.add_classes(signs, f"{kind}:{state}:", "EARLIER REMAINS")
            read.add_classes(signs, f"{state}:", "EARLIER REMAINS")
            if len(numbers) > 1:
                signs.put(f"{state}:many")
            if numbers & values:
                signs.put(f"{state}:hasnow")
            paths = [one.path for one in pool] if linked or named & amounts.keys() else []
            yield ClaimCandidate("amount", self._expected(read, paths), signs)

    def _kind_of_number(
        self, following: Sequence[ProseWord], follow: ProseWord | None, named: Collection[str]
    ) -> str:
        if any(kind in {"quantity", "unit"} for one in following for kind, _ in one.refs):
            return "named"
        if follow is not None and follow.tag == "noun":
            concepts = _concepts_of([_lemma(follow.word)])
            if any(concepts & one.concepts for one in self._amounts.values()):
                return "concept"
        if follow is not None and follow.tag in {"noun", "name", "adj", "num", "own"}:
            return "noun"
        return "about" if self._amounts.keys() & set(named) else "bare"

    def _expected(self, read: _SentenceReading, paths: Sequence[str]) -> str:
        if "amount" in read.expected:
            return read.expected["amount"]
        told = (self._expected_amounts[path] for path in dict.fromkeys(paths or self._amounts))
        return "; ".join(told)

    def _weigh_levels(self, read: _SentenceReading) -> Iterator[ClaimCandidate]:
        """Weigh words for more, less, the same and nothing against the change of each amount."""
        named = {key for token in read.tokens for kind, key in token.refs if kind in _AMOUNT_KINDS}
        is_read = False
        more, less = (len(read.words & _classes()[name]) for name in ("MORE", "LESS"))
        for amount in self._amounts.values():
            is_named, is_near = amount.path in named, bool(read.concepts & amount.concepts)
            ups = sum(len(read.words & topic.more) for topic in amount.topics)
            downs = sum(len(read.words & topic.less) for topic in amount.topics)
            bands = {word for band in amount.bands for word in band.split()}
            if not (is_named or is_near or ups or downs or (read.lemmas | read.words) & bands):
                continue
            is_read = True
            signs = read.begin("amount")
            sign = "+" if amount.step > 0 else "-" if amount.step < 0 else "0"
            now = f"L{sign}:"
            is_topic = any(read.words & topic.names for topic in amount.topics)
            link = "named:" if is_named or is_topic else "near:" if is_near else "far:"
            signs.put(f"{now}{link}")
            if ups or downs:
                way = "up" if ups > downs else "down" if downs > ups else "both"
                size = len(amount.bands) - 1
                half = "low" if amount.band * 2 < size else "high" if amount.band * 2 > size else "middle"
                signs.put(f"{now}topic:{way}", min(2, abs(ups - downs)) or 1)
                signs.put(f"{now}{link}topic:{way}", min(2, abs(ups - downs)) or 1)
                signs.put(f"{half if amount.bands else 'no'}:{link}topic:{way}")
                if "than" in read.words:
                    signs.put(f"{now}than:{way}")
                if read.words & words("more less worse better never ever longer so too"):
                    signs.put(f"{now}compared:{way}")
            read.add_phrases(signs, f"{now}{link}", "NONE UNUSED GAINED")
            read.add_phrases(signs, f"{'some' if amount.now > 0 else 'none'}:{link}", "NONE")
            read.add_phrases(signs, f"{'moved' if amount.step else 'same'}:{link}", "UNUSED")
            mark = f"{now}{'band' if amount.bands else 'count'}{'' if is_named else '?'}:"
            for before in (now, mark):
                read.add_classes(signs, before, "MORE LESS SAME NOTHING EARLIER")
                if more != less:
                    signs.put(f"{before}{'more' if more > less else 'less'}")
                self._put_clauses(read, signs, before, amount.path)
            for place, band in enumerate(amount.bands):
                if set(band.split()) <= read.words:
                    gap = place - amount.band
                    signs.put(f"band:{max(-2, min(2, gap))}")
                    signs.put(f"band:{link}{(gap > 0) - (gap < 0)}")
            if amount.now > 0 and "no" in read.words:
                signs.put("some:no")
            yield ClaimCandidate("amount", self._expected(read, [amount.path]), signs)
        if not is_read and "amount" in read.expected:
            yield ClaimCandidate("amount", read.expected["amount"], read.begin("amount"))

    def _put_clauses(self, read: _SentenceReading, signs: _ClaimSigns, before: str, path: str) -> None:
        for clause in read.sentence.clauses:
            marks = self._manner(clause)[:1].replace("p", "").replace("t", "")
            if clause.subject is not None and {("quantity", path), ("bearer", path)} & set(
                clause.subject.head.refs
            ):
                signs.put(f"{before}s{marks}")
                signs.put(f"{before}s{marks}:{clause.base}")
                for name in ("rise", "fall", "spend", "gain", "remain", "empty"):
                    if clause.is_a(name):
                        signs.put(f"{before}s{marks}={name}")
            for group in clause.objects:
                if ("quantity", path) in group.head.refs:
                    signs.put(f"{before}o{marks}:{clause.base}")
                    for name in ("spend", "gain", "contain", "lower", "raise", "destroy"):
                        if clause.is_a(name):
                            signs.put(f"{before}o{marks}={name}")


_AMOUNT_KINDS = words("quantity unit bearer")
_COUNTED = words("quantity unit")
