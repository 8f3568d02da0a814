"""Claims about things: who has them, and whether they still exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.session.narration.claims.record import Contradiction
from peripety.session.narration.claims.words import words, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.session.narration.claims.clauses import Clause, Group, Sentence
    from peripety.session.narration.claims.record import TurnFacts

_NOT_HELD = words("sight mind view eye look need glance hope interest use")
_INTO = words(
    "round over across in into inside on onto around under from at to within against through between about"
)
_IS_AT = words(
    "be lie rest sit hang gleam shine end land dangle bounce swing nestle stay "
    "remain clink weigh glint drop fall wait press jingle belong find slip slide "
    "settle"
)


class PossessionClaims:
    """Checker of claims about the holders of things.

    Args:
        facts: the turn.
        is_past: True if the past is the tense of the story.
    """

    def __init__(self, facts: TurnFacts, *, is_past: bool = False) -> None:
        self._facts = facts
        self._is_past = is_past
        self._you = facts.after.you
        self._things = {*facts.before.holders, *facts.after.holders}
        held = {*facts.before.holders.values(), *facts.after.holders.values()}
        self._knows_you = self._you in facts.after.names or self._you in held

    def check(self, sentence: Sentence, text: str) -> Iterator[Contradiction]:
        """Yield the claims of a sentence that contradict the record.

        Args:
            sentence: the sentence without speech.
            text: the sentence.
        """
        if sentence.is_unreal:
            return
        for clause in sentence.clauses:
            if not clause.is_asserted or (clause.is_past and clause.is_perfect):
                continue
            for thing, holder, is_denied in self._told(clause):
                if self._contradicts(thing, holder, is_denied=is_denied, clause=clause):
                    yield self._contradiction(thing, text)
                    return
        yield from self._check_groups(sentence, text)

    def _contradiction(self, thing: str, text: str) -> Contradiction:
        current = self._facts.after.holders.get(thing, "")
        verb = "have" if current == self._you else "has"
        where = current not in self._facts.after.names and current != self._you
        name = self._facts.after.name_of(current)
        told = f"the {thing} is in the {name}" if where else f"{name} {verb} the {thing}"
        return Contradiction("possession", text.strip(), told)

    def _contradicts(self, thing: str, holder: str, *, is_denied: bool, clause: Clause | None) -> bool:
        if holder == self._you and not self._knows_you:
            return False
        holders = self._facts.holders_of(thing)
        if is_denied:
            return {holder} == holders or (holder == "" and len(holders) == 1)
        if clause is not None and clause.is_past and not self._is_past:
            return False
        return holder not in holders

    def _things_in(self, group: Group) -> list[str]:
        return [key for key in group.keys("thing") if key in self._things]

    def _people(self, clause: Clause) -> list[str]:
        return clause.subjects()

    def _told(self, clause: Clause) -> Iterator[tuple[str, str, bool]]:
        """Yield things with the holders that a clause claims, and True if it denies that they hold them."""
        objects = [thing for one in clause.objects if not one.is_negated for thing in self._things_in(one)]
        people = self._people(clause)
        for thing in objects:
            yield from self._object_holders(clause, thing, people)
        subject = clause.subject
        is_alone = subject is not None and not subject.keys("entity")
        for thing in self._things_in(subject) if subject is not None and is_alone else ():
            yield from self._subject_holders(clause, thing)
        yield from self._phrase_holders(clause, people)

    def _object_holders(
        self, clause: Clause, thing: str, people: list[str]
    ) -> Iterator[tuple[str, str, bool]]:
        told_words = clause.rest_words
        if _NOT_HELD & set(told_words):
            return
        if clause.is_negative:
            if clause.base in words("have hold carry possess own find") or (clause.base == "be"):
                yield from ((thing, one, True) for one in people)
            return
        if clause.is_passive:
            return
        receiver = self._receiver(clause)
        if clause.is_a("give") and receiver is not None:
            yield thing, receiver, False
            return
        body = self._body_owner(clause)
        if clause.is_a("lose") and not clause.is_a("give"):
            yield from ((thing, one, True) for one in people)
            if clause.base in {"trade", "swap", "exchange"}:
                return
        elif clause.is_a("destroy") and clause.base not in words("sink tear rip devour"):
            yield thing, "", True
        elif clause.base == "leave":
            if "behind" in told_words or any(group.keys("place") for _, group in clause.phrases):
                yield from ((thing, one, True) for one in people)
        elif clause.is_a("get") and clause.base not in {"find", "pay"}:
            if "look" not in told_words:
                yield from ((thing, one, False) for one in people)
                yield from ((thing, one, True) for one in self._sources(clause) if one not in people)
        elif clause.is_a("hold"):
            yield from ((thing, one, False) for one in people)
        elif self._drawn_from(clause) is not None:
            yield thing, self._drawn_from(clause) or "", False
        elif clause.base in words("tuck stow put stuff pack") and "away" in told_words:
            yield from ((thing, one, False) for one in people[:1])
        elif clause.is_a("give", "handle") and body is not None:
            yield thing, body, False
        elif clause.is_a("handle") and clause.base in words(
            "pocket unfold use turn raise wave polish spin flip jingle twirl dangle unroll "
            "clip buckle strap pin slide slip juggle insert fit produce brandish flourish "
            "fish"
        ):
            yield from ((thing, one, False) for one in people[:1])

    def _receiver(self, clause: Clause) -> str | None:
        """Return the entity to which something is given."""
        for group in clause.objects:
            keys = group.keys("entity")
            if keys and len(clause.objects) > 1:
                return keys[0]
        for word, group in clause.phrases:
            if word in {"to", "at"} and group.keys("entity"):
                return group.keys("entity")[0]
            owners = group.owned_by()
            if (
                word in words("into in to on onto across")
                and owners
                and group.word in words_of("words", "holder")
            ):
                return owners[0]
        return None

    def _body_owner(self, clause: Clause) -> str | None:
        """Return the entity in whose hand or pocket something is."""
        for word, group in clause.phrases:
            if word in _INTO and group.word in words_of("words", "holder"):
                owners = group.owned_by()
                if owners:
                    return owners[0]
                if group.of is not None and group.of.keys("entity"):
                    return group.of.keys("entity")[0]
                if group.tokens[0].word in words("the a his her their its") and self._people(clause):
                    return self._people(clause)[0]
        return None

    def _drawn_from(self, clause: Clause) -> str | None:
        """Return the entity out of whose pocket something comes."""
        if clause.base not in words("pull take draw produce fish dig get slide slip bring whip unfold"):
            return None
        for word, group in clause.phrases:
            if word in {"of", "from"} and group.word in words_of("words", "holder") and group.owned_by():
                return group.owned_by()[0]
        return None

    def _sources(self, clause: Clause) -> list[str]:
        found = []
        for word, group in clause.phrases:
            if word in {"from", "off"}:
                found += group.keys("entity") or (
                    group.owned_by() if group.word in words_of("words", "holder") else []
                )
        return found

    def _subject_holders(self, clause: Clause, thing: str) -> Iterator[tuple[str, str, bool]]:
        told_words = clause.rest_words
        body = self._body_owner(clause)
        people = [
            key
            for word, group in clause.phrases
            if word in {"to", "with", "into"}
            for key in group.keys("entity")
        ]
        mine = next((one for one in clause.objects if one.word in {"yours", "mine"}), None)
        if clause.is_negative:
            if body is not None or people:
                yield thing, body or people[0], True
            elif mine is not None:
                yield thing, self._you, True
            return
        if (
            (
                clause.base in {"be", "go"}
                and words("gone missing lost stolen broken destroyed") & set(told_words[:3])
            )
            or (clause.is_passive and (clause.is_a("destroy", "lose") or clause.base in {"steal", "take"}))
            or (
                clause.is_a("destroy")
                and not clause.is_passive
                and not clause.objects
                and clause.base not in words("tear rip sink break burn")
            )
            or (
                clause.is_a("destroy")
                and clause.base in {"break", "burn"}
                and words("in into apart up to") & set(told_words[:2])
            )
        ):
            yield thing, "", True
        elif mine is not None:
            yield thing, self._you, False
        elif body is not None and (
            clause.base in _IS_AT or clause.is_a("give", "move", "get") or clause.is_passive
        ):
            yield thing, body, False
        elif people and (
            clause.base in words("pass go move belong travel wander return change fall")
            or (clause.is_passive and clause.is_a("give", "get", "hold"))
            or (clause.base == "be" and clause.rest_words[:1] == ["with"])
        ):
            yield thing, people[0], False

    def _phrase_holders(self, clause: Clause, people: list[str]) -> Iterator[tuple[str, str, bool]]:
        """Yield the holders of things behind a preposition: `you walk off with the token`."""
        if clause.is_negative or clause.is_passive:
            return
        for word, group in clause.where:
            for thing in self._things_in(group):
                takes = clause.base in words(
                    "walk run make go stride slip leave ride disappear vanish flee return come"
                )
                if word == "with" and (
                    takes or clause.base in words("unlock open cut dig lock light stab pry seal stamp")
                ):
                    yield from ((thing, one, False) for one in people[:1])
                if word == "for" and clause.base in {"trade", "swap", "exchange"}:
                    yield from ((thing, one, False) for one in people[:1])
                fingers = clause.subject is not None and clause.subject.word in words(
                    "fingers hand hands fist finger palm grip"
                )
                if (
                    word in {"around", "on", "over"}
                    and fingers
                    and clause.base in words("close wrap tighten curl clench")
                ):
                    owners = clause.subject.owned_by() if clause.subject is not None else []
                    yield from ((thing, one, False) for one in owners[:1])

    def _check_groups(self, sentence: Sentence, text: str) -> Iterator[Contradiction]:
        """Check nouns in a row: `the token in your pocket`, `in your pocket hangs the token`."""
        if sentence.clauses and not any(
            clause.is_asserted and not clause.is_negative for clause in sentence.clauses
        ):
            return
        pairs = zip(sentence.groups, sentence.groups[1:], strict=False)
        for (_, first), (word, second) in pairs:
            gap = sentence.tokens.index(second.tokens[0]) - sentence.tokens.index(first.tokens[-1])
            holder = (
                second.owned_by()
                if second.word in words_of("words", "holder") and word in words("in on around under at from")
                else []
            )
            if word == "from" and sentence.clauses:
                holder = []
            things = self._things_in(first) if gap <= 3 else []  # noqa: PLR2004 - a preposition and its determiner
            if things and holder and self._contradicts(things[0], holder[0], is_denied=False, clause=None):
                yield self._contradiction(things[0], text)
                return
