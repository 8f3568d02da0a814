"""Claims about the places of people: who is present, and where."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import PARTICIPLE, Phrases, words, words_of
from peripety.session.narration.claims.record import WrongClaim

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.session.narration.claims.clauses import Group, ProseClause, Sentence
    from peripety.session.narration.claims.record import TurnFacts


_VISIBLE = words("motion contact body communication consumption possession")
_PHYSICAL = words("motion contact body consumption")
_AFAR = words(
    "out down up below above somewhere far beyond there upstairs downstairs outside inside across still "
    "meanwhile elsewhere away over back alone through behind where yonder always never often sometimes"
)
_GONE = words("gone absent missing away elsewhere nowhere")
_PUTS = words_of("sets", "puts")
_EARLIER = words("once before earlier when last yesterday first ago since already twice often")
_APART = words("above below beyond behind under beneath like than without unlike")
_SIGHTED = words("see hear spot glimpse notice make find know remember picture imagine recall sense smell")
_WORN = words(
    "boots boot feet foot knees knee head face hair shoulders back coat cloak skirt sleeves hands cap hat "
    "clothes lungs throat eyes ears fingers jacket robe dress collar cheeks skin breath"
)
_CARRIES = words("carry drag haul lug lead march wheel escort chase")
# Deeds of a person whom an action meets in another place.
_ANSWERS = words_of("sets", "answers")
_BESIDE = words(
    "with beside near by behind at in on opposite before among between alongside around inside against "
    "across over"
)
_SIDES = words(
    "side shoulder shoulders elbow arm arms lap hand hands back feet heels table bed knee knees chest bench "
    "head"
)
_SEATS = words("chair seat bunk bed stool place post cot desk bench spot")


class PresenceClaims:
    """Checker of claims about the places of entities.

    Args:
        facts: the turn.
        is_past: True if the past is the tense of the story.
    """

    def __init__(self, facts: TurnFacts, *, is_past: bool = False) -> None:
        self._facts = facts
        self._is_past = is_past
        self._you = facts.after.you
        self._here = facts.places_of(self._you)
        self._phrases = Phrases("people")
        self._is_remote = False
        self._visited = _reached(facts, "name")
        self._met = _reached(facts, "name", "description")

    def check(self, sentence: Sentence, text: str, before: str = "") -> Iterator[WrongClaim]:
        """Yield the claims of a sentence that contradict the record.

        Args:
            sentence: the sentence without speech.
            text: the sentence.
            before: the sentence before it.
        """
        self._is_remote = any(self._phrases.search("remote", one) is not None for one in (text, before))
        if sentence.is_unreal:
            return
        yield from self._check_here(sentence, text)
        yield from self._check_setting(sentence, text)
        for clause in sentence.clauses:
            yield from self._check_empty_place(clause, text)
            if self._here:
                yield from self._check_presence(sentence, clause, text)
        if not sentence.clauses or any(clause.is_now(is_past=self._is_past) for clause in sentence.clauses):
            yield from self._check_groups(sentence, text)

    def is_visit(self, sentence: Sentence) -> bool:
        """Return True if a sentence names a place to which an action of the turn may take the player."""
        return bool(self._visited & set(sentence.named("place")))

    def check_speaker(self, entity: str, utterance: str, narrative: str) -> WrongClaim | None:
        """Return the contradiction in an utterance of a dead or absent entity, if there is one."""
        name = self._facts.after.name_of(entity)
        if self._facts.is_alive(entity) is False:
            return WrongClaim("life", utterance, f"{name} is dead")
        if self._is_elsewhere(entity) and not self._phrases.search("remote", narrative):
            return WrongClaim("presence", utterance, f"{name} is in {self._place_of(entity)}")
        return None

    def _check_here(self, sentence: Sentence, text: str) -> Iterator[WrongClaim]:
        """Check that `here in the x` is the place of the player."""
        if len(self._here) != 1 or not any(
            clause.is_now(is_past=self._is_past) for clause in sentence.clauses
        ):
            return
        for place, token in enumerate(sentence.tokens):
            if token.word != "here":
                continue
            named: list[str] = []
            for one in sentence.tokens[place + 1 : place + 5]:
                if one.tag not in {"prep", "det", "adj", "name", "noun"}:
                    break
                named += [key for kind, key in one.refs if kind == "place"]
            if named and not set(named) & self._here:
                yield self._elsewhere(self._you, text)
                return

    def _check_setting(self, sentence: Sentence, text: str) -> Iterator[WrongClaim]:
        """Check the place at the beginning of a sentence in which the player does something."""
        if not sentence.clauses or len(self._here) != 1 or sentence.is_unreal:
            return
        named = [
            key
            for word, one in sentence.clauses[0].fronted[:1]
            if word in words("in inside at on aboard")
            for key in one.keys("place")
        ]
        is_yours = not sentence.clauses[0].modal and any(
            self._you in clause.subjects()
            and clause.is_now(is_past=self._is_past)
            and not clause.is_negative
            and not clause.is_infinitive
            and clause.base not in _SIGHTED | {"tell", "say", "answer"}
            and not clause.is_a("mental", "perceive")
            for clause in sentence.clauses
        )
        if named and is_yours and not set(named) & self._here:
            yield self._elsewhere(self._you, text)

    def _check_none(self, sentence: Sentence, clause: ProseClause, text: str) -> Iterator[WrongClaim]:
        """Check `there is no x` about a person who is here."""
        subject = clause.subject
        if clause.base != "be" or subject is None or subject.word != "there" or not clause.is_asserted:
            return
        told = {token.word for token in sentence.tokens}
        for one in clause.objects[:1]:
            company = next((key for key in one.keys("entity") if self._is_with_you(key)), None)
            is_plain = one.of is None and not told & words("like than other another better greater more")
            if company is not None and is_plain and (one.is_negated or clause.is_negative):
                name = self._facts.after.name_of(company)
                yield WrongClaim("presence", text.strip(), f"{name} is where you are")

    def _check_empty_place(self, clause: ProseClause, text: str) -> Iterator[WrongClaim]:
        """Check that a place is not empty while people are there."""
        subject = clause.subject
        if subject is None or not clause.is_now(is_past=self._is_past):
            return
        places: list[str] = []
        deserted = clause.is_passive and clause.base in words("desert abandon vacate empty")
        if (subject.keys("place") and deserted and not clause.is_negative) or (
            subject.keys("place")
            and clause.base in words("be stand lie seem")
            and words("empty deserted abandoned vacant unoccupied") & set(clause.rest_words[:3])
            and not clause.is_negative
        ):
            places = subject.keys("place")
        elif (
            subject.word in {"nobody", "one"}
            and (subject.word == "nobody" or clause.is_negative)
            and clause.base in {"be", "remain", "stay"}
        ):
            places = [
                key
                for word, group in clause.where
                if word in {"in", "at", "inside"}
                for key in group.keys("place")
            ]
        for entity in self._facts.after.names if places else ():
            known = self._facts.places_of(entity)
            if known and known <= set(places) and self._facts.is_alive(entity) is not False:
                yield self._elsewhere(entity, text)
                return

    def _is_elsewhere(self, entity: str) -> bool:
        places = self._facts.places_of(entity)
        return bool(places) and bool(self._here) and places.isdisjoint(self._here)

    def _is_with_you(self, entity: str) -> bool:
        is_here = self._facts.places_of(entity) == self._here and len(self._here) == 1
        return entity != self._you and is_here and self._facts.after.alive.get(entity) is not False

    def _place_of(self, entity: str) -> str:
        after = self._facts.after
        return f"the {after.place_names[after.places[entity]][0].removeprefix('the ')}"

    def _absent(self, keys: Iterable[str]) -> str | None:
        known = (one for one in keys if one != self._you and self._is_elsewhere(one))
        return next((one for one in known if self._facts.is_alive(one) is not False), None)

    def _elsewhere(self, entity: str, text: str, *, is_certain: bool = True) -> WrongClaim:
        verb = "are" if entity == self._you else "is"
        return WrongClaim(
            "presence",
            text.strip(),
            f"{self._facts.after.name_of(entity)} {verb} in {self._place_of(entity)}",
            is_certain=is_certain,
        )

    def _check_presence(self, sentence: Sentence, clause: ProseClause, text: str) -> Iterator[WrongClaim]:
        moved = (
            self._is_past
            and clause.is_asserted
            and clause.is_perfect
            and clause.is_past
            and clause.is_a("move", "arrive")
        )
        if moved:
            yield from self._check_where(clause, text)
        yield from self._check_unmoved(clause, text)
        yield from self._check_gone_before(sentence, clause, text)
        if not clause.is_now(is_past=self._is_past):
            return
        is_remote = self._is_remote
        absent = self._absent(clause.subjects())
        if (
            absent is not None
            and not is_remote
            and not clause.is_negative
            and self._appears(sentence, clause, absent)
        ):
            is_met = bool(self._met & self._facts.places_of(absent)) and clause.base in _ANSWERS | {
                "say",
                "look",
            }
            yield self._elsewhere(absent, text, is_certain=not is_met)
            return
        if not is_remote and not clause.is_negative:
            absent = self._absent_partner(sentence, clause)
            if absent is not None:
                # A person may be met and leave again, but a touched hand is here.
                touched = {key for one in clause.objects for key in one.owned_by()}
                yield self._elsewhere(absent, text, is_certain=absent in touched)
                return
        company = next((one for one in clause.subjects() if self._is_with_you(one)), None)
        if company is not None and self._goes(clause) and not _returns(sentence, clause):
            yield WrongClaim(
                "presence", text.strip(), f"{self._facts.after.name_of(company)} is where you are"
            )
            return
        yield from self._check_none(sentence, clause, text)
        yield from self._check_alone(clause, text)
        yield from self._check_where(clause, text)

    def _check_gone_before(self, sentence: Sentence, clause: ProseClause, text: str) -> Iterator[WrongClaim]:
        """Check `had gone to the x` and `has not come` of a person who is here in the whole turn."""
        is_before = clause.is_perfect and clause.is_past is self._is_past and clause.is_asserted
        company = next((one for one in clause.subjects() if self._is_with_you(one)), None)
        if company is None or not is_before or clause.subordinator or clause.modal:
            return
        is_away = clause.is_a("leave") or (clause.base == "go" and "off" in clause.rest_words[:1])
        things = [
            one for one in clause.objects if not one.keys("place") and one.word not in {"room", "scene"}
        ]
        is_gone = self._is_past and is_away and not clause.is_negative and not things
        is_missing = (
            clause.is_negative
            and clause.base in words("come appear arrive turn-up show-up")
            and not (clause.objects or clause.phrases)
        )
        returns = any(one is not clause and one.is_a("arrive") for one in sentence.clauses)
        told = {token.word for token in sentence.tokens}
        if (is_gone or is_missing) and not returns and not told & _EARLIER:
            name = self._facts.after.name_of(company)
            yield WrongClaim("presence", text.strip(), f"{name} is where you are")

    def _check_unmoved(self, clause: ProseClause, text: str) -> Iterator[WrongClaim]:
        """Check `has not left the x` of a person who has left it."""
        if not clause.is_negative or clause.modal or clause.base not in words("leave budge move stir quit"):
            return
        named = {
            key
            for one in (*clause.objects, *(group for _, group in clause.phrases))
            for key in one.keys("place")
        }
        for entity in clause.subjects():
            before, after = (facts.places.get(entity) for facts in (self._facts.before, self._facts.after))
            if before in named and after != before and after is not None:
                yield self._elsewhere(entity, text)
                return

    def _names_place_of(self, sentence: Sentence, entity: str) -> bool:
        return bool(set(sentence.named("place")) & self._facts.places_of(entity))

    def _is_near(self, clause: ProseClause) -> bool:
        """Return True if a clause is about the player, the place of the player, or people there."""
        if {"here"} & (clause.adverbs | set(clause.rest_words)):
            return True
        where = [(word, group) for word, group in clause.where if word not in _APART]
        for group in (*clause.objects, *(group for _, group in where)):
            chain = [group, *([group.of] if group.of is not None else [])]
            for one in chain:
                keys = [*one.keys("entity"), *one.owned_by()]
                if self._you in keys or any(self._is_with_you(key) for key in keys):
                    return True
                if set(one.keys("place")) & self._here and ("for", group) not in where:
                    return True
        return False

    def _appears(self, sentence: Sentence, clause: ProseClause, absent: str) -> bool:
        """Return True if a clause places an entity of another place in the scene."""
        if clause.is_passive or (clause.form == PARTICIPLE and not clause.is_perfect):
            return False
        comes_in = clause.is_a("arrive") and clause.rest_words[:1] == ["in"] and not clause.subordinator
        if not self._is_near(clause):
            # Other deeds of an absent person may be seen from afar.
            return comes_in and not self._is_relative(sentence, clause)
        if self._names_place_of(sentence, absent):
            return clause.is_a("arrive", "give") and not clause.is_perfect
        if clause.base == "do" or (clause.base == "be" and any(one.is_negated for one in clause.objects)):
            # `so clearly do you hear it`, `was no help to you`
            return False
        if clause.base == "be" and not clause.is_progressive:
            return self._is_beside(clause)
        if clause.base == "say" and clause.objects:
            # `says thank you`
            return False
        if clause.is_perfect:
            return clause.is_a("arrive", "move")
        if not (clause.is_a("mental") and clause.base not in words("wait sit stay sleep lie be rest")):
            return clause.base not in words("owe miss resemble trust remain mean")
        return clause.is_a("arrive", "sit") and clause.base not in words(
            "wait stay remain work live sleep get find be land rest"
        )

    def _is_beside(self, clause: ProseClause) -> bool:
        """Return True if a clause puts its subject into the scene, which `is good to you` does not."""
        if {"here"} & (clause.adverbs | set(clause.rest_words)):
            return True
        for word, group in clause.where:
            if word not in _BESIDE and not (word == "to" and "next" in clause.rest_words):
                continue
            chain = [group, *([group.of] if group.of is not None else [])]
            people = {key for one in chain for key in one.keys("entity")}
            owners = {key for one in chain for key in one.owned_by()}
            if any(one.word in _SIDES for one in chain):
                people |= owners
            if any(key == self._you or self._is_with_you(key) for key in people):
                return True
            if any(set(one.keys("place")) & self._here for one in chain):
                return True
        return False

    def _is_relative(self, sentence: Sentence, clause: ProseClause) -> bool:
        return any(
            token.word in {"who", "which"} and clause.span[0] <= token.start < clause.span[1]
            for token in sentence.tokens
        )

    def _absent_partner(self, sentence: Sentence, clause: ProseClause) -> str | None:
        """Return an absent entity that people in the scene meet, see or touch."""
        if not any(one == self._you or self._is_with_you(one) for one in clause.subjects()):
            owner = None if clause.subject is None else self._absent(clause.subject.owned_by())
            is_body = clause.subject is not None and clause.subject.word in words_of("words", "body")
            is_heard = clause.subject is not None and clause.subject.word in words(
                "voice laugh laughter shout whisper cough footsteps"
            )
            if (
                owner is not None
                and is_body
                and not (clause.governor is not None and clause.governor.base in _SIGHTED)
                and (not is_heard or self._is_near(clause))
                and not clause.is_a("rest")
                and (self._is_near(clause) or clause.senses & {"motion", "body", "contact"})
            ):
                return None if self._names_place_of(sentence, owner) else owner
            if (
                clause.subject is not None
                and clause.subject.word == "there"
                and clause.base in words("be stand sit wait")
            ):
                return self._absent(key for one in clause.objects[:1] for key in one.keys("entity"))
            return None
        joined = self._absent(clause.subjects())
        if joined is not None and not clause.is_a("mental"):
            return joined
        for group in clause.objects:
            absent = self._absent(group.keys("entity"))
            touches = bool(clause.senses & {"contact", "possession"}) or clause.base in words(
                "meet face find greet hug kiss join pass show"
            )
            if (
                absent is not None
                and touches
                and not self._names_place_of(sentence, absent)
                and clause.base not in words_of("sets", "misses")
            ):
                return absent
            owner = self._absent(group.owned_by())
            if (
                owner is not None
                and group.word in words("hand hands arm eye eyes gaze shoulder sleeve")
                and clause.senses
                & {"contact", "possession", *(["perception"] if group.word in words("eye eyes gaze") else ())}
            ):
                return owner
        for word, group in clause.phrases:
            absent = self._absent(group.keys("entity"))
            if absent is None or self._names_place_of(sentence, absent):
                continue
            if word in {"beside", "alongside", "opposite"} or (word == "to" and "next" in clause.rest_words):
                return absent
            if word == "with" and clause.senses & words("motion stative communication social"):
                return absent
            if word in {"to", "at"} and clause.base in words(
                "nod smile grin wink bow turn lean hand pass give wave frown glance look"
            ):
                return absent
        return None

    def _goes(self, clause: ProseClause) -> bool:
        """Return True if a clause puts a person elsewhere who is with the player."""
        told = clause.rest_words
        if clause.base == "be" and not clause.is_progressive:
            if clause.is_negative:
                is_off = bool(words("more longer") & {*told, *clause.adverbs}) and any(
                    word in words("in at on") and set(one.keys("place")) & self._here
                    for word, one in clause.phrases
                )
                return is_off or "here" in told[:3] or told[:2] in (["with", "you"], ["with", "us"])
            gone = next((word for word in told[:3] if word in _GONE), None)
            is_measured = gone == "away" and bool(clause.objects)
            from_here = any(
                word == "from" and set(one.keys("place")) & self._here for word, one in clause.phrases
            )
            is_part = gone == "gone" and bool({"for", "from"} & set(told[:3])) and not from_here
            return gone is not None and not is_measured and not is_part and "far" not in told
        if clause.is_negative or not clause.is_a("leave") or clause.is_passive:
            return False
        if clause.base == "leave" and clause.copied_subject and not clause.objects:
            # `with one of them left`
            return False
        if clause.base == "go" and clause.verb == "go":
            return bool(words("out home away off") & set(told[:2]))
        things = [
            one
            for one in clause.objects
            if not (
                one.keys("place") or self._you in one.keys("entity") or one.word in {"room", "place", "scene"}
            )
            or len(clause.objects) > 1  # `leaves you a place on the bench`
        ]
        if clause.base == "take":
            return "off" in told[:1] and not clause.objects
        if clause.base in words("leave escape abandon desert exit flee") and things:
            return False
        if clause.base == "leave" and any(word == "with" for word, _ in clause.phrases) and clause.objects:
            # `leaves you with the list`
            return False
        behind = {"behind", "into"} & set(told[:1]) and clause.base in words(
            "retreat withdraw vanish disappear escape"
        )
        return not behind and not ("silence" in told or "thought" in told or "thoughts" in told)

    def _check_alone(self, clause: ProseClause, text: str) -> Iterator[WrongClaim]:
        told = clause.rest_words
        company = [one for one in self._facts.after.names if self._is_with_you(one)]
        is_nobody = (
            clause.base == "be"
            and clause.subject is not None
            and clause.subject.word == "there"
            and any(
                one.word == "nobody" or (one.head.word == "one" and one.is_negated) for one in clause.objects
            )
            and ("here" in told or any(set(group.keys("place")) & self._here for _, group in clause.phrases))
            and not any(one.word in {"who", "that"} for one in clause.objects)
        )
        if company and is_nobody:
            yield WrongClaim(
                "presence", text.strip(), f"{self._facts.after.name_of(company[0])} is where you are"
            )
            return
        if clause.is_negative or self._you not in clause.subjects() or clause.is_infinitive:
            return
        said = f" {' '.join(told)} "
        has_place = any(set(one.keys("place")) & self._here or one.word == "place" for one in clause.objects)
        if clause.base == "have" and has_place and company and " to yourself" in said:
            yield WrongClaim(
                "presence", text.strip(), f"{self._facts.after.name_of(company[0])} is where you are"
            )
            return
        if clause.base not in words("be come stand sit walk arrive wait stay enter return"):
            return
        by_self = " by yourself " in said or " on your own " in said
        is_alone = by_self or (
            "alone" in {*told, *clause.adverbs} and not {"with", "your", "feel"} & set(told)
        )
        if is_alone and company and not any(word in {"this", "it"} for word in told):
            yield WrongClaim(
                "presence", text.strip(), f"{self._facts.after.name_of(company[0])} is where you are"
            )

    def _check_where(self, clause: ProseClause, text: str) -> Iterator[WrongClaim]:
        if clause.base == "be" and any(one.is_negated for one in clause.objects):
            return
        if clause.is_negative:
            own = {key for word, one in clause.phrases if word in {"in", "at"} for key in one.keys("place")}
            for entity in clause.subjects() if clause.base == "be" and own else ():
                if self._facts.places_of(entity) == own and self._facts.is_alive(entity) is not False:
                    yield self._elsewhere(entity, text)
                    return
            return
        for entity in clause.subjects():
            places = self._facts.places_of(entity)
            if not places or (entity != self._you and self._facts.is_alive(entity) is False):
                continue
            place = self._place_told(clause)
            if place is not None and (place not in places or self._is_left_behind(clause, entity, place)):
                # An action may take the player to a place, and back.
                is_visit = entity == self._you and place in self._visited and clause.is_a("move", "arrive")
                yield self._elsewhere(entity, text, is_certain=not is_visit)
                return
            if entity == self._you and len(places) == 1 and self._leaves_here(clause, places):
                yield self._elsewhere(entity, text)
                return
        subject = clause.subject
        if subject is None or self._you in clause.subjects():
            return
        around = self._place_of_body(clause)
        if around is not None and around not in self._here:
            yield self._elsewhere(self._you, text)
            return
        named = [*subject.keys("place"), *subject.places]
        if named and not set(named) & self._here:
            is_around = any(
                word in words("around round about over above under beneath")
                and (
                    self._you in group.keys("entity")
                    or (self._you in group.owned_by() and group.word in {"head", "feet"})
                )
                for word, group in clause.phrases
            )
            takes_you = any(
                self._you in one.keys("entity") for one in clause.objects
            ) and clause.base in words("greet swallow surround meet welcome receive enfold envelop")
            if is_around or takes_you:
                yield self._elsewhere(self._you, text)

    def _place_of_body(self, clause: ProseClause) -> str | None:
        """Return the place in which a clause puts the body or the clothes of the player."""
        assert clause.subject is not None  # noqa: S101 - checked by the caller
        words_in = words("in inside at on under")
        own = self._you in clause.subject.owned_by() and clause.subject.word in _WORN
        if own and clause.base in words("be stand rest lie sink drag"):
            return next(
                (key for word, one in clause.phrases if word in words_in for key in one.keys("place")), None
            )
        touched = any(
            self._you in one.owned_by() and one.word in _WORN
            for group in (*clause.objects, *(group for _, group in clause.phrases))
            for one in (group, *([group.of] if group.of is not None else []))
        )
        if not touched or clause.is_negative:
            return None
        return next(
            (key for word, one in clause.fronted if word in words_in for key in one.keys("place")), None
        )

    def _is_left_behind(self, clause: ProseClause, entity: str, place: str) -> bool:
        """Return True if a person who moved stays in the place before."""
        before, after = (facts.places.get(entity) for facts in (self._facts.before, self._facts.after))
        if place != before or before == after:
            return False
        is_still = bool(words("still yet") & {*clause.adverbs, *clause.rest_words})
        return clause.base in {"stay", "remain", "linger"} or (
            (entity != self._you or is_still) and clause.base in words("be wait sit stand lie crouch kneel")
        )

    def _place_told(self, clause: ProseClause) -> str | None:
        """Return the place in which a clause puts its subject."""
        is_said = clause.base in _SIGHTED | {"tell", "say", "answer"}
        if self._you in clause.subjects() and not is_said and not clause.copied_subject:
            fronted = [
                key
                for word, one in clause.fronted[:1]
                if word in words("in inside at on aboard")
                for key in one.keys("place")
            ]
            if fronted:
                return fronted[0]
        if clause.base in {"watch", "observe", "follow"} and self._you in clause.subjects():
            # `From the x you watch it`, `you watch it from the window of the x`
            where = [one for word, one in clause.fronted if word == "from"]
            where += [one for word, one in clause.phrases if word == "from" and one.of is not None]
            return next((key for one in where for key in (*one.keys("place"), *one.places)), None)
        if clause.base in words_of("verbs", "perceive") and clause.base != "turn":
            return None
        is_move = clause.is_a("move", "arrive") and not clause.is_passive
        is_carry = clause.base in _CARRIES and bool(clause.objects) and not clause.is_passive
        is_body = any(
            one.word in _WORN and set(one.owned_by()) & set(clause.subjects()) for one in clause.objects
        )
        puts = (
            clause.base in _PUTS
            and not is_body
            and any(
                not one.word.endswith(("sel", "self", "selves")) and one.word not in _SEATS
                for one in clause.objects
            )
            and not clause.is_passive
        )
        carried = clause.is_passive and bool(clause.senses & words("motion contact possession social change"))
        for word, group in clause.where:
            owners = group.owned_by()
            # `sits in her car`: a place of a person need not be the known one.
            places = (
                [] if owners and owners[:1] == clause.subjects()[:1] != [self._you] else group.keys("place")
            )
            if not places and not puts and word in words("at by on in through beside along"):
                # `at the kitchen table`, `through the doors of the x`
                is_door = group.word in words(
                    "door doors doorway hatch window gate entrance wall stairs side edge"
                )
                through = word == "through" and is_door and clause.is_a("move")
                through |= word == "along" and clause.is_a("move") and self._stays(clause)
                near = not is_door and word not in {"through", "along"} and clause.is_a("sit")
                if group.places and (near or through):
                    return group.places[0]
            if not places or puts:
                continue
            if word in words("in inside within aboard") and (not clause.is_passive or carried):
                return places[0]
            if word in {"into", "onto", "to"} and (is_move or carried):
                return places[0]
            if word in {"into", "onto", "through"} and is_carry:
                return places[0]
            if word in {"through", "along"} and is_move and self._stays(clause):
                return places[0]
            if word in words("at on upon under among") and (
                is_move or clause.is_a("sit", "arrive") or clause.base == "curl"
            ):
                return places[0]
        if clause.base in {"enter", "reach", "cross"} and not clause.is_passive:
            return next((key for one in clause.objects[:1] for key in one.keys("place")), None)
        if is_move and {"into", "inside", "to"} & set(clause.rest_words[:3]):
            return next(
                (
                    key
                    for word, one in clause.phrases
                    if word in words("into inside to in")
                    for key in one.keys("place")
                ),
                None,
            )
        return None

    def _stays(self, clause: ProseClause) -> bool:
        """Return True if the player is the subject, and in one place in the whole turn."""
        return clause.subjects() == [self._you] and len(self._here) == 1

    def _leaves_here(self, clause: ProseClause, places: set[str]) -> bool:
        if clause.base in words("leave exit abandon flee quit escape"):
            return any(set(one.keys("place")) & places for one in clause.objects[:1])
        out = {"out", "from"} & set(clause.rest_words[:2])
        return (
            bool(out)
            and clause.is_a("move")
            and any(set(one.keys("place")) & places for _, one in clause.phrases[:1])
            and clause.base not in {"go", "get"}
        )

    def _words_before(self, sentence: Sentence, group: Group) -> list[str]:
        place = sentence.tokens.index(group.tokens[0])
        return [token.word for token in sentence.tokens[max(0, place - 2) : place + 1]]

    def _is_empty_seat(self, sentence: Sentence, group: Group) -> bool:
        return group.word in _SEATS and any(
            clause.subject is group
            and words("empty vacant deserted abandoned") & set(clause.rest_words[:3])
            and not clause.is_negative
            for clause in sentence.clauses
        )

    def _check_groups(self, sentence: Sentence, text: str) -> Iterator[WrongClaim]:
        """Check nouns: no sign of a person who is here."""
        with_you = [one for one in self._facts.after.names if self._is_with_you(one)]
        for _, group in sentence.groups:
            is_bare = (
                bool(words("empty deserted abandoned") & group.all_words) and group.tokens[0].word == "the"
            )
            if is_bare and with_you and set(group.keys("place")) & self._here:
                name = self._facts.after.name_of(with_you[0])
                yield WrongClaim("presence", text.strip(), f"{name} is where you are")
                return
            owners = [*group.owned_by(), *(group.of.keys("entity") if group.of is not None else ())]
            company = next((one for one in owners if self._is_with_you(one)), None)
            if company is None:
                continue
            is_lost = group.word in {"sign", "trace", "hint", "glimpse"} and "no" in self._words_before(
                sentence, group
            )
            if is_lost or self._is_empty_seat(sentence, group):
                name = self._facts.after.name_of(company)
                yield WrongClaim("presence", text.strip(), f"{name} is where you are")
                return


def _returns(sentence: Sentence, clause: ProseClause) -> bool:
    """Return True if the subject of a clause comes back in the same sentence."""
    return any(
        one is not clause
        and one.start > clause.start
        and one.subject is not None
        and ("back" in {*one.adverbs, *one.rest_words} or one.is_a("arrive"))
        for one in sentence.clauses
    )


def _reached(facts: TurnFacts, *keys: str) -> set[str]:
    """Return the places that texts of the actions of the turn name, and those of the entities in them."""
    rules = {rule["id"]: rule for rule in facts.spec.get("actions", ())}
    text = " ".join(str(rules.get(one.action_id, {}).get(key) or "") for one in facts.actions for key in keys)
    chosen = {value for one in facts.actions for value in one.params.values() if isinstance(value, str)}
    after = facts.after

    def is_named(key: str, names: Iterable[str]) -> bool:
        found = (re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE) for name in names)
        return key in chosen or any(one is not None for one in found)

    met = {entity for entity, names in after.names.items() if entity != after.you and is_named(entity, names)}
    named = {place for place, names in after.place_names.items() if is_named(place, names)}
    homes = {state.places[one] for state in (facts.before, after) for one in met if one in state.places}
    return named | homes
