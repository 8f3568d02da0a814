"""The people, places, supplies and dangers among the noun phrases of a text."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from peripety.author.text_analysis.phrases import Chunk, Person
from peripety.author.text_analysis.sides import (
    ABSENT,
    AGAINST,
    UNABLE,
    find_side,
    find_wish,
    has_doubts,
    is_faulty,
    is_idiom,
    is_own,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.author.text_analysis.phrases import Phrase
    from peripety.author.text_analysis.words import Grammar, Word

_THING = (
    "artifact",
    "food",
    "substance",
    "possession",
    "Tops",
    "communication",
    "plant",
    "quantity.money",
    "animal",
)
_CONSUMED = ("food", "substance")
"""Classes of what is used up."""
_PLACE = ("artifact.place", "location", "object", "group.people")
_HARM = ("phenomenon.weather", "event.harm", "state.harm", "act.harm")
_PERSONAL = tuple((name,) for name in ("communication", "cognition", "emotion", "social", "possession"))
_NEAR = 2
_TAKEN = 4
"""The number of words after a verb of taking that may contain the thing."""
_OWNED = ("artifact", "possession", "communication", "object", "animal", "plant", "substance", "food")
"""Classes of what a person who takes no part may own."""
_REPAIRED = frozenset(
    {"artifact", "object", "possession", "process", "body", "communication", "quantity", "substance"}
)
"""Classes of things that can be in a bad state; the class of a thing may be that of another sense."""


def _list_titles(chunk: Chunk) -> tuple[str, str]:
    """Return the noun of a role without and with the nouns before it: "beta", "alpha beta"."""
    head = chunk.head.lemma
    return head, " ".join([*(word.low for word in chunk.nouns[:-1]), head])


class ThingReader:
    """Choice of a part for each noun phrase of one text."""

    def __init__(
        self,
        words: Sequence[Word],
        chunks: Sequence[Chunk],
        grammar: Grammar,
        *,
        role: Chunk | None,
        span: tuple[int, int],
        goal: tuple[int, int],
    ) -> None:
        self._words, self._grammar, self._role = words, grammar, role
        self._span, self._goal = span, goal
        self._chunks = chunks
        self.people: list[Person] = []
        self.places: list[Chunk] = []
        self.supplies: list[Chunk] = []
        self.dangers: list[Chunk] = []
        self.unread: list[Chunk] = []
        self.worn: list[Chunk] = []
        self.charges: list[Chunk] = []
        for chunk in chunks:
            self._sort(chunk)

    def _sort(self, chunk: Chunk) -> None:
        owned = self._role.of if self._role is not None and self._grammar.code != "en" else None
        if chunk is owned or self._is_player(chunk) or is_idiom(chunk, self._words, self._grammar):
            return
        if self._is_time(chunk) and not self._must_not_know(chunk):
            self._add_season(chunk)
        elif self._is_person(chunk) and not self._is_measured(chunk):
            if not self._says_what(chunk) and not self._takes_no_part(chunk):
                self._add_person(chunk)
            if self._is_rival(chunk):
                self._add(self.dangers, chunk)
        else:
            self._sort_thing(chunk)

    def _sort_thing(self, chunk: Chunk) -> None:
        is_worn = self._is_worn(chunk)
        if is_worn:
            self._add(self.worn, chunk)
        elif chunk.is_first_class("animal") and find_side(chunk, self._words, self._grammar) == UNABLE:
            self._add(self.charges, chunk)
        if self._is_measured(chunk):
            self._add(self.supplies, chunk)
        elif (
            not is_worn
            and self._threatens(chunk)
            and (chunk.is_first_class(*_HARM) or not self._is_scarce(chunk))
        ):
            self._add(self.dangers, chunk)
        elif self._is_supply(chunk):
            self._add(self.supplies, self._find_content(chunk))
        elif self._is_place(chunk):
            self._add(self.places, chunk)
        elif (
            chunk not in self.supplies
            and (chunk.definite or chunk.names or chunk.is_plural or chunk.is_first_class(*_CONSUMED))
            and not self._goal[0] <= chunk.start < self._goal[1]
            and chunk.head.lemma not in self._grammar.words("people", "vague")
        ):
            self.unread.append(chunk)

    def _find_content(self, chunk: Chunk) -> Chunk:
        """Return what a single container holds: "water" of "a bottle of water"; else the phrase itself."""
        is_one = chunk.count in (None, 1) and not chunk.is_plural and chunk.is_first_class("artifact")
        is_used_up = chunk.of is not None and chunk.of.is_first_class(*_CONSUMED)
        return chunk.of if chunk.of is not None and is_one and is_used_up else chunk

    def _is_worn(self, chunk: Chunk) -> bool:
        """Return True for a thing in a bad state: "the old thing", "the thing is broken", "it has failed"."""
        kind = chunk.sense.partition(".")[0]
        owner = chunk.owner
        is_machine = chunk.definite == "det" and chunk.has_class("artifact")
        is_part = owner is not None and not self._is_person(owner)
        if kind == "body" and len(chunk.nouns) == 1 and not is_part and not is_machine:
            # Only a part of a machine is repaired.
            return False
        if not chunk.nouns or (chunk.classes and kind not in _REPAIRED):
            # A broken thing is not a person, whatever the first sense of its noun.
            return (
                kind == "person"
                and not self._is_person(chunk)
                and is_faulty(chunk, self._words, self._grammar)
            )
        bad = self._grammar.words("things", "faulty")
        if any(word.low in bad for word in chunk.adjectives):
            return True
        aged = self._grammar.words("things", "aged")
        is_single = chunk.count is None or chunk.count <= 1
        if kind not in ("plant", "substance") and any(word.low in aged for word in chunk.adjectives):
            # A plant may be old without a fault, and old things in a number are what the player has.
            return is_single
        # The words after "the alpha of the beta" are about the alpha.
        is_last = any(other.of is chunk for other in self._chunks)
        return not is_last and is_faulty(chunk, self._words, self._grammar)

    def _add(self, row: list[Chunk], chunk: Chunk) -> None:
        if not any(each.head.lemma == chunk.head.lemma and each.name == chunk.name for each in row):
            row.append(chunk)

    def _is_time(self, chunk: Chunk) -> bool:
        low = chunk.head.low
        times = self._grammar.pairs("times", "units").keys() | self._grammar.pairs("times", "points").keys()
        if self._grammar.code == "zh" and any(noun.low in times for noun in chunk.nouns):
            return True
        return low in times or (chunk.is_first_class("time") and not chunk.names)

    def _add_season(self, chunk: Chunk) -> None:
        """Add the danger that gives a time its name."""
        harm = self._grammar.words("things", "harm")
        first = [word for word in chunk.nouns[:-1] if word.lemma in harm]
        if first:
            self._add(self.dangers, Chunk(chunk.start, chunk.end, nouns=first[:1]))

    def _is_measured(self, chunk: Chunk) -> bool:
        """Return True if a share of it is given: "the thing is at 40 percent"."""
        if chunk.is_first_class("person") or not chunk.nouns:
            return False
        ahead = [self._words[place] for place in range(chunk.end, min(chunk.end + 4, len(self._words)))]
        shares = self._grammar.words("times", "percent")
        for word, after in zip(ahead, [*ahead[1:], None], strict=False):
            if word.tag in ("end", "mark", "verb", "conj"):
                return False
            if word.tag == "num":
                return word.text.endswith("%") or (after is not None and after.low in shares) or after is None
        return False

    def _word(self, place: int) -> Word | None:
        return self._words[place] if 0 <= place < len(self._words) else None

    def _is_person(self, chunk: Chunk) -> bool:
        head = chunk.head
        if not chunk.nouns:
            return self._has_role_after(chunk) or self._is_named_person(chunk)
        is_bare = not (chunk.definite or chunk.names or chunk.is_plural or chunk.adjectives or chunk.owner)
        if self._grammar.code == "en" and is_bare and chunk.is_first_class("group") and not self._acts(chunk):
            # Without an article it is an institution: "leave for university".
            return False
        if self._grammar.verbs_last and is_bare and chunk.is_after("be"):
            # An event that takes place, or what a person before it is.
            return False
        is_broken = not chunk.names and is_faulty(chunk, self._words, self._grammar)
        is_vague = head.lemma in self._grammar.words("people", "vague")
        return not is_vague and not is_broken and self._is_person_noun(chunk)

    def _is_person_noun(self, chunk: Chunk) -> bool:
        head = chunk.head
        if chunk.names and head.classes and not chunk.has_class("person", "group.people"):
            # Senses of other languages are estimates.
            is_own = self._grammar.code != "en" and chunk.definite == "poss" and not chunk.has_class("animal")
            is_acting = chunk.after is not None and chunk.after.tag in ("verb", "modal", "be", "have")
            return self._is_title(chunk) or (is_own and is_acting)
        if chunk.is_first_class("person"):
            # A thing by its other sense may be entered.
            entered = chunk.before is not None and chunk.before.low in self._grammar.words(
                "things", "entering"
            )
            return not (entered and chunk.has_class("artifact"))
        if chunk.is_first_class("group.people"):
            return self._is_group(chunk)
        if chunk.has_class("person"):
            # A plural such as "backups" is one of things, unless it does what only persons do.
            is_thing = self._grammar.code == "en" and (chunk.is_first_class("artifact") or chunk.is_plural)
            acts = self._does(chunk) if is_thing else chunk.definite == "poss" or self._acts(chunk)
            return not self._is_after_place(chunk) and acts
        if self._is_naming(self._word(chunk.end)):
            return not head.classes
        is_foe = chunk.is_first_class("group") and find_side(chunk, self._words, self._grammar) == AGAINST
        return is_foe or self._is_like_person(chunk)

    def _is_group(self, chunk: Chunk) -> bool:
        """Return True if a noun of groups means persons here."""
        if chunk.of is not None and chunk.of.is_first_class("animal"):
            return False
        if self._grammar.code == "en" and chunk.has_class("artifact", "plant", "object"):
            # A thing by its other sense is a group only if it does what persons do.
            return self._does(chunk)
        if self._grammar.code == "zh" and chunk.belongs == "player" and not self._acts(chunk):
            # Its class is an estimate, and nothing in the text shows a person.
            return False
        return not self._is_after_place(chunk)

    def _is_like_person(self, chunk: Chunk) -> bool:
        """Return True for an unknown noun that the text uses as one of a person."""
        head = chunk.head
        if chunk.definite == "det" and self._grammar.code != "en" and self._must_not_know(chunk):
            return True
        agent = head.low.endswith(tuple(self._grammar.words("people", "ends")))
        certain = self._acts(chunk) or (self._grammar.code != "en" and chunk.definite in ("num", "poss"))
        return not head.classes and agent and certain

    def _does(self, chunk: Chunk) -> bool:
        """Return True if a verb of persons alone follows."""
        after = self._word(chunk.end)
        return after is not None and after.tag == "verb" and after.classes[:1] in _PERSONAL

    def _acts(self, chunk: Chunk) -> bool:
        """Return True if a verb of a person follows."""
        after = self._word(chunk.end)
        if after is not None and after.tag == "conj" and self._grammar.code == "zh":
            # A word such as "but" is behind the subject.
            after = self._word(chunk.end + 1)
            if after is not None and after.tag == "verb":
                return True
        if after is None:
            return False
        return (
            self._does(chunk)
            or after.tag in ("be", "modal")
            or after.low in self._grammar.words("people", "who")
        )

    def _must_not_know(self, chunk: Chunk) -> bool:
        """Return True if the clause is about what the phrase does not notice, as only persons do."""
        before = self._word(chunk.start - 1)
        hidden = before is not None and before.low in self._grammar.words("sides", "hiding")
        return hidden and find_side(chunk, self._words, self._grammar) == AGAINST

    def _has_role_after(self, chunk: Chunk) -> bool:
        """Return True for a name with a role right after it: "Alpha the cook"."""
        role = next((one for one in self._chunks if one.start == chunk.end), None)
        is_one = role is not None and role.definite == "det" and not role.is_plural
        return is_one and role is not None and role.has_class("person")

    def _is_named_person(self, chunk: Chunk) -> bool:
        if "location" in chunk.names[-1].classes or self._is_after_place(chunk):
            return False
        if any(other.of is chunk and not self._is_person(other) for other in self._chunks):
            return False
        before, after = chunk.before, chunk.after
        if chunk.names[0].low in self._grammar.words("people", "titles") or self._is_naming(before):
            return True
        noun = next((one for one in self._chunks if one.start == chunk.end + 1), None)
        if after is not None and after.tag == "mark" and noun is not None and noun.has_class("person"):
            # "Alpha, head of the beta, wants ..."
            return True
        is_last = after is not None and after.tag in ("adv", "prep", "end", "mark")
        if chunk.definite == "det" and is_last and not chunk.name.endswith("s"):
            # A name with an article is one of a region or a thing.
            return False
        subject = after is not None and after.tag in ("verb", "be", "modal", "have", "conj", "adv", "owner")
        target = before is not None and before.tag in ("verb", "conj", "prep", "mark", "det", "owner", "adj")
        return subject or target

    def _is_title(self, chunk: Chunk) -> bool:
        return chunk.names[0].low in self._grammar.words("people", "titles")

    def _is_naming(self, word: Word | None) -> bool:
        return word is not None and word.low in self._grammar.words("people", "naming")

    def _is_after_place(self, chunk: Chunk) -> bool:
        before = chunk.before
        return before is not None and before.low in self._grammar.words("things", "place")

    def _takes_no_part(self, chunk: Chunk) -> bool:
        """Return True for a person who is dead, or whom a phrase names only as the owner of a thing."""
        dead = self._grammar.words("sides", "dead")
        after = self._words[chunk.end : chunk.end + _NEAR]
        if any(word.low in dead or word.lemma in dead for word in (*chunk.adjectives, *after)):
            return True
        if chunk.is_plural or chunk.names or self._grammar.code == "zh":
            return False
        if chunk.belongs == "other" and self._span[0] < chunk.start < self._span[1]:
            # The words about the end of the time name whose person it is only by a pronoun.
            return True
        is_owner = any(
            other.owner is chunk or (other.of is chunk and self._grammar.code != "en")
            for other in self._chunks
            if other.is_first_class(*(_OWNED if chunk.belongs else ()), "act", "event", "person")
        )
        is_any = self._words[chunk.start].low in self._grammar.words("sides", "anyone")
        return is_owner or (
            is_any and any(one.of is chunk for one in self._chunks if one.is_first_class(*_OWNED))
        )

    def _says_what(self, chunk: Chunk) -> bool:
        """Return True if the phrase only describes a person before it: "my sister is the guide"."""
        described = (
            other
            for other in self._chunks
            if chunk.start - 1 in (other.end, other.of.end if other.of else -1)
        )
        host = next((one for one in self._chunks if one.end == chunk.start and one.belongs == "player"), None)
        if host is not None and chunk.definite == "det" and not chunk.is_plural:
            # "My sister the guide".
            return self._is_person(host)
        if self._is_in_brackets(chunk):
            return True
        return chunk.is_after("be") and any(self._is_person(other) for other in described)

    def _is_in_brackets(self, chunk: Chunk) -> bool:
        """Return True for what a person is, in brackets right after it: "my sister (a guide)"."""
        host = next((one for one in self._chunks if one.end == chunk.start - 1), None)
        is_open = chunk.before is not None and chunk.before.text == "("
        return is_open and host is not None and not chunk.names and self._is_person(host)

    def _add_person(self, chunk: Chunk) -> None:
        gap = "" if self._grammar.code == "zh" else " "
        first = (word.text if word.tag == "name" else word.low for word in chunk.nouns[:-1])
        role = gap.join([*first, chunk.head.lemma]) if chunk.nouns else ""
        if chunk.nouns and self._grammar.code == "de":
            role = chunk.head.lemma
        side = ABSENT if self._is_awaited(chunk) else find_side(chunk, self._words, self._grammar)
        name = chunk.name
        if self._is_naming(chunk.before) or (
            not role and chunk.before is not None and chunk.before.text == ","
        ):
            last = self.people[-1] if self.people else None
            host = self._find_host(chunk)
            if host and last is not None and not last.name:
                wish = find_wish(chunk, self._words, self._grammar)
                doubts = last.doubts or bool(wish) or has_doubts(chunk, self._words, self._grammar)
                self.people[-1] = replace(
                    last, name=name, side=last.side or side, wish=last.wish or wish, doubts=doubts
                )
                return
        if self._renames_last(chunk) or self._follows_name(chunk):
            last = self.people[-1]
            self.people[-1] = replace(last, name=name or last.name, role=role, side=last.side or side)
            return
        group = chunk.is_plural or (chunk.has_class("group.people") and not chunk.names)
        count = int(chunk.count) if chunk.count and chunk.count >= 1 else self._count_after(chunk)
        if chunk.is_plural and self._words[chunk.start].low in self._grammar.words("people", "pair"):
            count = 2
        if count > 1:
            group = True
        wish = find_wish(chunk, self._words, self._grammar)
        doubts = bool(wish) or has_doubts(chunk, self._words, self._grammar)
        refusal = find_wish(chunk, self._words, self._grammar, rows="refusing")
        is_leaving = wish.partition(" ")[0] in self._grammar.words("goals", "parting")
        leaves = is_leaving or has_doubts(chunk, self._words, self._grammar, "leaving")
        owner = self._name_owner(chunk) if role and not name else ""
        person = Person(name, role, group, count, side, chunk.is_plural, wish, doubts, refusal, leaves, owner)
        if self._role is not None and not name and self._role.nouns and role in _list_titles(self._role):
            return
        for place, other in enumerate(self.people):
            if (name and name == other.name) or (role and role == other.role and not (name and other.name)):
                self.people[place] = Person(
                    other.name or name,
                    other.role or role,
                    other.is_group or group,
                    max(other.count, count),
                    other.side or side,
                    other.is_plural or chunk.is_plural,
                    other.wish or wish,
                    other.doubts or doubts,
                    other.refusal or refusal,
                    other.leaves or leaves,
                    other.owner or owner,
                )
                return
        self.people.append(person)

    def _name_owner(self, chunk: Chunk) -> str:
        """Return the words before an English person that name whose person it is: "the alpha's"."""
        owner = chunk.owner
        if owner is None or self._grammar.code != "en":
            return ""
        own = "your " if owner.belongs == "player" else ""
        end = owner.names[-1] if owner.names else owner.nouns[-1]
        words = [*(word.low for word in owner.nouns[:-1]), *(word.text for word in owner.names)]
        words += [owner.head.low] if owner.nouns else []
        is_many = owner.is_plural and end.low.endswith("s")
        return f"{own}{' '.join(words)}\u2019{'' if is_many else 's'}"

    def _follows_name(self, chunk: Chunk) -> bool:
        """Return True for the role of the last person, right after its name: "Alpha the cook"."""
        last = self.people[-1] if self.people else None
        named = next((one for one in self._chunks if one.end == chunk.start and not one.nouns), None)
        is_same = last is not None and named is not None and named.name == last.name and not last.role
        return is_same and chunk.definite == "det" and not (chunk.is_plural or chunk.names)

    def _renames_last(self, chunk: Chunk) -> bool:
        """Return True for a name between commas: "the witness, the cook Alpha, is afraid"."""
        last = self.people[-1] if self.people else None
        mark, then = self._word(chunk.end), self._word(chunk.end + 1)
        is_closed = (
            mark is not None and mark.text == "," and then is not None and then.tag in ("be", "have", "modal")
        )
        is_opened = chunk.before is not None and chunk.before.text == ","
        is_one = last is not None and not last.name and not last.is_group and bool(chunk.names)
        return is_one and is_opened and is_closed and self._find_host(chunk)

    def oppose_enders(self, goal: tuple[int, int]) -> None:
        """Put persons who want to end what a goal saves on the side against the player.

        Their wish has a verb of harm, and the thing or a pronoun of a thing as its object.

        Args:
            goal: the places of the words of the goal.
        """
        told = {word.low for word in self._words[goal[0] : goal[1]] if word.is_noun}
        things = told | self._grammar.words("sides", "things")
        # A thing with "your" in a wish belongs to the player.
        things |= {
            seen
            for word, seen in self._grammar.pairs("perspective", "words").items()
            if self._grammar.tags.get(word) == "poss"
        }
        ending = self._grammar.words("sides", "ending")
        for place, person in enumerate(self.people):
            words = person.wish.casefold().split()
            if not person.side and not ending.isdisjoint(words) and not things.isdisjoint(words):
                self.people[place] = replace(person, side=AGAINST)

    def oppose_person(self, stopped: Phrase) -> None:
        """Put a person whose act a goal prevents against the player, unless it is one of the player.

        Args:
            stopped: the phrase of the person.
        """
        words = stopped.text.casefold().split()
        for place, person in enumerate(self.people):
            role = person.role.casefold().split(" ")[-1]
            is_named = person.name == stopped.text if person.name else role in (stopped.head, *words)
            if not person.side and is_named and stopped.belongs != "player":
                self.people[place] = replace(person, side=AGAINST)

    def oppose_takers(self, head: str) -> None:
        """Put persons who took or hold the thing of a goal on the side against the player.

        Args:
            head: the lemma of the head of the thing.
        """
        taking = self._grammar.words("sides", "taking")
        things = {head, *self._grammar.words("sides", "things")}
        for chunk in self._chunks:
            clause = [*takewhile(lambda word: word.tag not in ("mark", "end"), self._words[chunk.end :])]
            verb = next((at for at, word in enumerate(clause) if word.tag not in ("have", "adv")), None)
            if verb is None or clause[verb].lemma not in taking:
                continue
            if any({word.low, word.lemma} & things for word in clause[verb + 1 : verb + _TAKEN]):
                for place, person in enumerate(self.people):
                    if not person.side and self._names_person(chunk, person):
                        self.people[place] = replace(person, side=AGAINST)

    def oppose_sources(self, goal: tuple[int, int]) -> None:
        """Put the persons whom a goal takes something from on the side against the player.

        Args:
            goal: the places of the words of the goal.
        """
        sources = [
            chunk
            for chunk in self._chunks
            if goal[0] < chunk.start < goal[1]
            and self._words[chunk.start - 1].low in self._grammar.words("things", "off")
        ]
        for place, person in enumerate(self.people):
            if not person.side and any(self._names_person(chunk, person) for chunk in sources):
                self.people[place] = replace(person, side=AGAINST)

    def oppose_owners(self, head: str, goal: tuple[int, int], *, is_taken: bool) -> bool:
        """Put the owners of what a goal takes or stops on the side against the player, if they have none.

        An owner has, makes or holds a thing of this head: "their thing", or "they have built a thing".

        Args:
            head: the lemma of the head of the thing.
            goal: the places of the words of the goal.
            is_taken: True if the opponents may hold a thing of the player.

        Returns:
            True if the text names an owner who is against the player.
        """
        owners = [
            owner
            for chunk in self._chunks
            if chunk.nouns
            and chunk.head.lemma == head
            and (owner := self._find_owner(chunk, goal, is_taken=is_taken)) is not None
        ]
        found = False
        for place, person in enumerate(self.people):
            if any(self._names_person(owner, person) for owner in owners) and person.side in ("", AGAINST):
                self.people[place] = replace(person, side=AGAINST)
                found = True
        return found

    def _names_person(self, chunk: Chunk, person: Person) -> bool:
        """Return True if a phrase is that of a person."""
        if person.name and person.name == chunk.name:
            return True
        return bool(chunk.nouns) and person.role.split(" ")[-1].endswith(chunk.head.lemma)

    def _find_owner(self, chunk: Chunk, goal: tuple[int, int], *, is_taken: bool) -> Chunk | None:
        """Return the phrase of the persons who own a thing; None for the player or an unknown owner."""
        if is_own(chunk, self._words, self._grammar) and not is_taken:
            return None
        people = [
            other
            for other in self._chunks
            if other is not chunk
            and other is not self._role
            and other.nouns
            and self._is_person(other)
            and not is_own(other, self._words, self._grammar)
        ]
        if chunk.owner is not None:
            return chunk.owner if chunk.owner in people else None
        if (maker := self._find_maker(chunk, people)) is not None:
            return maker
        if chunk.belongs == "other" and self._words[chunk.start].tag == "poss":
            earlier = [other for other in people if other.end <= chunk.start]
            plural = [other for other in earlier if other.is_plural]
            return next(iter([*reversed(plural), *reversed(earlier)]), None)
        is_goal = goal[0] <= chunk.start < goal[1]
        return None if is_goal else self._find_holder(chunk, people)

    def _find_holder(self, chunk: Chunk, people: Sequence[Chunk]) -> Chunk | None:
        """Return the subject of the clause about a thing: "they have built a thing"."""
        clause = self._words[self._find_clause(chunk.start) : chunk.start]
        if any(word.tag in ("player", "modal") for word in clause if not self._owns_phrase(word)):
            return None
        start = chunk.start - len(clause)
        led = [
            other
            for other in people
            if start <= other.start < chunk.start
            and not other.is_after("prep")
            and any(word.tag in ("verb", "have") for word in self._words[other.end : chunk.start])
        ]
        return led[0] if led else None

    def _find_maker(self, chunk: Chunk, people: Sequence[Chunk]) -> Chunk | None:
        """Return the subject of a relative clause about a thing: "the thing that they built"."""
        link = self._word(chunk.end)
        links = self._grammar.words("people", "who") | {"that", "which"}
        if link is None or link.low not in links:
            return None
        maker = next((other for other in people if other.start in (chunk.end, chunk.end + 1)), None)
        verb = self._word(maker.end) if maker is not None else None
        return maker if verb is not None and verb.tag in ("verb", "have") else None

    def _owns_phrase(self, word: Word) -> bool:
        """Return True for a pronoun before a mark of an owner, as in Chinese."""
        place = next(at for at, each in enumerate(self._words) if each is word)
        return any(each.tag == "owner" for each in self._words[place : place + _NEAR + 1])

    def _find_clause(self, place: int) -> int:
        """Return the place of the first word of a clause; a verb after "and" has the subject before it."""
        while place and self._words[place - 1].tag not in ("mark", "end"):
            if self._words[place - 1].tag == "conj" and self._words[place].tag != "verb":
                break
            place -= 1
        return place

    def _find_host(self, chunk: Chunk) -> bool:
        """Return True if a person is right before the mark or the word that introduces a name."""
        return any(
            other.end == chunk.start - 1 and other.nouns and self._is_person(other) for other in self._chunks
        )

    def _count_after(self, chunk: Chunk) -> int:
        of, number = self._word(chunk.end), self._word(chunk.end + 1)
        if not chunk.is_plural and not chunk.has_class("group"):
            # The number is an age.
            return 1
        if of is not None and number is not None and of.low in self._grammar.words("things", "of"):
            return int(self._grammar.numbers.get(number.low, 1) or 1)
        return 1

    def _is_rival(self, chunk: Chunk) -> bool:
        if chunk.is_first_class("artifact.place") and self._is_after_place(chunk):
            # The player is in it.
            return False
        bad = self._grammar.words("things", "bad")
        return any(word.low in bad for word in chunk.adjectives) or bool(
            {word.low for word in chunk.nouns} & bad
        )

    def _threatens(self, chunk: Chunk) -> bool:
        if chunk.is_first_class("person") or self._is_awaited(chunk):
            return False
        if chunk.is_first_class("group", "artifact") and is_own(chunk, self._words, self._grammar):
            # A thing that the player leads may fail, but it does not threaten.
            return False
        if chunk.definite == "poss" and chunk.is_first_class("artifact") and not self._is_rival(chunk):
            # A thing of the player may fail, but it does not threaten.
            return False
        before = chunk.before
        harm = self._grammar.words("things", "harm")
        named = chunk.head.lemma.lower() in harm or chunk.is_first_class(*_HARM)
        first = chunk.nouns[0] if len(chunk.nouns) > 1 else None
        if first is not None and first.classes[:1] == ("animal",) and self._is_subject(chunk):
            # Animals in a number: "a wolf pack has come".
            named = named or first.lemma in harm
        weather = chunk.has_class("phenomenon.weather") and (before is None or before.tag != "prep")
        against = before is not None and before.low in self._grammar.words("things", "against")
        return (
            self._is_rival(chunk)
            or named
            or weather
            or against
            or self._swarms(chunk)
            or self._attacks(chunk)
        )

    def _is_subject(self, chunk: Chunk) -> bool:
        """Return True if the clause begins with the phrase, and its verb follows."""
        before, after = chunk.before, self._word(chunk.end)
        opens = before is None or before.tag in ("mark", "end", "conj")
        return opens and after is not None and after.tag in ("be", "have", "verb", "modal")

    def _swarms(self, chunk: Chunk) -> bool:
        """Return True for animals that the text only names, without an owner or a number."""
        alone = chunk.before is None or chunk.before.tag in ("mark", "end", "conj")
        return chunk.is_first_class("animal") and chunk.is_plural and not chunk.definite and alone

    def _attacks(self, chunk: Chunk) -> bool:
        """Return True if the phrase is the subject of a verb of harm."""
        if chunk.before is not None and chunk.before.tag in ("prep", "verb"):
            return False
        if len(chunk.nouns) > 1 and chunk.nouns[0].low in self._grammar.words("things", "helping"):
            # It brings help, and may come.
            return False
        place, is_state = chunk.end, False
        passing = self._grammar.words("sides", "passing")
        while (verb := self._word(place)) is not None and (
            verb.tag in ("be", "have", "adv", "modal") or verb.lemma in passing
        ):
            is_state = is_state or (verb.tag in ("be", "have") and chunk.is_first_class("artifact"))
            place += 1
        if verb is None or verb.tag != "verb" or (is_state and not verb.low.endswith("ing")):
            return False
        attacks = self._grammar.words("things", "attack") | self._grammar.words("sides", "harming")
        return verb.lemma in attacks

    def _is_awaited(self, chunk: Chunk) -> bool:
        """Return True for the end of a wait: "until the thing comes"."""
        if not self._span[0] < chunk.start < self._span[1]:
            return False
        return self._words[self._span[0]].low in self._grammar.words("times", "awaiting")

    def _is_supply(self, chunk: Chunk) -> bool:
        is_money = chunk.sense == "possession.money" or bool(chunk.currency)
        if is_money or (chunk.sense == "quantity.money" and chunk.definite):
            return True
        if chunk.head.lemma.lower() in self._grammar.words("things", "money") and chunk.count:
            return True
        thing = chunk.is_first_class(*_THING) and not chunk.is_first_class("artifact.place")
        if self._runs_out(chunk):
            return not chunk.is_first_class("person", "location", "time")
        thing = thing or (self._grammar.code != "en" and not chunk.classes)
        is_set = chunk.head.lemma in self._grammar.words("things", "sets") and chunk.of is None
        # One single text, name or sign is not used up.
        is_text = chunk.is_first_class("communication") and not chunk.has_class(*_CONSUMED)
        is_told = is_text and not chunk.is_plural and chunk.count is None
        loose = (
            is_set
            or (is_told and self._grammar.code == "en" and bool(chunk.definite))
            or (chunk.is_first_class("animal") and chunk.definite != "num")
        )
        if not thing or loose or not chunk.nouns or self._span[0] <= chunk.start < self._span[1]:
            return False
        lasting = self._grammar.words("things", "lasting")
        if self._grammar.code == "zh" and (self._is_owner_of_role(chunk) or chunk.head.low in lasting):
            return False
        return any(
            (
                self._lasts(chunk),
                self._is_for_time(chunk),
                self._is_scarce(chunk),
                self._is_held(chunk),
                self._is_listed(chunk),
            )
        )

    def _runs_out(self, chunk: Chunk) -> bool:
        """Return True if it is the subject of a verb of running out."""
        ahead = [
            word.low
            for word in self._words[chunk.end : chunk.end + 4]
            if word.tag not in ("be", "adv", "have")
        ]
        return " ".join(ahead[:2]) in self._grammar.words("things", "ending") and bool(chunk.nouns)

    def _lasts(self, chunk: Chunk) -> bool:
        """Return True if its duration is given: "the thing for three days"."""
        after, units = self._word(chunk.end), self._grammar.pairs("times", "units")
        ahead = [self._words[place].low for place in range(chunk.end, min(chunk.end + 4, len(self._words)))]
        close = {
            word.low
            for word in self._words[
                chunk.end : chunk.end + 1 + (after is not None and after.tag in ("have", "adv"))
            ]
        }
        lasting = bool(close & self._grammar.words("things", "lasting"))
        if (
            lasting
            and after is not None
            and after.tag == "verb"
            and ahead[1:]
            and self._words[chunk.end + 1].tag == "adv"
        ):
            ahead += [word.low for word in self._words[chunk.end + 4 : chunk.end + 5]]
        return lasting and any(word in units for word in ahead)

    def _is_for_time(self, chunk: Chunk) -> bool:
        """Return True if it is counted in units of time: "nine days of it", "nine days' worth of it"."""
        of = self._grammar.words("things", "of")
        units = self._grammar.pairs("times", "units")
        left = self._word(chunk.start - 2)
        if chunk.before is None or chunk.before.low not in of or left is None:
            return False
        near = self._words[max(chunk.start - _NEAR - 3, 0) : chunk.start - 2]
        is_amount = left.low in self._grammar.words("things", "amounts")
        return left.low in units or (is_amount and any(word.low in units for word in near))

    def _is_player(self, chunk: Chunk) -> bool:
        """Return True for the role of the player, its name again, and what follows it: "Alpha, a beta"."""
        role = self._role
        if role is None or chunk is role:
            return role is not None
        is_named_again = not chunk.nouns and chunk.name == role.name
        follows = chunk.start == role.end + 1 and chunk.before is not None and chunk.before.text == ","
        return bool(role.names) and (is_named_again or (follows and chunk.definite == "det"))

    def _is_owner_of_role(self, chunk: Chunk) -> bool:
        """Return True if the role of the player comes from it: "head of the thing"."""
        return self._role is not None and self._role.owner is chunk

    def _is_scarce(self, chunk: Chunk) -> bool:
        """Return True if a word beside it shows that it can run out."""
        stock = self._grammar.words("things", "stock")
        places = range(max(chunk.start - _NEAR, 0), chunk.start)
        near = [self._words[place].low for place in places if not self._is_origin(place)]
        after = self._word(chunk.end) if not self._is_origin(chunk.end) else None
        return (
            bool(stock.intersection(near))
            or bool(stock.intersection(word.low for word in chunk.adjectives))
            or (after is not None and after.low in stock)
        )

    def _is_origin(self, place: int) -> bool:
        """Return True for the first word of "out of" that names what a thing is made of, or where it is."""
        word, then, before = self._word(place), self._word(place + 1), self._word(place - 1)
        is_pair = word is not None and then is not None and (word.low, then.low) == ("out", "of")
        return is_pair and before is not None and (before.is_noun or before.tag == "adv")

    def _is_held(self, chunk: Chunk) -> bool:
        """Return True if the player has it, or the text counts it."""
        before, things = chunk.before, self._grammar.words
        if chunk.owner is not None and chunk.owner.head.low in self._grammar.pairs("times", "units"):
            return True
        if before is not None and before.tag == "have":
            return self._is_player_before(chunk)
        if before is not None and before.low in things("things", "having"):
            return True
        led = before is not None and (before.tag == "verb" or before.low in things("things", "place"))
        return chunk.definite == "num" and not led

    def _is_player_before(self, chunk: Chunk) -> bool:
        """Return True if the player, or no certain person, has the phrase."""
        place = chunk.start - 2
        while (word := self._word(place)) is not None and word.tag in ("adv", "modal", "have"):
            place -= 1
        return word is None or word.tag in ("player", "conj", "end", "mark")

    def _is_listed(self, chunk: Chunk) -> bool:
        """Return True if it is a later part of a list that started with a supply."""
        before = chunk.before
        after = self._word(chunk.end)
        if after is not None and after.tag in ("verb", "be", "have", "modal"):
            return False
        if before is None or not (
            before.text == "," or before.low in self._grammar.words("things", "and_words")
        ):
            return False
        having = self._grammar.words("things", "having")
        return any(
            other.end in (chunk.start - 1, chunk.start - 2)
            and (other in self.supplies or (other.before is not None and other.before.low in having))
            for other in self._chunks
        )

    def _is_place(self, chunk: Chunk) -> bool:
        unnamed = self._grammar.words("things", "vague") | self._grammar.words("people", "vague")
        if chunk.head.lemma in unnamed or (chunk.of is not None and chunk.of.is_first_class("animal")):
            return False
        after_place = self._is_after_place(chunk)
        natural = chunk.is_first_class("object") and not after_place
        if after_place and len(chunk.nouns) > 1 and chunk.nouns[0].classes[:1] == ("object",):
            # A part of a natural place: "a mountain pass".
            return True
        return (not chunk.nouns and after_place) or (chunk.is_first_class(*_PLACE) and not natural)
