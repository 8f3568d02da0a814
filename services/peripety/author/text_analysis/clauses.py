"""The role and the goals of the player, from the clauses of a tagged text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from peripety.author.text_analysis.phrases import Goal, Person, find_chunk_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from peripety.author.text_analysis.phrases import Chunk, Phrase
    from peripety.author.text_analysis.words import Grammar, Word

_DUTY, _WISH, _ORDER, _ALSO, _GERUND, _ASKED, _ACT, _MAY = 3.0, 3.0, 3.0, 2.0, 2.0, 1.5, 1.0, 0.5
TOLD = _ACT
"""The trust in what the player does without a duty, a wish or an order."""
_HAD = ("artifact", "possession", "communication", "object")
"""Classes of the things that "it" may mean."""
_MOST_WORDS = 18
_SPANISH_PLURALS = {"los", "las", "unos", "unas", "somos"}
_SPANISH_PRONOUNS = ("lo", "la", "los", "las", "le", "les")
_PREDICATES = ("verb", "be", "have", "modal")
_NEAR = 4
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
    """

    place: int
    end: int
    trust: float
    goal: Goal
    tail: tuple[str, ...]


def _find_base(verb: Word) -> str:
    """Return the base form of a verb, with a Spanish pronoun of a thing or a third person at its end."""
    text = verb.text.casefold()
    has_pronoun = verb.low == verb.lemma and text.removeprefix(verb.lemma) in _SPANISH_PRONOUNS
    return text if has_pronoun else verb.lemma


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
        relative = ahead[:1] != [] and ahead[0] in tables("people", "who")
        is_led = relative or (chunk.after is not None and chunk.after.tag == "prep")
        if chunk.definite and not (is_led and self._words[0].low in tables("sides", "anyone")):
            return False
        is_other = chunk.is_first_class("person.foe") or chunk.head.lemma in tables("people", "others")
        at_place = ahead[:1] != [] and ahead[0] in tables("things", "place") and ahead != ["on", "the", "run"]
        return not (is_other and at_place) and (relative or not self._has_predicate())

    def _has_predicate(self) -> bool:
        """Return True if the first clause has a verb that is not a participle."""
        clause = takewhile(lambda word: word.tag not in ("mark", "end"), self._words)
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
        person = chunk.has_class("person", "group", "animal") or addressed or self._grammar.code == "zh"
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
                self._asks(place) or self._has_particle(place)
            )
            if word.tag != "verb" or dull:
                continue
            trust = self._trust(place, aims)
            if trust and not self._is_reported(place) and not self._is_condition(place):
                aims.append(self._build_aim(place, trust))
        return aims

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
            return _DUTY if before is not None and before.lemma in purpose else 0
        return self._trust_led(left, word, duty)

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
        return Aim(place, end, trust, Goal(word.lemma, phrase, text, particle), tail)

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
        return Aim(first, end, trust, Goal(word.lemma, phrase, text), tail)

    def _find_end(self, place: int) -> int:
        """Return the place after the last word that belongs to the verb."""
        stops = self._grammar.words("goals", "stops")
        pairing = self._grammar.words("goals", "pairing")
        for end in range(place + 1, min(place + 1 + _MOST_WORDS, len(self._words))):
            word, after = self._words[end], self._at(end + 1)
            if word.tag == "end" or (word.tag == "mark" and word.text != '"'):
                return end
            if end > place + 1 and word.low in stops:
                return end
            is_pair = any(each.low in pairing for each in self._words[place:end])
            if (
                word.tag == "conj"
                and not is_pair
                and after is not None
                and after.tag in ("player", "pron", "det", "poss", "name")
            ):
                return end
        return min(place + 1 + _MOST_WORDS, len(self._words))

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

    def _write_last(self, place: int, end: int) -> str:
        """Return an order as an infinitive whose verb is last."""
        rest = "".join(self._iter_written(place + 1, end)).split()
        separate = self._words[end - 1].tag == "particle"
        told = " ".join([*rest[: len(rest) - separate], self._words[place].lemma])
        if end + 1 < len(self._words) and self._words[end].tag == "mark" and self._words[end + 1].tag == "wh":
            told += "".join(self._iter_written(end, self._find_end(end + 1)))
        return told

    def _iter_written(self, place: int, end: int) -> Iterator[str]:
        seen = self._grammar.pairs("perspective", "words")
        for at in range(place, end):
            word = self._words[at]
            text = _find_base(word) if at == place and word.tag == "verb" else seen.get(word.low, word.text)
            glued = at > place and self._words[at - 1].end == word.start
            yield text if glued or at == place else f" {text}"
