"""The role and the goals of the player, from the clauses of a tagged text."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from peripety.author.text_analysis.phrases import Chunk, Goal, Person, find_chunk_at
from peripety.author.text_analysis.words import find_classes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from peripety.author.text_analysis.phrases import Phrase
    from peripety.author.text_analysis.words import Grammar, Word

_DUTY, _WISH, _ORDER, _ALSO, _GERUND, _ASKED, _ACT, _MAY = 3.0, 3.0, 3.0, 2.0, 2.0, 1.5, 1.0, 0.5
TOLD = _ACT
"""The trust in what the player does without a duty, a wish or an order."""
_OF_OTHERS, _WISHED, _DOING = 2.5, 2.0, 1.9
"""The trust in a duty whose subject is not the player, in a wish, and in what a person is doing."""
_PURSUED = (
    "artifact",
    "possession",
    "communication",
    "object",
    "substance",
    "food",
    "plant",
    "animal",
    "person",
)
_NEEDED = ("artifact", "possession", "object", "substance", "food", "plant", "communication")
_LOST = ("artifact", "possession", "animal", "communication")
_HAD = ("artifact", "possession", "communication", "object")
"""Classes of the things that "it" may mean."""
_MOST_WORDS = 18
_SPANISH_PLURALS = {"los", "las", "unos", "unas", "somos"}
_SPANISH_PRONOUNS = ("lo", "la", "los", "las", "le", "les")
_PREDICATES = ("verb", "be", "have", "modal")
_NEAR = 4
_ASKING = ("verb", "be", "have", "modal", "noun", "name", "det", "poss", "adj")
"""Tags of a word that continues a question after "who" or "which"."""
_TASK = 2
"""The first place of a noun after "is my"."""
_PARTICLE = 2
"""Number of words of a verb with a particle."""
_NO_ROLE = ("time", "attribute", "state", "feeling", "quantity", "location", "motive", "relation")


@dataclass(frozen=True, slots=True)
class Aim:
    """Verb that may be the goal of the player.

    Attributes:
        place: the place of the verb.
        end: the place after its clause.
        trust: how surely the text names it as the goal; 3 is an explicit duty, wish or order.
        goal: the goal.
        tail: the lemmas after the verb, to the end of its clause.
        verb: the lemma of the verb; empty for what must not happen.
        usual: the pattern if no verb shows one.
        prevents: True if an act of persons or a planned event is to be prevented.
    """

    place: int
    end: int
    trust: float
    goal: Goal
    tail: tuple[str, ...]
    verb: str = ""
    usual: str = ""
    prevents: bool = False


def _find_base(verb: Word) -> str:
    """Return the base form of a verb, with a Spanish pronoun of a thing or a third person at its end."""
    text = verb.text.casefold()
    has_pronoun = verb.low == verb.lemma and text.removeprefix(verb.lemma) in _SPANISH_PRONOUNS
    return text if has_pronoun else verb.lemma


def add_ing(verb: str) -> str:
    """Return the English gerund of a verb."""
    if verb.endswith("ie"):
        return f"{verb[:-2]}ying"
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")) and len(verb) > len("be"):
        return f"{verb[:-1]}ing"
    is_short = re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", verb) is not None
    return f"{verb}{verb[-1]}ing" if is_short else f"{verb}ing"


def _add_s(verb: str) -> str:
    """Return the English third person of a verb."""
    if verb == "have":
        return "has"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "x", "z", "ch", "sh", "o")) else f"{verb}s"


def _without_gerund(phrase: Phrase) -> Phrase:
    """Return a thing without its gerund: "the pump" of "keep the pump running"."""
    *words, last = phrase.text.split()
    is_kept = bool(words) and last.endswith("ing") and phrase.head.casefold() == last.casefold()
    return replace(phrase, text=" ".join(words), head=words[-1]) if is_kept else phrase


class ClauseReader:
    """Search for the role and the goals in one text."""

    def __init__(self, words: Sequence[Word], chunks: Sequence[Chunk], grammar: Grammar) -> None:
        self._words, self._chunks, self._grammar = words, chunks, grammar
        self._no_object = grammar.words("times", "before") | grammar.words("people", "who")
        self.role_chunk: Chunk | None = None
        self.role: Person | None = None
        self._find_role()

    def _at(self, place: int) -> Word | None:
        return self._words[place] if 0 <= place < len(self._words) else None

    def _find_role(self) -> None:
        for row in sorted(self._grammar.rows("roles").get("play", ()), key=lambda row: -len(row)):
            for place in range(len(self._words)):
                if [word.low for word in self._words[place : place + len(row)]] == list(
                    row
                ) and self._take_role(place, row):
                    return
        owning = self._grammar.pairs("roles", "owning")
        for place, word in enumerate(self._words[:-1]):
            following = self._words[place + 1]
            if word.tag == "player" and following.tag in ("verb", "noun") and following.lemma in owning:
                self.role = Person("", owning[following.lemma])
                return
        opening = self._chunks[0] if self._chunks else None
        if self._grammar.code == "en" and opening is not None and self._is_opening_role(opening):
            self.set_role(opening)

    def _is_opening_role(self, chunk: Chunk) -> bool:
        """Return True for a person who opens a text about no one else as a fragment: "lone trucker, ..."."""
        own, tables = self._grammar.pairs("perspective", "words"), self._grammar.words
        if chunk.start or chunk.names or chunk.is_plural or not chunk.is_first_class("person"):
            return False
        if any(word.tag == "player" or (word.tag == "poss" and word.low in own) for word in self._words):
            return False
        states = tables("sides", "dead") | tables("goals", "states") | tables("things", "bad")
        unfit = tables("people", "vague") | tables("sides", "dependents")
        if chunk.head.lemma in unfit or any(word.low in states for word in chunk.adjectives):
            return False
        ahead = [word.low for word in self._words[chunk.end : chunk.end + 3]]
        relative = ahead[:1] != [] and ahead[0] in tables("people", "who") | {"whose"}
        is_led = relative or (chunk.after is not None and chunk.after.tag == "prep")
        if chunk.definite and not (is_led and self._words[0].low in tables("sides", "anyone")):
            return False
        is_other = chunk.is_first_class("person.foe") or chunk.head.lemma in tables("people", "others")
        at_place = ahead[:1] != [] and ahead[0] in tables("things", "place") and ahead != ["on", "the", "run"]
        return not (is_other and at_place) and (relative or not self._has_predicate())

    def _has_predicate(self, ends: frozenset[str] = frozenset()) -> bool:
        """Return True if the first clause, up to some words, has a verb that is not a participle."""
        clause = takewhile(lambda word: word.tag not in ("mark", "end") and word.low not in ends, self._words)
        return any(
            word.tag in _PREDICATES and not (word.tag == "verb" and word.low.endswith(("ed", "ing")))
            for word in clause
        )

    def _take_role(self, place: int, row: Sequence[str]) -> bool:
        if len(row) == 1 and not self._words[place].first:
            return False
        chunk = next((chunk for chunk in self._chunks if chunk.start == place + len(row)), None)
        while chunk is not None and self._grammar.code == "zh" and self._owns(chunk):
            chunk = next((other for other in self._chunks if other.start > chunk.start), None)
        if chunk is not None and self._grammar.code == "en":
            # "You are the alpha's beta."
            chunk = self._find_owned(chunk)
        vague = self._grammar.words("people", "vague")
        if (
            chunk is None
            or chunk.sense.startswith(_NO_ROLE)
            or chunk.head.lemma in vague
            or not self._may_be_role(chunk, row)
        ):
            return False
        personal = self._grammar.words("goals", "personal")
        addressed = any(word.low in personal for word in self._words[chunk.end : chunk.end + _NEAR])
        is_named = self._grammar.code == "en" and bool(chunk.names) and not chunk.nouns
        person = chunk.has_class("person", "group", "animal") or addressed or is_named
        person = person or self._grammar.code == "zh"
        if row[-1] == "play" and not person:
            return False
        if not person and (chunk.definite != "det" or len(row) == 1):
            return False
        self.set_role(chunk)
        return True

    def _may_be_role(self, chunk: Chunk, row: Sequence[str]) -> bool:
        if chunk.definite == "num":
            return self._grammar.code == "zh" or chunk.is_first_class("person")
        return chunk.definite != "poss" or (len(row) > 1 and chunk.is_first_class("person"))

    def _owns(self, chunk: Chunk) -> bool:
        after = self._at(chunk.end)
        return after is not None and after.tag == "owner"

    def set_role(self, chunk: Chunk) -> None:
        """Make a phrase the role of the player."""
        self.role_chunk = chunk
        group = chunk.is_first_class("group")
        text = " ".join([*(word.low for word in chunk.nouns[:-1]), chunk.head.lemma]) if chunk.nouns else ""
        if self._grammar.code != "en":
            gap = "" if self._grammar.code == "zh" else " "
            head = chunk.head.lemma if self._is_spanish_plural(chunk) else chunk.head.text
            text = gap.join([*(word.text for word in chunk.nouns[:-1]), head]) if chunk.nouns else ""
        if group and chunk.of is not None and chunk.of.nouns:
            text = f"{text} of {chunk.of.head.low}"
        self.role = Person(
            chunk.name,
            text,
            is_group=group or chunk.is_plural,
            count=int(chunk.count or 1),
            is_plural=chunk.is_plural if self._grammar.code != "es" else self._is_spanish_plural(chunk),
        )

    def _is_spanish_plural(self, chunk: Chunk) -> bool:
        """Return True for a Spanish plural; a compound noun may end with "s" in the singular."""
        before = {self._words[chunk.start].low, self._words[max(chunk.start - 1, 0)].low}
        return self._grammar.code == "es" and chunk.is_plural and not before.isdisjoint(_SPANISH_PLURALS)

    def find_aims(self) -> list[Aim]:
        """Return all verbs that may be the goal, in order."""
        aims: list[Aim] = []
        for place, word in enumerate(self._words):
            dull = word.lemma in self._grammar.words("goals", "dull") and not (
                self._asks(place) or self._has_particle(place) or self._places(place)
            )
            if word.tag != "verb" or dull:
                continue
            trust = 0 if self._is_cry(place) else self._trust(place, aims)
            if trust and not self._is_reported(place) and not self._is_condition(place):
                aims.append(self._build_aim(place, trust))
        return aims

    def _is_cry(self, place: int) -> bool:
        """Return True for a verb of helping without an object: "..., help!"."""
        after = self._at(place + 1)
        is_last = after is None or after.tag in ("end", "mark")
        return is_last and self._words[place].lemma in self._grammar.words("goals", "helps")

    def _is_reported(self, place: int) -> bool:
        """Return True for what another person thinks that the player should do."""
        reports = self._grammar.words("goals", "reports")
        for at in range(place - 1, max(self._find_sentence(place), place - _MOST_WORDS) - 1, -1):
            word = self._words[at]
            if word.tag != "verb" or word.lemma not in reports:
                continue
            left = self._skip_left(at - 1)
            subject = find_chunk_at(self._chunks, left) if left >= 0 else None
            said = {each.tag for each in self._words[at + 1 : place]}
            is_other = subject is not None and subject is not self.role_chunk and not subject.is_after("prep")
            return is_other and "conj" not in said and "verb" not in said and bool({"player", "modal"} & said)
        return False

    def _is_condition(self, place: int) -> bool:
        """Return True for what may happen: "they will act if we fail"."""
        conditions = self._grammar.words("goals", "conditions")
        clause = self._words[self._find_clause(place) : place]
        last = next((at for at in range(len(clause) - 1, -1, -1) if clause[at].low in conditions), -1)
        return last >= 0 and not any(word.tag == "verb" for word in clause[last + 1 :])

    def _has_particle(self, place: int) -> bool:
        """Return True if a verb and the word after it are a verb of goals, such as "put out"."""
        after = self._at(place + 1)
        if after is None or after.low not in self._grammar.words("goals", "particles"):
            return False
        rows = (*self._grammar.rows("patterns").values(), self._grammar.rows("goals").get("counters", ()))
        pair = (self._words[place].lemma, after.low)
        return any(row[:2] == pair for each in rows for row in each)

    def _places(self, place: int) -> bool:
        """Return True for a verb of placing with a pronoun as its object: "put it there"."""
        after = self._at(place + 1)
        is_placing = self._words[place].lemma in self._grammar.words("goals", "placing")
        return is_placing and after is not None and after.tag == "pron"

    def _asks(self, place: int) -> bool:
        """Return True if a question is the object of a verb: "know who ..."."""
        after = self._at(place + 1)
        return after is not None and (after.tag == "wh" or after.low in self._grammar.words("people", "who"))

    def _trust(self, place: int, aims: Sequence[Aim]) -> float:
        """Return how surely a verb is the goal; 0 for any other verb."""
        word = self._words[place]
        if word.low != word.lemma:
            if (
                self._grammar.code == "en"
                and word.lemma in self._grammar.goal_verbs
                and self._is_own_act(place)
            ):
                return _WISH - 0.5
            return _GERUND if place == 0 and word.low.endswith("ing") else 0
        left = self._skip_left(place - 1)
        before = self._at(left)
        if word.first or before is None:
            return _ORDER
        if self._grammar.verbs_last:
            return self._trust_last(place)
        if self._grammar.code == "zh":
            return self._trust_in_clause(place)
        return self._trust_after(before, left, place, aims)

    def _is_own_act(self, place: int) -> bool:
        """Return True if the subject of a sentence is a group of the player: "my team ..."."""
        chunk = find_chunk_at(self._chunks, self._find_sentence(place))
        if chunk is None or chunk.belongs != "player" or not chunk.has_class("group") or chunk.end > place:
            return False
        between = self._words[chunk.end : place]
        of = self._grammar.words("things", "of")
        is_counted = all(word.tag in ("num", "adv") or word.low in of for word in between)
        return is_counted and self._words[place].low == f"{self._words[place].lemma}s"

    def _trust_after(self, before: Word, left: int, place: int, aims: Sequence[Aim]) -> float:
        """Return the trust in a verb by the word before it."""
        if before.low in self._grammar.words("goals", "openers"):
            return self._trust_after_opener(left, place, aims)
        if before.low in self._grammar.words("goals", "to"):
            return _DUTY if self._words[left - 1].low in self._grammar.words("goals", "personal") else 0
        trusts: dict[str, Callable[[int], float]] = {
            "to": self._trust_infinitive,
            "modal": self._trust_after_modal,
            "player": self._trust_after_player,
        }
        if before.tag in trusts:
            return trusts[before.tag](left)
        return _ORDER - 0.5 if before.tag == "mark" else 0

    def _trust_last(self, place: int) -> float:
        """Return the trust in an infinitive at the end of a clause."""
        after = self._at(place + 1)
        if after is not None and after.tag not in ("mark", "end", "conj"):
            return _DUTY - 0.5 if after.tag == "modal" and self._is_task_of_role(place) else 0
        start = self._find_clause(place)
        clause = self._words[start:place]
        modal = next((word for word in clause if word.tag == "modal"), None)
        if modal is None:
            loose = not any(word.tag in ("verb", "be", "have", "to", "conj") for word in clause)
            return _ORDER - 0.5 if loose and self._words[place].lemma in self._grammar.goal_verbs else 0
        sentence = self._words[self._find_sentence(place) : place]
        personal = modal.low in self._grammar.words("goals", "personal")
        if (
            not personal
            and not any(word.tag == "player" for word in sentence)
            and not self._owns_subject(modal)
        ):
            return 0
        return _MAY if modal.low in self._grammar.words("goals", "weak") else _DUTY

    def _is_task_of_role(self, place: int) -> bool:
        """Return True for a relative clause about the player: "I lead a thing that has to act"."""
        start = self._find_clause(place)
        opens = self._words[start].low in self._grammar.words("people", "who")
        role, ends = self.role_chunk, self._at(place + 2)
        if not opens or role is None or (ends is not None and ends.tag not in ("mark", "end", "conj")):
            return False
        host = next((chunk for chunk in self._chunks if chunk.end == start - 1), None)
        return host is role or (host is not None and role.end in (host.start, host.start - 1))

    def _owns_subject(self, modal: Word) -> bool:
        """Return True for a duty of a thing of the player at the start of a sentence: "my ... must"."""
        end = self._words.index(modal)
        chunk = find_chunk_at(self._chunks, self._find_sentence(end))
        is_duty = modal.lemma not in self._grammar.words("goals", "wishes")
        is_thing = chunk is not None and chunk.definite == "poss" and not chunk.has_class("person")
        return is_thing and is_duty and chunk is not None and chunk.end == end

    def _trust_in_clause(self, place: int) -> float:
        """Return the trust in a verb that other words can part from its modal or its subject."""
        start = self._find_clause(place)
        clause = self._words[start:place]
        tags = [word.tag for word in clause]
        if "neg" in tags or "verb" in tags or "be" in tags or "pron" in tags:
            return 0
        if "player" not in tags and self._has_own_subject(start, place):
            return 0
        if "modal" in tags:
            weak = clause[tags.index("modal")].low in self._grammar.words("goals", "weak")
            return _MAY if weak else _DUTY
        if "player" in tags:
            return _ACT
        led = [chunk for chunk in self._chunks if start <= chunk.start < place]
        inside = all(
            chunk.before is not None and chunk.before.tag in ("prep", "owner", "conj") for chunk in led
        )
        return _ORDER - 0.5 if inside and self._words[place].lemma in self._grammar.goal_verbs else 0

    def _has_own_subject(self, start: int, place: int) -> bool:
        """Return True if a clause begins with a person or a group other than the player."""
        first = next((at for at in range(start, place) if self._words[at].tag not in ("adv", "conj")), place)
        chunk = find_chunk_at(self._chunks, first)
        return (
            chunk is not None
            and chunk is not self.role_chunk
            and chunk.start == first
            and chunk.has_class("person", "group.people")
        )

    def _find_clause(self, place: int) -> int:
        """Return the place of the first word of a clause."""
        while place and self._words[place - 1].tag not in ("mark", "end"):
            place -= 1
        return place

    def _find_sentence(self, place: int) -> int:
        while place and self._words[place - 1].tag != "end":
            place -= 1
        return place

    def _trust_after_opener(self, left: int, place: int, aims: Sequence[Aim]) -> float:
        opens = self._words[left].first or (left > 0 and self._words[left - 1].tag in ("mark", "end"))
        also = bool(aims) and not self._ends_between(aims[-1].place, place)
        return _ORDER if opens else _ALSO if also else 0

    def _trust_after_modal(self, left: int) -> float:
        if self._words[left].low in self._grammar.words("goals", "unable"):
            return 0
        weak = self._words[left].low in self._grammar.words("goals", "weak")
        personal = self._words[left].low in self._grammar.words("goals", "personal")
        return (_MAY if weak else _DUTY) if personal or self._is_player(left - 1) else 0

    def _trust_after_player(self, left: int) -> float:
        """Return the trust in a verb after a pronoun of the player: "let me act", "I act"."""
        let, verb = self._at(left - 1), self._words[left + 1]
        if let is not None and let.lemma == "let":
            return _ALSO
        if let is not None and let.tag == "modal" and self._grammar.code == "en":
            # A question: "should I act?"
            return _ASKED
        owning = verb.lemma in self._grammar.pairs("roles", "owning")
        return 0 if owning or self._words[left].low in ("us", "me") else _ACT

    def _skip_left(self, place: int) -> int:
        while (word := self._at(place)) is not None and word.tag == "adv" and not word.first:
            place -= 1
        return place

    def _ends_between(self, first: int, last: int) -> bool:
        return any(word.tag == "end" for word in self._words[first:last])

    def _trust_infinitive(self, to: int) -> float:
        """Return the trust in an infinitive by the words before its mark."""
        left = self._skip_left(to - 1)
        word = self._at(left)
        if word is None:
            return _ORDER
        duty = self._grammar.words("goals", "duty")
        if word.first and word.tag not in ("verb", "have"):
            return 0
        if word.tag in ("verb", "have", "adj", "noun") and (word.lemma in duty or word.tag == "have"):
            return _DUTY if self._is_player(left - 1) else 0
        if word.tag == "be":
            before = self._at(left - 1)
            purpose = self._grammar.words("goals", "purpose")
            return _DUTY if before is not None and before.lemma in purpose else self._trust_after_be(left)
        return self._trust_led(left, word, duty)

    def _trust_after_be(self, _place: int) -> float:
        """Return the trust in an infinitive after "be": none, but in English."""
        return 0

    def _trust_led(self, left: int, word: Word, duty: frozenset[str]) -> float:
        """Return the trust in an infinitive after a time that the player has, or after a person to act."""
        chunk = find_chunk_at(self._chunks, left)
        while chunk is not None and chunk.is_after("prep") and not self._is_time(chunk):
            # The place of the time: "an evening alone in the house to ...".
            before = find_chunk_at(self._chunks, self._skip_left(chunk.start - 2))
            if before is None:
                break
            chunk = before
        if (
            chunk is not None
            and chunk.before is not None
            and chunk.before.tag == "have"
            and self._is_time(chunk)
        ):
            return _DUTY if self._is_player(chunk.start - 2) else 0
        if chunk is not None and self._is_time(chunk) and self._opens_time(chunk):
            return _DUTY
        controller = chunk.start - 1 if chunk is not None else left - 1
        verb = self._at(controller)
        led = (
            verb is not None and verb.lemma in duty and (chunk is not None or word.tag in ("player", "pron"))
        )
        if chunk is not None and verb is not None and verb.tag == "have" and self._grammar.code == "en":
            # "I have an alpha to cross" is about the alpha, "we have them to guide us" about the persons.
            led = led and chunk.has_class("person", "group")
        return _WISH - 0.5 if led and self._is_player(controller - 1) else 0

    def _opens_time(self, chunk: Chunk) -> bool:
        """Return True for a time at the start of a sentence, or after "have until"."""
        near = self._words[max(chunk.start - _NEAR - 1, 0) : chunk.start]
        until = self._grammar.words("times", "awaiting")
        had = any(word.tag == "have" and after.low in until for word, after in pairwise(near))
        return self._words[chunk.start].first or had

    def _is_time(self, chunk: Chunk) -> bool:
        times = self._grammar.pairs("times", "units").keys() | self._grammar.pairs("times", "points").keys()
        return chunk.head.low in times or chunk.is_first_class("time")

    def _is_player(self, place: int) -> bool:
        """Return True if the subject that ends at a place is the player, or may become it."""
        place = self._skip_left(place)
        word = self._at(place)
        while word is not None and word.tag in ("modal", "be", "neg", "have") and not word.first:
            if word.tag == "neg":
                return False
            place = self._skip_left(place - 1)
            word = self._at(place)
        if word is None or word.tag == "player":
            return True
        if word.low in ("who", "that") and place:
            return self._is_role_before(place - 1)
        if (
            word.tag == "num"
            and place > 1
            and self._words[place - 1].low in self._grammar.words("things", "of")
        ):
            place -= 2
        chunk = find_chunk_at(self._chunks, place)
        while chunk is not None and chunk.is_after("prep"):
            longer = find_chunk_at(self._chunks, chunk.start - 2)
            if longer is None:
                break
            chunk = longer
        return word.tag in ("end", "mark", "conj") if chunk is None else self._is_player_chunk(chunk)

    def _is_player_chunk(self, chunk: Chunk) -> bool:
        """Return True for the role of the player; the first subject of a text without a role becomes it."""
        if chunk is self.role_chunk:
            return True
        if self._speaks_of_player:
            return False
        opens = self._words[chunk.start].first
        fits = (
            chunk.has_class("person", "group.people", "animal")
            and chunk.definite != "poss"
            and not chunk.names
        )
        if self.role is None and opens and fits:
            self.set_role(chunk)
        return self.role is None and opens and not chunk.names if not fits else chunk is self.role_chunk

    @cached_property
    def _speaks_of_player(self) -> bool:
        """True if a pronoun of the player is the subject of a verb somewhere."""
        return any(
            word.tag == "player" and word.low not in ("us", "me") and after.tag in _PREDICATES
            for word, after in pairwise(self._words)
        )

    def _is_role_before(self, place: int) -> bool:
        """Return True if the role of the player is the last person before a place in the same sentence."""
        for chunk in reversed([chunk for chunk in self._chunks if chunk.start <= place]):
            if chunk is self.role_chunk:
                return True
            if chunk.has_class("person", "group.people") or self._ends_between(chunk.start, place):
                return False
        return False

    def _build_aim(self, place: int, trust: float) -> Aim:
        word = self._words[place]
        if self._grammar.verbs_last and not word.first:
            return self._build_last(place, trust)
        end = self._find_end(place)
        tail = tuple(each.lemma or each.low for each in self._words[place + 1 : end] if each.tag != "mark")
        low = [each.low for each in self._words[place + 1 : end]]
        particle = next((each for each in low[:1] if each in self._grammar.words("goals", "particles")), "")
        target = self._find_object(place, end, particle)
        if word.lemma in self._grammar.words("goals", "preventing"):
            target = self._find_kept_safe(target, end)
        if not particle and target is not None and target.end < end:
            after, then = self._words[target.end], self._at(target.end + 1)
            loose = after.tag in ("adv", "adj") or then is None or then.tag in ("mark", "end", "prep", "verb")
            if loose and after.tag != "particle" and after.low in self._grammar.words("goals", "particles"):
                particle = after.low
        text = self._write_last(place, end) if self._grammar.verbs_last else self._write(place, end)
        if self._grammar.code == "zh":
            text = self._write(self._find_moved(place), place) + text
        phrase = target.to_phrase() if target is not None else None
        if phrase is not None and word.lemma in self._grammar.words("goals", "preventing"):
            phrase = _without_gerund(phrase)
        return Aim(place, end, trust, Goal(word.lemma, phrase, text, particle), tail, word.lemma)

    def add_prevented(self, aim: Aim) -> Aim:
        """Return a goal with what its verb prevents: a planned event, or an act of a person after it."""
        goals, goal = self._grammar.words, aim.goal
        if goal.verb not in goals("goals", "preventing"):
            return aim
        if goal.object is not None and goal.object.head in goals("goals", "planned"):
            return replace(aim, prevents=True)
        verbs = (at for at in range(aim.place, aim.end) if self._words[at].lemma == goal.verb)
        place = next(verbs, aim.place)
        chunk = next((one for one in self._chunks if one.start > place), None)
        if chunk is None or self._find_sentence(chunk.start) != self._find_sentence(place):
            return aim
        if not chunk.is_first_class("person", "group"):
            return aim
        goal = replace(goal, stopped=chunk.to_phrase())
        if self._grammar.verbs_last and place + 1 == aim.end:
            # The act is in a clause of its own: "verhindern, dass ...".
            end = next((at for at in range(place, len(self._words)) if self._words[at].tag == "end"), aim.end)
            goal = replace(goal, text=f"{goal.text}, {self._write_as_is(place + 2, end)}")
        return replace(aim, goal=goal, prevents=True)

    def _find_moved(self, place: int) -> int:
        """Return the place of the object that is before its verb, with its mark; that of the verb without."""
        moved = self._grammar.words("goals", "moved")
        clause = range(self._find_clause(place), place)
        return next((at for at in clause if self._words[at].low in moved), place)

    def _build_last(self, place: int, trust: float) -> Aim:
        """Return the goal whose verb ends its clause: its object is before it."""
        word = self._words[place]
        start = self._find_clause(place)
        modal = next((at for at in range(start, place) if self._words[at].tag == "modal"), start - 1)
        first = modal + 1
        if modal < start and self._words[start].low in self._grammar.words("people", "who"):
            first = start + 1
        while first < place and self._words[first].tag in ("player", "adv"):
            first += 1
        chunks = [
            chunk
            for chunk in self._chunks
            if first < chunk.end and start <= chunk.start < place and chunk is not self.role_chunk
        ]
        against = self._grammar.words("things", "against")
        plain = [chunk for chunk in chunks if chunk.before is None or chunk.before.tag != "prep"]
        fought = [chunk for chunk in chunks if chunk.before is not None and chunk.before.low in against]
        target = next(iter([*plain, *fought]), None)
        end = self._find_end(place) if target is None else place + 1
        if target is None and end == place + 1 and place + 2 < len(self._words):
            asks = self._words[place + 2].tag == "wh" or self._words[place + 2].low == "ob"
            end = self._find_end(place + 2) if asks else end
        words = [each for each in self._words[first:end] if each is not word]
        tail = tuple(each.lemma or each.low for each in words if each.tag != "mark")
        text = " ".join([*"".join(self._iter_written(first, place)).split(), word.lemma])
        text += "".join(self._iter_written(place + 1, end)) if end > place + 1 else ""
        phrase = target.to_phrase() if target is not None else None
        return Aim(first, end, trust, Goal(word.lemma, phrase, text), tail, word.lemma)

    def _find_end(self, place: int) -> int:
        """Return the place after the last word that belongs to the verb."""
        stops = self._grammar.words("goals", "stops")
        pairing = self._grammar.words("goals", "pairing")
        for end in range(place + 1, min(place + 1 + _MOST_WORDS, len(self._words))):
            word, after = self._words[end], self._at(end + 1)
            if word.tag == "end" or (word.tag == "mark" and word.text != '"'):
                return end
            if end > place + 1 and word.low in stops and not self._asks_after_particle(place, end):
                return end
            is_pair = any(each.low in pairing for each in self._words[place:end])
            if (
                word.tag == "conj"
                and not is_pair
                and after is not None
                and after.tag in ("player", "pron", "det", "poss", "name")
                and not (after.tag == "name" and self._words[end - 1].tag == "name")
            ):
                return end
        return min(place + 1 + _MOST_WORDS, len(self._words))

    def _asks_after_particle(self, place: int, end: int) -> bool:
        """Return True for a question right after a verb and its particle: "find out who did it"."""
        word, after = self._words[end], self._at(end + 1)
        is_question = end == place + _PARTICLE and word.low in self._grammar.words("goals", "asked")
        has_particle = self._words[place + 1].low in self._grammar.words("goals", "particles")
        return is_question and has_particle and after is not None and after.tag in _ASKING

    def _find_kept_safe(self, target: Chunk | None, end: int) -> Chunk | None:
        """Return what persons are prevented from harming, "stop them from burning it"; else the object."""
        if target is None or not target.has_class("person", "group.people"):
            return target
        off = self._grammar.words("things", "off")
        first = next((at + 1 for at in range(target.end, end) if self._words[at].low in off), end)
        is_act = first < end and self._words[first].low.endswith("ing")
        return self._find_object(first, end, "") or target if is_act else target

    def _find_object(self, place: int, end: int, particle: str) -> Chunk | None:
        at = place + 1 + bool(particle)
        is_player = False
        while at < end:
            word = self._words[at]
            is_player = is_player or word.tag == "player"
            if is_player and word.tag in ("prep", "to"):
                return None  # "bring us to the border": what follows is where, and not what
            chunk = find_chunk_at(self._chunks, at)
            if chunk is not None and chunk.start == at:
                chunk = self._find_owned(chunk)
                measure = chunk.is_first_class("quantity") or chunk.head.lemma in self._grammar.words(
                    "things", "sets"
                )
                return chunk.of if measure and chunk.of is not None else chunk
            if word.tag == "wh" or word.low in self._no_object:
                return None
            if word.tag == "pron" or word.low == "her":
                return self._resolve(word, place)
            if word.tag in ("verb", "to") and at > place + 1 and word.tag == "verb":
                return None
            at += 1
        return None

    def _find_owned(self, chunk: Chunk) -> Chunk:
        """Return what a phrase owns, such as "mill" of "the town's mill"; the phrase itself if nothing."""
        owned = next((other for other in self._chunks if other.owner is chunk), None)
        return chunk if owned is None else self._find_owned(owned)

    def _resolve(self, pronoun: Word, place: int) -> Chunk | None:
        """Return the person, the persons or the thing of an earlier phrase that a pronoun means."""
        if pronoun.low == "it" and self._grammar.code == "en":
            return self._resolve_thing(place)
        if pronoun.low not in ("them", "him", "her"):
            return None
        many = pronoun.low == "them"
        found = [
            chunk
            for chunk in reversed([chunk for chunk in self._chunks if chunk.end <= place])
            if chunk is not self.role_chunk
            and chunk.has_class("person", "group.people", "animal")
            and (chunk.is_plural or chunk.has_class("group.people")) == many
        ]
        named = (chunk for chunk in found if chunk.names)
        return next(named, None) or next(iter(found), None)

    def _resolve_thing(self, place: int) -> Chunk | None:
        """Return the thing of an earlier phrase that "it" means: the nearest one that can be had.

        A place of a thing comes last: "a letter in the house".
        """
        earlier = [chunk for chunk in self._chunks if chunk.end <= place and chunk is not self.role_chunk]
        things = [chunk for chunk in reversed(earlier) if chunk.has_class(*_HAD) and not chunk.is_plural]
        sites = self._grammar.words("things", "place")
        return min(things, key=lambda one: one.before is not None and one.before.low in sites, default=None)

    def _write(self, place: int, end: int) -> str:
        """Return the words of a verb phrase, with the player in the second person."""
        return " ".join("".join(self._iter_written(place, end)).split()).strip(" ,")

    def _write_as_is(self, place: int, end: int) -> str:
        """Return the words of a phrase, with the player in the second person, and each verb in its form."""
        return " ".join("".join(self._iter_written(place, end, is_verb=False)).split()).strip(" ,")

    def _write_last(self, place: int, end: int) -> str:
        """Return an order as an infinitive whose verb is last."""
        rest = "".join(self._iter_written(place + 1, end)).split()
        separate = self._words[end - 1].tag == "particle"
        told = " ".join([*rest[: len(rest) - separate], self._words[place].lemma])
        if end + 1 < len(self._words) and self._words[end].tag == "mark" and self._words[end + 1].tag == "wh":
            told += "".join(self._iter_written(end, self._find_end(end + 1)))
        return told

    def _iter_written(self, place: int, end: int, *, is_verb: bool = True) -> Iterator[str]:
        seen = self._grammar.pairs("perspective", "words")
        for at in range(place, end):
            word = self._words[at]
            is_base = is_verb and at == place and word.tag == "verb"
            text = _find_base(word) if is_base else seen.get(word.low, word.text)
            glued = at > place and self._words[at - 1].end == word.start
            yield text if glued or at == place else f" {text}"


@dataclass(frozen=True, slots=True)
class _Subject:
    """Subject of a duty: its places, and its phrase; None for an indefinite pronoun."""

    start: int
    end: int
    chunk: Chunk | None


def _is_person(chunk: Chunk) -> bool:
    """Return True for a phrase of persons or animals, and for a name."""
    return chunk.has_class("person", "group", "animal") or bool(chunk.names)


class EnglishClauseReader(ClauseReader):
    """Search for the role and the goals in one English text.

    If the player has no duty, wish or order, the duties of other persons and of things become goals: to help
    another act, or to prevent what must not happen.
    """

    def find_aims(self) -> list[Aim]:
        """Return all verbs that may be the goal, in order."""
        found = (aim for aim in super().find_aims() if not self._is_lone_gerund(aim.place))
        aims = [*found, *self._find_choices()]
        if any(aim.trust >= _GERUND for aim in aims):
            return aims
        return [*aims, *self._find_title(), *self._find_duties(), *self._find_feared()]

    def _find_feared(self) -> Iterator[Aim]:
        """Yield what the player must not fail to do: "if I do not act", "unless we act"."""
        for place, word in enumerate(self._words):
            if word.low not in self._grammar.words("goals", "conditions"):
                continue
            clause = self._words[place + 1 : self._find_mark(place)]
            verb = next(
                (at for at, one in enumerate(clause) if one.tag == "verb" and one.lemma != "do"), None
            )
            lead = clause[:verb] if verb is not None else []
            is_own = bool(lead) and lead[0].tag == "player" and lead[0].low not in ("me", "us")
            is_led = all(one.tag in ("player", "neg", "modal", "adv") or one.low == "do" for one in lead)
            is_negative = any(one.tag == "neg" for one in lead) != (word.low == "unless")
            if verb is not None and is_own and is_led and is_negative:
                at = place + 1 + verb
                if self._words[at].low == self._words[at].lemma:
                    yield self._build_pursuit(at, _OF_OTHERS)

    def _is_lone_gerund(self, place: int) -> bool:
        """Return True for a gerund that is a whole sentence, which names a subject and no act."""
        word, after = self._words[place], self._at(place + 1)
        return word.first and word.low == add_ing(word.lemma) and (after is None or after.tag == "end")

    def _trust_after(self, before: Word, left: int, place: int, aims: Sequence[Aim]) -> float:
        """Return the trust in a verb by the word before it, also after "had better"."""
        had = self._at(left - 1)
        if before.low == "better" and had is not None and had.low in ("had", "'d"):
            return _DUTY if self._is_player(left - 2) else 0
        return super()._trust_after(before, left, place, aims)

    def _trust_after_be(self, place: int) -> float:
        """Return the trust in an infinitive after "be": "you are to act", "all I want is to act"."""
        before = self._at(self._skip_left(place - 1))
        is_wish = before is not None and before.lemma in self._grammar.words("goals", "wishing") | {
            "need",
            "matter",
        }
        if before is not None and before.low == "it":
            # "Whose aim it is to act".
            noun = self._at(place - 2)
            is_wish = noun is not None and noun.lemma in self._grammar.words("goals", "purpose")
        return _DUTY if before is not None and (before.tag == "player" or is_wish) else 0

    def _trust_infinitive(self, to: int) -> float:
        """Return the trust in an infinitive, also for tasks and wishes in other words."""
        left = self._skip_left(to - 1)
        word = self._at(left)
        if word is None:
            return super()._trust_infinitive(to)
        before = self._at(left - 1)
        is_led = before is not None and (
            self._is_own_task(left)
            # "Forty minutes in which to act".
            or (word.low == "which" and before.tag == "prep")
            # "I would like to act", "I would give anything to act".
            or (word.low == "like" and before.tag == "modal" and self._is_player(left - 2))
            or (word.low == "anything" and before.lemma == "give" and self._is_player(left - 2))
            # "I am off to act".
            or (word.low in ("off", "here") and before.tag == "be" and self._is_pronoun_of_player(left - 1))
            # "They have asked me to act".
            or (word.tag == "player" and before.lemma in self._grammar.words("goals", "charging"))
        )
        return _DUTY if is_led or self._is_left_to_first(left) else super()._trust_infinitive(to)

    def _trust_after_modal(self, left: int) -> float:
        """Return the trust in a verb after a modal, also after "I swore that I would"."""
        trust = super()._trust_after_modal(left)
        if not 0 < trust < _GERUND:
            return trust
        at = left - 2
        while at > 0 and (self._words[at].low == "that" or self._words[at].tag == "name"):
            at -= 1
        word = self._at(at)
        is_wish = word is not None and word.lemma in self._grammar.words("goals", "promising")
        return _WISH if is_wish and self._is_pronoun_of_player(at - 1) else trust

    def _trust_after_player(self, left: int) -> float:
        """Return the trust in a verb after a pronoun of the player, also of the question "can we act?"."""
        trust = super()._trust_after_player(left)
        asks = (
            left > 0 and self._words[left - 1].first and self._words[left - 1].low in ("can", "could", "will")
        )
        is_known = asks and self._is_of_any_pattern(self._at(left + 1))
        return _OF_OTHERS if trust == _ASKED and is_known else trust

    def _is_own_task(self, place: int) -> bool:
        """Return True for a task of the player at a place: "it is my job to"."""
        before = self._at(place - 1)
        if before is None or place < _TASK or before.tag != "poss":
            return False
        own = self._grammar.pairs("perspective", "words")
        is_own = before.low in own or before.low in own.values()
        is_task = self._words[place].lemma in self._grammar.words("goals", "purpose") | {"turn"}
        return is_own and is_task and self._words[place - 2].tag == "be"

    def _is_left_to_first(self, place: int) -> bool:
        """Return True for a task that falls to the first person: "it is up to Alpha, a beta, to"."""
        clause = self._words[self._find_sentence(place) : place]
        leads = (at for at, word in enumerate(clause) if word.low == "up" or word.lemma == "fall")
        start = next(leads, None)
        if start is None or self._has_player or [one.tag for one in clause[start + 1 : start + 2]] != ["to"]:
            return False
        chunk = find_chunk_at(self._chunks, self._find_sentence(place) + start + 2)
        if chunk is None or not _is_person(chunk):
            return False
        end = self._words[place].tag == "mark"
        is_whole = chunk.end in (place + 1, place) or (end and self._words[chunk.end].tag == "mark")
        if is_whole and self.role is None and self._is_first_person(chunk):
            self.set_role(chunk)
        return is_whole and self._is_same_role(chunk)

    def _trust_led(self, left: int, word: Word, duty: frozenset[str]) -> float:
        """Return the trust in an infinitive, also after a task: "it is up to me to"."""
        before = self._at(left - 1)
        if word.tag == "player" and before is not None and before.tag == "to":
            return _DUTY
        if word.low in self._grammar.words("times", "left") and before is not None:
            # "I have two days left to act".
            left, word = left - 1, before
        if word.low == "time" and self._is_due(left):
            return _OF_OTHERS
        return super()._trust_led(left, word, duty)

    def _is_due(self, place: int) -> bool:
        """Return True for "time" at the start of a sentence or after "it is"."""
        start = self._find_sentence(place)
        before = [each.low for each in self._words[start:place] if each.tag not in ("be", "adv")]
        return before in ([], ["it"])

    def _is_player(self, place: int) -> bool:
        """Return True if the subject that ends at a place is the player, or may become it."""
        if not super()._is_player(place):
            return False
        place = self._skip_left(place)
        chunk = find_chunk_at(self._chunks, place)
        if chunk is not None and self._words[chunk.start].low in self._grammar.words("things", "none"):
            return False
        word = self._at(place)
        opening = find_chunk_at(self._chunks, self._find_sentence(place)) if place > 0 else None
        is_apposition = word is not None and word.tag == "mark" and opening is not None
        if is_apposition and opening is not None and self.role is None and not self._has_player:
            # "Alpha, a beta, must": who is explained is the player.
            named = find_chunk_at(self._chunks, opening.end)
            opening = opening if named is None or not named.names else named
            is_first = self._is_first_person(opening)
            if is_first and opening.end < place and self._words[opening.end].tag == "mark":
                self.set_role(opening)
        return True

    def _find_choices(self) -> Iterator[Aim]:
        """Yield the choices that the text leaves to the player."""
        for place, word in enumerate(self._words):
            if word.low == "whether" and word.first:
                yield from self._find_open_choice(place)
            elif word.low == "or":
                yield from self._find_alternative(place)
            elif word.low == "only":
                yield from self._find_selection(place)

    def _find_selection(self, place: int) -> Iterator[Aim]:
        """Yield the choice of a few among many: "I can only take one of them", "I can take only one"."""
        start, end = self._find_clause(place), self._find_end(place)
        can = next((at for at in range(start, place) if self._words[at].low in ("can", "may")), None)
        verb = next((at for at in range((can or end) + 1, end) if self._words[at].tag == "verb"), None)
        if can is None or verb is None or not self._is_pronoun_of_player(can - 1):
            return
        between = self._words[can + 1 : verb]
        rest = self._words[max(verb, place) + 1 : end]
        of = self._grammar.words("things", "of")
        is_part = any(one.tag == "num" and (after.low in of) for one, after in pairwise(rest))
        is_part = is_part or (verb < place and [one.tag for one in rest[:1]] == ["num"])
        times = (find_chunk_at(self._chunks, at) for at in range(verb + 1, end))
        if (
            any(one.tag != "adv" for one in between)
            or not is_part
            or any(one is not None and one.count is not None and self._is_time(one) for one in times)
        ):
            return
        chunk = self._find_object(verb, end, "")
        goal = Goal(
            self._words[verb].lemma, None if chunk is None else chunk.to_phrase(), self._write(verb, end)
        )
        yield Aim(verb, end, _OF_OTHERS, goal, (), "choose", "decide")

    def _find_open_choice(self, place: int) -> Iterator[Aim]:
        """Yield what a sentence leaves open: "whether to act is up to me"."""
        end = self._find_mark(place)
        is_open = [word.tag for word in self._words[place + 1 : place + 3]] == ["to", "verb"]
        be = next((at for at in range(place + 3, end) if self._words[at].tag == "be"), None)
        if is_open and be is not None:
            yield self._build_choice(place + 2, be, self._write(place + 2, be))

    def _find_alternative(self, place: int) -> Iterator[Aim]:
        """Yield the choice between two acts of a question, or of an announcement: "two ways: act or wait"."""
        second = self._at(place + 1)
        end = self._find_end(place + 1)
        start = self._find_clause(place - 1 if self._words[place - 1].tag == "mark" else place)
        last = next((word for word in self._words[place:] if word.tag == "end"), None)
        is_asked = last is not None and last.text.startswith("?")
        options = self._grammar.words("goals", "options")
        is_told = self._words[max(start - 1, 0)].text == ":" and any(
            word.lemma in options for word in self._words[self._find_sentence(start - 1) : start]
        )
        if second is None or not (is_asked or is_told):
            return
        first = next((at for at in range(start, place) if self._words[at].tag == "verb"), None)
        lead = self._words[start:first] if first is not None else ()
        is_own = all(word.tag in ("player", "modal", "adv", "conj") or word.low == "do" for word in lead)
        then = self._at(place + 2)
        takes = then is not None and then.tag in ("det", "poss", "player", "pron", "prep", "adv")
        may_act = takes and any(name.startswith("verb") for name in find_classes(second.low))
        if first is None or not is_own or not (second.tag == "verb" or (second.is_noun and may_act)):
            return
        told = self._write(first, place)
        if not any(one.tag == "neg" for one in self._words[place + 1 : place + 3]):
            told = f"{told} or {second.low} {self._write_as_is(place + 2, end)}".strip()
        yield self._build_choice(first, end, told)

    def _build_choice(self, place: int, end: int, told: str) -> Aim:
        target = self._find_object(place, end, "")
        goal = Goal("decide", None if target is None else target.to_phrase(), f"decide whether to {told}")
        return Aim(place, end, _DUTY + 0.5, goal, ("whether",), "decide", "decide")

    def _find_title(self) -> Iterator[Aim]:
        """Yield the goal of a text that begins as a title: "a lone alpha searching for a beta"."""
        chunk = self._chunks[0] if self._chunks else None
        if chunk is None or chunk.start or self._has_predicate(self._relative):
            return
        if chunk.head.lemma in self._grammar.words("goals", "journeys"):
            yield from self._find_journey(chunk)
            return
        word = self._at(chunk.end)
        others = self._grammar.words("people", "others")
        is_actor = _is_person(chunk) and not self._has_player and chunk.head.lemma not in others
        if not is_actor or word is None or word.tag != "verb" or word.low != add_ing(word.lemma):
            return
        if not chunk.is_plural and self.role is None:
            self.set_role(chunk)
        after = self._at(chunk.end + 1)
        has_object = after is not None and after.tag not in ("prep", "conj", "mark", "end")
        if has_object or word.lemma in self._grammar.goal_verbs | self._grammar.words("goals", "seeking"):
            yield self._build_pursuit(chunk.end, _OF_OTHERS)

    def _find_journey(self, chunk: Chunk) -> Iterator[Aim]:
        """Yield the goal of a journey: "a trek from alpha to beta", "our way home"."""
        ends = self._grammar.words("goals", "ways") | {"home", "back"}
        until = self._find_mark(chunk.end)
        there = (at for at in range(chunk.end, until) if self._words[at].low in ends)
        place = next(there, None)
        if place is None:
            return
        having = self._grammar.words("things", "having") | self._grammar.words("things", "none")
        end = next((at for at in range(place + 1, until) if self._words[at].low in having), until)
        goal = Goal("get", None, f"get {self._write_as_is(place, end)}")
        yield Aim(chunk.start, end, _GERUND, goal, self._list_tail(place, end), "get", "reach")

    def _find_duties(self) -> Iterator[Aim]:
        """Yield what others than the player must do or become, and what they want or are doing.

        "The alpha must not go out", "my beta has to be ready", "Gamma has until dawn to find out why".
        """
        for place, word in enumerate(self._words):
            found = self._find_predicate(place, word)
            if found is None:
                yield from self._find_task(place, word)
                yield from self._find_left(place, word)
                yield from self._find_lost(place, word)
                yield from self._find_question(place, word)
                yield from self._find_wanted(place, word)
                yield from self._find_needed(place, word)
                yield from self._find_repair(place, word)
                yield from self._find_unknown(place, word)
                yield from self._find_possible(place, word)
                yield from self._find_pursued(place, word)
                continue
            start, trust = found
            if self._is_condition(place) or self._is_reported(place):
                continue
            if self._is_pronoun_of_player(place - 1):
                aim = self._build_pursuit(start, trust) if self._words[start].tag == "verb" else None
            else:
                subject = self._find_subject(place - 1)
                aim = None if subject is None else self._build_duty(subject, start, trust)
            if aim is not None:
                yield aim

    def _is_pronoun_of_player(self, place: int) -> bool:
        """Return True if the subject that ends at a place is "I", "you" or "we"."""
        place = self._skip_left(place)
        while (word := self._at(place)) is not None and word.tag in ("be", "have") and not word.first:
            place = self._skip_left(place - 1)
        if word is None or word.tag == "player":
            return word is not None
        # "Me and my alpha".
        chunk = find_chunk_at(self._chunks, place)
        is_pair = chunk is not None and chunk.is_after("conj") and chunk.start > 1
        return is_pair and chunk is not None and self._words[chunk.start - 2].tag == "player"

    def _find_predicate(self, place: int, word: Word) -> tuple[int, float] | None:
        """Return where the predicate of a duty, a wish or a pursuit at a place starts, and its trust."""
        goals = self._grammar.words
        after = self._at(place + 1)
        if after is None:
            return None
        if word.tag == "modal" and (word.low in goals("goals", "strong") or self._is_forbidden(place)):
            return place + 1, _OF_OTHERS
        is_need = word.tag == "have" or word.lemma in goals("goals", "needing")
        is_wish = word.tag == "verb" and word.lemma in goals("goals", "wishing")
        if after.tag == "to" and (is_need or is_wish):
            return place + 2, _OF_OTHERS if is_need else _WISHED
        if word.tag == "be":
            return self._find_doing(place, after)
        to = None
        if is_wish and after.low == "nothing":
            # "Wants nothing more than to act".
            to = self._find_to(place + 2)
        elif word.tag == "have" or word.low in goals("goals", "given"):
            to = self._find_led(place)
        return None if to is None else (to + 1, _OF_OTHERS)

    def _is_forbidden(self, place: int) -> bool:
        """Return True for what no one may do: "no alpha may act"."""
        may = self._words[place].low in self._grammar.words("goals", "permitting")
        act = self._at(place + 1)
        is_known = act is not None and act.lemma in self._grammar.words("goals", "noticing")
        # "Nobody can know".
        may = may or (self._words[place].low == "can" and is_known)
        subject = find_chunk_at(self._chunks, self._skip_left(place - 1))
        while subject is not None and subject.is_after("prep"):
            subject = find_chunk_at(self._chunks, subject.start - 2)
        first = self._words[place - 1 if subject is None else subject.start].low
        return may and first in self._grammar.words("things", "none") | {"nobody"}

    def _find_doing(self, place: int, after: Word) -> tuple[int, float] | None:
        """Return where what a person is doing, or is going to do, starts, and its trust."""
        then = [one.tag for one in self._words[place + 2 : place + 4]]
        if after.low == "going" and then == ["to", "verb"]:
            return place + 3, _DOING
        if after.tag == "to" and then[:1] == ["verb"]:
            return place + 2, _DOING
        is_doing = after.tag == "verb" and after.low == add_ing(after.lemma)
        is_goal = after.lemma in self._grammar.goal_verbs | self._grammar.words("goals", "seeking")
        return (place + 1, _DOING) if is_doing and is_goal else None

    def _find_to(self, place: int) -> int | None:
        """Return the place of the next "to" before punctuation."""
        clause = range(place, self._find_mark(place))
        return next((at for at in clause if self._words[at].tag == "to"), None)

    def _find_task(self, place: int, word: Word) -> Iterator[Aim]:
        """Yield a task in words around its object: "I have an alpha to cross", "do not let them go"."""
        chunk, after = find_chunk_at(self._chunks, place + 1), self._at(place + 1)
        if chunk is None and after is not None and after.tag == "pron":
            chunk = Chunk(place + 1, place + 2)
        if chunk is None or chunk.start != place + 1:
            return
        at = self._find_act(chunk.end)
        act = self._at(at)
        if act is None or act.tag != "verb":
            return
        is_refused = self._words[max(place - 1, 0)].tag == "neg"
        end = self._find_end(at)
        rest = self._write_as_is(at + 1, end)
        tail = self._list_tail(at + 1, end)
        then = self._at(at + 1)
        is_last = then is None or then.tag in ("mark", "end", "prep", "conj")
        if (
            word.tag == "have"
            and chunk.nouns
            and at > chunk.end
            and is_last
            and self._is_pronoun_of_player(place - 1)
        ):
            target = find_chunk_at(self._chunks, at - 2) or chunk
            text = f"{act.lemma} {self._write_subject(chunk.start, at - 1)} {rest}".strip()
            goal = Goal(act.lemma, target.to_phrase(), text)
            tail = self._list_tail(chunk.start, at - 1)
            yield Aim(at, end, _OF_OTHERS, goal, tail, act.lemma, "make_ready")
        is_wish = word.lemma == "want" and at > chunk.end
        if is_refused and (is_wish or (word.lemma == "let" and at == chunk.end)):
            told = self._write_subject(chunk.start, chunk.end)
            text = f"keep {told} from {add_ing(act.lemma)} {rest}".strip()
            verb, tail = self._tell_prevented(chunk, act, tail)
            aim = Aim(at, end, _OF_OTHERS, Goal("keep", None, text), tail, verb, "hold_out")
            yield self._mark_stopped(aim, chunk, at)

    def _find_left(self, place: int, word: Word) -> Iterator[Aim]:
        """Yield a task that is left: "one alpha left to cross"."""
        chunk, then = (
            find_chunk_at(self._chunks, place - 1),
            [one.tag for one in self._words[place + 1 : place + 3]],
        )
        if word.low != "left" or then != ["to", "verb"] or chunk is None or chunk.end != place:
            return
        act, after = place + 2, self._at(place + 3)
        if self._is_time(chunk) or (after is not None and after.tag not in ("mark", "end", "prep", "conj")):
            return
        end = self._find_end(act)
        told, rest = self._write_subject(chunk.start, chunk.end), self._write_as_is(act + 1, end)
        text = f"{self._words[act].lemma} {told} {rest}"
        goal = Goal(self._words[act].lemma, chunk.to_phrase(), text.strip())
        yield Aim(
            act, end, _OF_OTHERS, goal, self._list_tail(chunk.start, chunk.end), goal.verb, "make_ready"
        )

    def _find_lost(self, place: int, word: Word) -> Iterator[Aim]:
        """Yield the return of what the player has lost, or of an animal that has escaped."""
        is_lost = word.low == "lost"
        is_gone = word.tag == "verb" and word.low in self._grammar.words("goals", "escaped")
        if self._is_condition(place):
            return
        if is_lost and self._is_pronoun_of_player(place - 1):
            chunk = find_chunk_at(self._chunks, place + 1)
            if chunk is None or chunk.start != place + 1 or not chunk.is_first_class(*_LOST):
                return
        elif is_gone:
            subject = self._find_subject(place - 1)
            chunk = None if subject is None else subject.chunk
            if chunk is None or not chunk.is_first_class("animal") or chunk.definite == "":
                return
        else:
            return
        told = self._write_subject(chunk.start, chunk.end)
        verb, text, usual = ("find", f"find {told}", "find_out")
        if is_gone:
            verb, text, usual = ("get", f"get {told} back", "take")
        tail = (*(one.lemma for one in self._words[chunk.start : chunk.end]), "back")
        yield Aim(chunk.start, place + 1, _DOING, Goal(verb, chunk.to_phrase(), text), tail, verb, usual)

    def _find_question(self, place: int, word: Word) -> Iterator[Aim]:
        """Yield a question of the text: "who has taken the alpha?"."""
        end = self._find_mark(place)
        ends = self._at(end)
        if not (word.first and word.low == "who") or ends is None or not ends.text.startswith("?"):
            return
        clause = self._words[place + 1 : end]
        is_own = any(one.tag in ("player", "modal") for one in clause)
        dull = self._grammar.words("goals", "dull") | {"care"}
        if is_own or all(one.lemma in dull for one in clause if one.tag == "verb"):
            return
        told = self._write_as_is(place, end)
        text = f"find out {told[:1].lower()}{told[1:]}"
        tail = ("out", *self._list_tail(place, end))
        yield Aim(place, end, _OF_OTHERS, Goal("find", None, text, "out"), tail, "find", "find_out")

    def _find_needed(self, place: int, word: Word) -> Iterator[Aim]:
        """Yield a thing that the player needs: "I need an alpha"."""
        chunk = find_chunk_at(self._chunks, place + 1)
        wants = word.tag == "verb" and word.lemma in self._grammar.words("goals", "wanting")
        if not wants or chunk is None or chunk.start != place + 1:
            return
        chunk = self._find_owned(chunk)
        before = self._at(self._skip_left(place - 1))
        is_own = before is not None and (
            before.tag == "player"
            or (before.low in self._relative and self._is_of_role(place))
            or (
                before.low in ("she", "he") and not self._has_player and self._is_role_resolved(before, place)
            )
        )
        end = self._find_end(place)
        then = self._at(chunk.end)
        is_whole = (
            then is None
            or then.tag in ("mark", "end", "prep", "conj")
            or then.low in self._grammar.words("times", "near")
        )
        if is_own and is_whole and chunk.nouns and chunk.is_first_class(*_NEEDED):
            goal = Goal("get", chunk.to_phrase(), f"get {self._write_as_is(place + 1, end)}")
            yield Aim(place, end, _WISHED, goal, (), "", "take")

    def _is_of_role(self, place: int) -> bool:
        """Return True for a relative clause about the player: "an alpha who needs"."""
        if self._is_role_before(place - 2):
            return True
        subject = self._find_subject(place - 1)
        return subject is not None and subject.chunk is not None and self._acts_as_player(subject.chunk)

    def _find_unknown(self, place: int, word: Word) -> Iterator[Aim]:
        """Yield what the text leaves unknown: "I do not know who did it"."""
        after, then = self._at(place + 1), self._at(place + 2)
        asked = self._grammar.words("goals", "asked") | {"what", "why"}
        if after is None or then is None or after.low not in asked or then.tag in ("to", "player"):
            return
        lead = self._words[max(place - 3, self._find_sentence(place)) : place]
        is_known = word.lemma == "know" and any(
            one.tag == "neg" or one.low in ("nobody", "none") for one in lead
        )
        is_idea = word.low == "idea" and any(one.low == "no" for one in lead)
        if not (is_known or is_idea):
            return
        end = self._find_mark(place)
        text = f"find out {self._write_as_is(place + 1, end)}"
        tail = ("out", *self._list_tail(place + 1, end))
        yield Aim(place, end, _OF_OTHERS, Goal("find", None, text, "out"), tail, "find", "find_out")

    def _find_possible(self, place: int, word: Word) -> Iterator[Aim]:
        """Yield what a question in the passive is about: "can the alpha be mended?"."""
        chunk = find_chunk_at(self._chunks, place + 1)
        if not word.first or word.low not in ("can", "could") or chunk is None or chunk.start != place + 1:
            return
        be, act = self._at(chunk.end), self._at(chunk.end + 1)
        end = self._find_mark(place)
        ends = self._at(end)
        is_asked = ends is not None and ends.text.startswith("?")
        if be is None or be.low != "be" or act is None or act.tag != "verb" or not is_asked:
            return
        told = self._write_as_is(chunk.start, chunk.end)
        text = f"{act.lemma} {told} {self._write_as_is(chunk.end + 2, end)}".strip()
        tail = self._list_tail(chunk.end + 2, end)
        goal = Goal(act.lemma, chunk.to_phrase(), text)
        yield Aim(place, end, _OF_OTHERS, goal, tail, act.lemma, "make_ready")

    def _find_repair(self, place: int, word: Word) -> Iterator[Aim]:
        """Yield an act that a thing needs: "the alpha needs mending"."""
        act = self._at(place + 1)
        is_need = word.tag == "verb" and word.lemma in self._grammar.words("goals", "needing")
        if not is_need or act is None or act.low != add_ing(act.lemma) or self._is_condition(place):
            return
        subject = self._find_subject(place - 1)
        chunk = None if subject is None else subject.chunk
        if subject is None or chunk is None or chunk.belongs == "other":
            return
        end = self._find_end(place + 1)
        told = self._write_subject(subject.start, subject.end)
        text = f"{act.lemma} {told} {self._write_as_is(place + 2, end)}".strip()
        tail = self._list_tail(place + 2, end)
        yield Aim(
            place + 1,
            end,
            _OF_OTHERS,
            Goal(act.lemma, chunk.to_phrase(), text),
            tail,
            act.lemma,
            "make_ready",
        )

    def _is_role_resolved(self, pronoun: Word, place: int) -> bool:
        """Return True if a pronoun means the player."""
        meant = self._resolve_subject(pronoun, place)
        return meant is not None and self._is_same_role(meant)

    def _tell_prevented(self, chunk: Chunk, act: Word, tail: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """Return the verb and the tail of an act that the player prevents; nothing for a thing."""
        told = (
            self._resolve(self._words[chunk.start], chunk.start)
            if not chunk.nouns and not chunk.names
            else chunk
        )
        if told is None or not told.has_class("person", "group"):
            return "", ()
        return "keep", ("from", act.lemma, *tail)

    def _find_wanted(self, place: int, word: Word) -> Iterator[Aim]:
        """Yield the state in which the player wants or needs a thing or a person: "I want the alpha in"."""
        wants = word.lemma in self._grammar.words("goals", "wanting") and word.tag == "verb"
        is_had = word.tag == "be" and [one.low for one in self._words[place + 1 : place + 3]] == [
            "to",
            "have",
        ]
        is_refused = any(one.tag == "neg" for one in self._words[max(place - 2, 0) : place])
        if not (wants or is_had) or is_refused or not self._is_pronoun_of_player(place - 1):
            return
        start = place + 3 if is_had else place + 1
        last, end = self._find_whole(start), self._find_end(place)
        first = self._at(last)
        if last == start or first is None or last >= end:
            return
        found = (
            self._read_being(start, last, end) if first.tag == "to" else self._read_state(start, last, end)
        )
        if found is not None:
            goal, tail, verb, usual = found
            yield Aim(place, end, _OF_OTHERS, goal, tail, verb, usual)

    def _read_being(self, start: int, last: int, end: int) -> tuple[Goal, tuple[str, ...], str, str] | None:
        """Return goal, tail, verb and usual pattern of what is to be: "want the alpha to be a beta"."""
        be = next((at for at in range(last, end) if self._words[at].tag == "be"), None)
        if be is None or any(one.tag != "adv" for one in self._words[last + 1 : be]):
            return None
        told, chunk = self._write_subject(start, last), find_chunk_at(self._chunks, start)
        rest = f"{self._write_as_is(last + 1, be)} {self._write_as_is(be + 1, end)}".strip()
        is_many = told.split()[0] in ("all", "both", "you") or (chunk is not None and chunk.is_plural)
        text = f"make sure that {told} {'are' if is_many else 'is'} {rest}"
        goal = Goal("make", None if chunk is None else chunk.to_phrase(), text)
        is_own = self._words[start].tag == "player" or "you" in told.split()
        return goal, (), "", "keep_together" if is_own else "hold_out"

    def _read_state(self, start: int, last: int, end: int) -> tuple[Goal, tuple[str, ...], str, str] | None:
        """Return goal, tail, verb and usual pattern of a state: "want the alpha fixed"."""
        words, first = self._grammar.words, self._words[last]
        is_kept = first.low in words("goals", "states_to_keep")
        is_done = first.tag in ("verb", "adj") and first.low.endswith("ed")
        ends = words("goals", "particles") | words("goals", "wanted_states") | words("things", "place")
        if not (is_kept or is_done or first.low in ends):
            return None
        told, chunk = self._write_subject(start, last), find_chunk_at(self._chunks, start)
        awaiting = words("times", "awaiting")
        lasts = is_kept or any(one.low in awaiting for one in self._words[last:end])
        verb, usual = ("keep", "hold_out") if lasts else ("get", "make_ready")
        target = None if chunk is None else chunk.to_phrase()
        goal = Goal(verb, target, f"{verb} {told} {self._write_as_is(last, end)}")
        if lasts and not is_kept and self._words[start].low in words("goals", "indefinite") | {"all"}:
            # "Keep everyone in the alpha".
            return goal, (), "", "keep_together"
        return goal, self._list_tail(start, end), verb, usual

    def _find_whole(self, start: int) -> int:
        """Return the end of a known thing or person at a place, with its "of"; the place without one."""
        word = self._at(start)
        if word is None:
            return start
        if word.low == "all" and start + 2 < len(self._words) and self._words[start + 1].low == "of":
            return start + 3
        if word.low in self._grammar.words("goals", "indefinite") or word.tag in ("pron", "player"):
            return start + 1 + (self._words[start + 1].low in ("all", "both"))
        chunk = find_chunk_at(self._chunks, start)
        is_known = word.tag == "poss" or word.low in ("the", "this", "that", "these", "those", "all", "both")
        if chunk is None or chunk.start != start or not (is_known or chunk.names):
            return start
        return chunk.end if chunk.of is None else chunk.of.end

    def _find_pursued(self, place: int, word: Word) -> Iterator[Aim]:
        """Yield what the player is after: "we are after the alpha"."""
        after, chunk = self._at(place + 1), find_chunk_at(self._chunks, place + 2)
        if word.tag != "be" or after is None or after.low != "after" or chunk is None:
            return
        clause = self._words[self._find_sentence(place) : place]
        is_own = any(one.tag == "player" for one in clause) and not any(
            one.tag == "verb" for one in clause[:-1]
        )
        is_own = is_own or self._is_role_before(place - 1)
        chunk = self._find_owned(chunk)
        if not is_own or not chunk.nouns or not chunk.has_class(*_PURSUED):
            return
        end = self._find_end(place + 1)
        verb, usual = ("find", "find_out") if chunk.has_class("person", "animal") else ("get", "take")
        goal = Goal(verb, chunk.to_phrase(), f"{verb} {self._write_as_is(place + 2, end)}")
        yield Aim(place, end, _OF_OTHERS, goal, self._list_tail(place + 2, end), "", usual)

    def _list_tail(self, start: int, end: int) -> tuple[str, ...]:
        tail = (each.lemma or each.low for each in self._words[start:end] if each.tag != "mark")
        return self._cut_tail(tail)

    def _cut_tail(self, tail: Iterable[str]) -> tuple[str, ...]:
        """Return the lemmas after a verb up to a time or a limit: "get there without getting more"."""
        apart = self._grammar.words("goals", "apart")
        return tuple(takewhile(lambda lemma: lemma not in apart, tail))

    def _build_aim(self, place: int, trust: float) -> Aim:
        aim = super()._build_aim(place, trust)
        aim = self._mark_prevention(replace(aim, tail=self._cut_tail(aim.tail)))
        act = self._find_helped(place) if aim.verb == "help" else None
        if act is None:
            return aim
        return replace(aim, verb=self._words[act].lemma, tail=self._list_tail(act + 1, aim.end))

    def _find_helped(self, place: int) -> int | None:
        """Return the place of the verb of another: "help Alpha cross the beta"; None without one."""
        chunk = find_chunk_at(self._chunks, place + 1)
        while chunk is not None and (after := find_chunk_at(self._chunks, chunk.end)) is not None:
            chunk = after
        end = place + 2 if chunk is None else chunk.end
        word = self._at(end)
        end += word is not None and word.tag == "to"
        word = self._at(end)
        is_act = word is not None and word.tag == "verb" and word.low == word.lemma
        return end if is_act and self._is_of_any_pattern(word) else None

    def _is_of_any_pattern(self, word: Word | None) -> bool:
        """Return True if a verb shows any pattern."""
        rows = self._grammar.rows("patterns").values()
        return word is not None and any(row[0] == word.lemma for each in rows for row in each)

    def _mark_prevention(self, aim: Aim) -> Aim:
        """Return a goal with what its verb prevents: an act of persons, "stop them from it", or an event."""
        goals, verb = self._grammar.words, aim.goal.verb
        halts = verb in goals("goals", "halting")
        if halts and aim.goal.object is not None and aim.goal.object.head in goals("goals", "planned"):
            return replace(aim, prevents=True)
        start = aim.place + 1
        is_sure = verb == "make" and start < aim.end and self._words[start].low == "sure"
        if is_sure:
            start += 2 if self._words[start + 1].low == "that" else 1
        if not (is_sure or halts or verb in goals("goals", "preventing")) or start >= aim.end:
            return aim
        chunk = find_chunk_at(self._chunks, start)
        if self._words[start].tag == "pron":
            chunk = Chunk(start, start + 1)
        if chunk is None or not aim.place < chunk.start <= start:
            return aim
        at = chunk.end if chunk.of is None else chunk.of.end
        if is_sure:
            tags = [word.tag for word in self._words[at : at + 3]]
            is_negative = tags[1:] == ["neg", "verb"]
            return self._mark_stopped(aim, chunk, at + 2) if is_negative else aim
        then = self._at(at) if at < aim.end else None
        at += then is not None and then.low in goals("things", "off")
        act = self._at(at) if at < aim.end else None
        if act is not None and act.low.endswith("ing"):
            return self._mark_stopped(aim, chunk, at)
        is_whole = halts and verb in goals("goals", "preventing") and (then is None or then.tag != "verb")
        return self._mark_stopped(aim, chunk, None) if is_whole else aim

    def _mark_stopped(self, aim: Aim, chunk: Chunk, place: int | None) -> Aim:
        """Return a goal with whom it prevents from an act, if this is a person, a group or an animal.

        Args:
            aim: the goal.
            chunk: the phrase of whom the goal is about.
            place: the place of the verb of the act; None if the goal does not name it.
        """
        goals = self._grammar.words
        if chunk.nouns and chunk.head.lemma in goals("goals", "planned"):
            return replace(aim, prevents=True)
        told = chunk if chunk.nouns or chunk.names else self._resolve(self._words[chunk.start], chunk.start)
        if place is not None and self._words[place].tag == "be":
            # "It must not be seen by them".
            by = next((at for at in range(place, aim.end) if self._words[at].low == "by"), aim.end)
            told = find_chunk_at(self._chunks, by + 1)
        elif place is not None and self._is_suffered(place):
            return aim
        if told is None:
            is_person = self._words[chunk.start].low in ("him", "her", "them")
            return replace(aim, prevents=is_person)
        target = aim.goal.object
        if target is None and place is not None:
            found = self._find_object(place, aim.end, "")
            target = None if found is None else found.to_phrase()
        is_actor = told.is_first_class("person", "group", "animal") if told.nouns else bool(told.names)
        acts_on = target is not None and target.head != told.head.lemma
        if not is_actor and not (acts_on and told.has_class("person", "group")):
            return aim
        return replace(aim, goal=replace(aim.goal, object=target, stopped=told.to_phrase()), prevents=True)

    def _is_suffered(self, place: int) -> bool:
        """Return True for a verb of what happens to a person, such as "die" or "get hurt"."""
        goals, verb, then = self._grammar.words, self._words[place], self._at(place + 1)
        if verb.lemma in goals("goals", "suffered"):
            return True
        is_state = then is not None and (then.tag == "adj" or then.low in goals("goals", "states"))
        is_done = then is not None and then.tag == "verb" and then.low != then.lemma
        return verb.lemma in goals("goals", "turning") and (is_state or is_done)

    def _find_act(self, place: int) -> int:
        """Return the place of the verb after a phrase, behind "to" where there is one before punctuation."""
        to = self._find_to(place)
        word = self._at(place)
        return place if to is None or (word is not None and word.tag == "verb") else to + 1

    def _find_led(self, place: int) -> int | None:
        """Return the place of "to" after a time that a person has: "has until dawn to", "has a week to"."""
        awaiting = self._grammar.words("times", "awaiting")
        end = self._find_mark(place)
        to = self._find_to(place + 1)
        if to is None or to + 1 >= end or self._words[to + 1].tag not in ("verb", "be"):
            return None
        time = find_chunk_at(self._chunks, to - 1)
        is_time = self._words[place + 1].low in awaiting or (time is not None and self._is_time(time))
        return to if is_time else None

    def _find_mark(self, place: int) -> int:
        """Return the place of the next punctuation."""
        ends = (at for at in range(place, len(self._words)) if self._words[at].tag in ("mark", "end"))
        return next(ends, len(self._words))

    def _find_subject(self, place: int) -> _Subject | None:
        """Return the subject that ends at a place; None without one, and for the player."""
        place = self._skip_left(place)
        while (word := self._at(place)) is not None and word.tag in ("modal", "be", "have", "neg"):
            if word.first:
                return None
            place = self._skip_left(place - 1)
        if word is not None and word.low in self._relative:
            place = self._skip_left(place - 1)
            found = self._read_subject(place - (self._words[place].tag == "mark"))
            host = find_chunk_at(self._chunks, self._find_sentence(place))
            is_led = found is not None and found.chunk is not None and _is_person(found.chunk)
            is_apart = self._words[place].tag == "mark" and host is not None and _is_person(host)
            # "An alpha, fresh out of the beta, who wants to act".
            return self._to_subject(host) if is_apart and not is_led else found
        if word is None or word.tag == "mark":
            # After an apposition: "Alpha, a beta of gamma, must".
            opening = self._find_sentence(place) if place >= 0 else -1
            return self._to_subject(find_chunk_at(self._chunks, opening))
        if word.low in self._grammar.words("goals", "indefinite") | {"someone", "somebody"}:
            return _Subject(place, place + 1, None)
        if word.tag == "pron":
            return self._to_subject(self._resolve_subject(word, place))
        return self._read_subject(place)

    def _read_subject(self, place: int) -> _Subject | None:
        """Return the phrase at a place with those that it belongs to: "gate 3 of the alpha"."""
        chunk = find_chunk_at(self._chunks, place)
        end = chunk.end if chunk is not None else place
        while chunk is not None and (chunk.is_after("prep") or chunk.owner is not None):
            if chunk.owner is not None:
                chunk = replace(chunk, start=chunk.owner.start, owner=chunk.owner.owner)
            else:
                numbered = self._words[chunk.start - 2].tag == "num"
                chunk = find_chunk_at(self._chunks, chunk.start - 2 - numbered)
        return None if chunk is None else _Subject(chunk.start, end, chunk)

    def _to_subject(self, chunk: Chunk | None) -> _Subject | None:
        return None if chunk is None else _Subject(chunk.start, chunk.end, chunk)

    @cached_property
    def _relative(self) -> frozenset[str]:
        return self._grammar.words("people", "who") | {"that"}

    def _resolve_subject(self, pronoun: Word, place: int) -> Chunk | None:
        """Return the phrase that a subject such as "it" or "they" means."""
        if pronoun.low == "it":
            return self._resolve_thing(place)
        as_object = {"they": "them", "he": "him", "she": "her"}.get(pronoun.low)
        meant = None if as_object is None else self._resolve(replace(pronoun, low=as_object), place)
        if meant is None or meant.belongs != "other":
            return meant
        # "Alpha, a beta's gamma".
        first = meant.start if meant.owner is None else meant.owner.start
        is_apart = first > 1 and self._words[first - 1].tag == "mark"
        named = find_chunk_at(self._chunks, first - 2) if is_apart else None
        return named if named is not None and named.names else None

    def _build_duty(self, subject: _Subject, place: int, trust: float) -> Aim | None:
        """Return the goal of the player that follows from a duty; None if it does not concern the player."""
        first = place
        while (word := self._at(place)) is not None and word.tag in ("neg", "adv"):
            place += 1
        if word is None or word.tag not in ("verb", "be") or word.first:
            return None
        is_negative = any(each.tag == "neg" for each in self._words[first:place])
        is_acting = word.tag == "verb" and not is_negative
        chunk = subject.chunk
        if self._words[subject.start].low in ("someone", "somebody"):
            # "Somebody has to act".
            return self._build_pursuit(place, trust) if is_acting and trust >= _OF_OTHERS else None
        if chunk is not None and self._acts_as_player(chunk) and is_acting:
            return self._build_pursuit(place, trust)
        is_own = chunk is None or chunk.belongs == "player" or chunk.start == self._chunks[0].start
        if trust < (_WISHED if is_own else _OF_OTHERS):
            return None
        return self._build_help(subject, place, trust, is_negative=is_negative)

    def _is_first_person(self, chunk: Chunk) -> bool:
        """Return True for the first person of the text, with or without the title before the name."""
        before = find_chunk_at(self._chunks, chunk.start - 1) if chunk.start else None
        is_titled = bool(chunk.names) and before is not None and before.start == self._first_person
        return _is_person(chunk) and (is_titled or chunk.start == self._first_person)

    def _find_named(self, chunk: Chunk) -> Chunk:
        """Return the name before a phrase that explains it: "Alpha the beta", "Alpha is a beta"."""
        at = chunk.start - 1
        if at > 0 and self._words[at].tag in ("be", "mark"):
            at -= 1
        named = find_chunk_at(self._chunks, at) if at >= 0 else None
        is_explained = named is not None and named.end == at + 1 and bool(named.names) and not chunk.names
        return named if is_explained and named is not None and chunk.definite == "det" else chunk

    def _acts_as_player(self, chunk: Chunk) -> bool:
        """Return True for a group of the player, and for the first person of a text without the player."""
        if not self._has_player and _is_person(chunk):
            chunk = self._find_named(chunk)
            if self.role is None and self._is_first_person(chunk):
                self.set_role(chunk)
            if self._is_same_role(chunk):
                return True
        return self._is_own_group(chunk)

    def _build_help(self, subject: _Subject, place: int, trust: float, *, is_negative: bool) -> Aim:
        """Return what the player does so that another does, or becomes, what it must."""
        word, chunk, end = self._words[place], subject.chunk, self._find_end(place)
        told, rest = self._write_subject(subject.start, subject.end), self._write_as_is(place + 1, end)
        verb, usual = "keep", "hold_out"
        is_none = self._words[subject.start].low in self._grammar.words("things", "none")
        if chunk is None or is_none:
            # "Nobody must be left behind".
            act = "is" if word.tag == "be" else _add_s(word.lemma)
            verb, text = "make", f"make sure that {told} {act} {rest}"
        elif is_negative:
            text = f"keep {told} from {add_ing(word.lemma)} {rest}"
        else:
            verb, rest, usual = self._split_duty(place, end)
            text = f"{verb} {told} {rest}"
        is_acting = word.tag == "verb" and not is_negative and chunk is not None and not is_none
        target = None if is_negative and chunk is not None and _is_person(chunk) else chunk
        if is_acting and self._is_of_pattern(word.lemma):
            target = self._find_object(place, end, "")
        goal = Goal(verb, None if target is None else target.to_phrase(), text.strip(" ,"))
        tail, act = self._list_tail(place + 1, end), word.lemma if is_acting else ""
        aim = Aim(place, end, trust, goal, tail, act, usual)
        if not is_negative or chunk is None or is_none:
            return aim
        act, tail = self._tell_prevented(chunk, word, tail)
        return self._mark_stopped(replace(aim, tail=tail, verb=act), chunk, place)

    def _build_pursuit(self, place: int, trust: float) -> Aim:
        """Return what the player does or must do as a goal; who looks for something wants to find it."""
        aim = self._build_aim(place, trust)
        seeking, rest = self._grammar.words("goals", "seeking"), aim.goal.text.split()[1:]
        if aim.goal.verb in seeking and rest[:1] == ["for"]:
            goal = replace(aim.goal, verb="find", text=" ".join(["find", *rest[1:]]), particle="")
            return replace(aim, goal=goal, verb="find", usual="find_out")
        base = self._words[place].lemma
        return replace(aim, goal=replace(aim.goal, text=" ".join([base, *rest])), usual="make_ready")

    @cached_property
    def _first_person(self) -> int:
        """Place of the first person of the text, or of the words before it that name its owner."""
        chunks = (one for one in self._chunks if one.has_class("person", "animal") or one.names)
        first = next(chunks, None)
        while first is not None and first.owner is not None:
            first = first.owner
        return -1 if first is None else first.start

    @cached_property
    def _has_player(self) -> bool:
        """True if any word of the text is the player, or what the player has."""
        own = self._grammar.pairs("perspective", "words")
        both = {*own, *own.values()}
        return any(word.tag == "player" or (word.tag == "poss" and word.low in both) for word in self._words)

    def _is_of_pattern(self, verb: str) -> bool:
        """Return True if a verb shows another pattern than getting a thing or a person ready."""
        patterns = self._grammar.rows("patterns").items()
        return any(row[0] == verb for name, rows in patterns if name != "make_ready" for row in rows)

    def _is_own_group(self, chunk: Chunk) -> bool:
        """Return True for a group of the player, also where it is named again: "my team", then "the team"."""
        heads = {
            one.head.lemma for one in self._chunks if one.belongs == "player" and one.start <= chunk.start
        }
        return chunk.has_class("group") and chunk.head.lemma in heads

    def _is_same_role(self, chunk: Chunk) -> bool:
        role = self.role_chunk
        return role is not None and (
            chunk is role or chunk.start == role.start or chunk.name == role.name != ""
        )

    def _write_subject(self, first: int, last: int) -> str:
        """Return the words of a subject, known by now: "the" instead of "a"."""
        text = self._write(first, last)
        head, _, rest = text.partition(" ")
        if head.lower() == "whose":
            return f"your {rest}"
        is_title = self._words[first].is_noun and self._words[last - 1].tag == "name"
        if is_title or self._words[first].tag == "name" or head[1:] != head[1:].lower():
            return text
        head = "the" if head.lower() in ("a", "an") else head.lower()
        return f"{head} {rest}".strip()

    def _split_duty(self, place: int, end: int) -> tuple[str, str, str]:
        """Return the verb of the player, the words after the subject, and the usual pattern."""
        word, after = self._words[place], self._at(place + 1)
        stays = word.lemma in self._grammar.words("goals", "staying")
        stays = stays and after is not None and after.tag in ("adj", "adv", "verb")
        if word.tag == "verb" and not stays:
            return "help", self._write(place, end), "make_ready"
        is_still = after is not None and after.low == "still"
        first = place + 1 + is_still
        state = self._at(first)
        lasts = (
            stays
            or is_still
            or (state is not None and state.low in self._grammar.words("goals", "states_to_keep"))
        )
        told = self._write_as_is(first, end)
        if not is_still and any(
            one.low in self._grammar.words("times", "only_points") for one in self._words[first:end]
        ):
            # "The alpha must be open by noon".
            lasts = state is not None and state.low in self._grammar.words("goals", "states_of_life")
        return ("keep", told, "hold_out") if lasts else ("get", told, "make_ready")
