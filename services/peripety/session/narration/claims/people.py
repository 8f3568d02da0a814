"""Claims about people: alive or dead, present or elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import Phrases
from peripety.session.narration.claims.record import Contradiction
from peripety.session.narration.claims.verbs import PARTICIPLE, words, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.session.narration.claims.clauses import Clause, Group, Sentence
    from peripety.session.narration.claims.record import TurnFacts


_ACTS = words(
    "motion contact body communication consumption perception possession social "
    "creation competition emotion change weather"
)
_VISIBLE = words("motion contact body communication consumption possession")
_SENSES = words("perception communication cognition emotion")
_BESIDE = words(
    "beside alongside with to at towards toward on into past around behind from for "
    "between opposite over against"
)
_INSIDE = words("in inside within at on into onto aboard")
_EXACT_CORPSES = words("corpse grave funeral cadaver tomb burial death murder killer remains carcass")
_LIFELESS = words("lifeless dead cold still limp motionless")
_PULSE = words("heart pulse breathing breath heartbeat")
_ENDS = words("stop cease fail end fade")
_IDIOMS = words(
    "laughter laughing boredom shame embarrassment curiosity envy thirst joy act scene role part play game"
)
_NOT_DEATH = words(
    "tired serious set weight certain wrong drunk asleep quiet silent calm ahead "
    "against sure center end in on weary straight last level beat to for still"
)
_GONE = words("gone absent missing away elsewhere nowhere")
_PUTS = words(
    "put leave keep store hide drop lose lock forget hang place stow have hold send "
    "throw want need set lay find light bury like love hate miss own use take get "
    "make know spend"
)
_SEATS = words("chair seat bunk bed stool place post cot desk bench spot")


class PeopleClaims:
    """Checker of claims about the lives and the places of entities.

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

    def check(self, sentence: Sentence, text: str) -> Iterator[Contradiction]:
        """Yield the claims of a sentence that contradict the record.

        Args:
            sentence: the sentence without speech.
            text: the sentence.
        """
        if sentence.is_unreal:
            return
        for clause in sentence.clauses:
            yield from self._check_life(sentence, clause, text)
            yield from self._check_empty_place(clause, text)
            if self._here:
                yield from self._check_presence(sentence, clause, text)
        yield from self._check_groups(sentence, text)

    def check_speaker(self, entity: str, utterance: str, narrative: str) -> Contradiction | None:
        """Return the contradiction in an utterance of a dead or absent entity, if there is one."""
        name = self._facts.after.name_of(entity)
        if self._facts.is_alive(entity) is False:
            return Contradiction("life", utterance, f"{name} is dead")
        if self._is_elsewhere(entity) and not self._phrases.search("remote", narrative):
            return Contradiction("presence", utterance, f"{name} is in {self._place_of(entity)}")
        return None

    def _is_now(self, clause: Clause) -> bool:
        """Return True if a clause is asserted in the tense of the story."""
        if not clause.is_asserted:
            return False
        if self._is_past:
            return not (clause.is_perfect and clause.is_past)
        return not clause.is_past

    # --- life ---

    def _dead(self, keys: Iterable[str]) -> str | None:
        return next((one for one in keys if one != self._you and self._facts.is_alive(one) is False), None)

    def _living(self, keys: Iterable[str]) -> str | None:
        return next((one for one in keys if self._facts.is_alive(one) is True), None)

    def _check_life(self, sentence: Sentence, clause: Clause, text: str) -> Iterator[Contradiction]:
        yield from self._check_recovery(clause, text)
        dead = self._dead(clause.subjects()) or self._dead_partner(clause)
        if dead is not None and self._is_now(clause) and not clause.is_negative and self._acts(clause, dead):
            yield Contradiction("life", text.strip(), f"{self._facts.after.name_of(dead)} is dead")
            return
        owner = None if clause.subject is None else self._dead(clause.subject.owned_by())
        if owner is not None and self._is_now(clause) and self._is_lively_body(clause):
            yield Contradiction("life", text.strip(), f"{self._facts.after.name_of(owner)} is dead")
            return
        living = self._living(
            [*clause.subjects(), *(key for one in clause.objects for key in one.keys("entity"))]
        )
        if living is not None and clause.is_asserted and self._dies(clause, living):
            name = self._facts.after.name_of(living)
            yield Contradiction(
                "life", text.strip(), f"{name} {'are' if living == self._you else 'is'} alive"
            )

    def _check_recovery(self, clause: Clause, text: str) -> Iterator[Contradiction]:
        """Check that somebody who died in this turn is not said to live on."""
        after = self._facts.after.alive
        lost = next((one for one in clause.subjects() if after.get(one) is False and one != self._you), None)
        if lost is None or clause.is_negative:
            return
        told_words = clause.rest_words
        lives = (
            clause.base in {"survive", "recover", "heal"}
            or clause.verb == "pull-through"
            or (clause.base == "pull" and "through" in told_words[:1])
        )
        mends = clause.base == "be" and told_words[:3] == ["on", "the", "mend"]
        will = clause.base == "live" and clause.governor is not None and clause.governor.base == "go"
        if (lives and clause.is_asserted) or mends or will:
            yield Contradiction("life", text.strip(), f"{self._facts.after.name_of(lost)} is dead")

    def _check_empty_place(self, clause: Clause, text: str) -> Iterator[Contradiction]:
        """Check that a place is not said to be empty while somebody is there."""
        subject = clause.subject
        if subject is None or not self._is_now(clause):
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
                yield Contradiction(
                    "presence",
                    text.strip(),
                    f"{self._facts.after.name_of(entity)} {'are' if entity == self._you else 'is'} in {self._place_of(entity)}",
                )
                return

    def _dead_partner(self, clause: Clause) -> str | None:
        """Return a dead entity that receives something, or with whom people talk."""
        if clause.is_a("give") and len(clause.objects) > 1:
            return self._dead(clause.objects[0].keys("entity"))
        if "communication" in clause.senses:
            return next(
                (
                    dead
                    for word, group in clause.phrases
                    if word == "with" and (dead := self._dead(group.keys("entity")))
                ),
                None,
            )
        return None

    def _acts(self, clause: Clause, dead: str) -> bool:
        """Return True if only a living person does this."""
        if dead not in clause.subjects():
            return True
        if clause.is_passive or (clause.form == PARTICIPLE and not clause.is_perfect):
            return False
        if (
            clause.base == "look"
            and clause.rest_words[:1]
            and clause.rest_words[0]
            in words("at up down over around back away toward towards to out into from round")
        ):
            return True
        if clause.base in words("be look feel sound seem") and not clause.is_progressive:
            told_words = clause.rest_words[:4]
            return any(word in words_of("words", "alive") for word in told_words) and not (
                {"in", "on", "at"} & set(told_words[:1]) or ("back" in told_words and clause.base != "be")
            )
        return not clause.is_a("rest") and clause.verb != ""

    def _is_lively_body(self, clause: Clause) -> bool:
        assert clause.subject is not None  # noqa: S101 - checked by the caller
        if (
            clause.copied_subject
            or clause.is_passive
            or clause.is_negative
            or clause.subject.word not in words_of("words", "body")
        ):
            return False
        return (
            bool(clause.senses & _ACTS)
            and not clause.is_a("rest", "mental")
            and clause.base not in words("stare gaze be echo ring")
        )

    def _dies(self, clause: Clause, living: str) -> bool:
        is_subject = living in clause.subjects()
        told_words = clause.rest_words
        if not is_subject:
            return clause.is_a("kill", "mourn") and not clause.is_negative and not clause.is_infinitive
        if clause.is_negative:
            is_end = clause.base in words("survive breathe live wake") or (
                clause.base == "make" and "it" in told_words
            )
            is_gone = clause.base == "be" and "alive" in told_words[:3]
            return (
                is_end
                and clause.modal not in {"can", "cannot", "could"}
                and not (clause.base in {"breathe", "live"} and len(told_words) > 1)
            ) or is_gone
        if clause.is_a("die") and clause.base != "pass" and clause.base not in {"give", "starve", "freeze"}:
            return (
                not _IDIOMS & set(told_words)
                and told_words[:1] != ["to"]
                and told_words[:2] != ["a", "little"]
                and not clause.is_progressive
            )
        if clause.is_a("die") or (clause.is_a("kill") and clause.is_passive):
            return True
        if clause.base in {"stop", "cease"} and "breathing" in told_words[:2]:
            return True
        if clause.base in words("hang shoot drown kill") and any(
            one.word in {"himself", "herself", "themselves"} for one in clause.objects
        ):
            return True
        if (
            clause.base in words("gun shoot cut strike hack")
            and clause.is_passive
            and ("dead" in told_words[:1] or (clause.base == "gun" and "down" in told_words[:1]))
        ):
            return True
        if clause.base == "breathe" and {"last", "final"} & set(told_words[:2]):
            return True
        if (
            clause.base in {"draw", "take", "breathe"}
            and {"last", "final"} & set(told_words)
            and ({"breath"} & set(told_words) or clause.base == "breathe")
        ):
            return True
        if clause.base in words("be lie fall drop collapse slump sprawl go crumple"):
            return self._is_dead_predicate(clause)
        return False

    def _is_dead_predicate(self, clause: Clause) -> bool:
        told_words = clause.rest_words
        for place, word in enumerate(told_words[:5]):
            if word in words("dead lifeless deceased slain"):
                after = told_words[place + 1] if place + 1 < len(told_words) else ""
                if after in _NOT_DEATH and not (
                    after in {"on", "in", "at"} and clause.base in {"lie", "fall", "drop"}
                ):
                    return False
                return (
                    told_words[place - 1] not in words("half nearly almost like as not the n't")
                    if place
                    else True
                )
        return False

    # --- presence ---

    def _is_elsewhere(self, entity: str) -> bool:
        places = self._facts.places_of(entity)
        return bool(places) and bool(self._here) and places.isdisjoint(self._here)

    def _is_with_you(self, entity: str) -> bool:
        is_here = self._facts.places_of(entity) == self._here and len(self._here) == 1
        return entity != self._you and is_here and self._facts.is_alive(entity) is not False

    def _place_of(self, entity: str) -> str:
        after = self._facts.after
        return f"the {after.place_names[after.places[entity]][0]}"

    def _absent(self, keys: Iterable[str]) -> str | None:
        known = (one for one in keys if one != self._you and self._is_elsewhere(one))
        return next((one for one in known if self._facts.is_alive(one) is not False), None)

    def _elsewhere(self, entity: str, text: str) -> Contradiction:
        verb = "are" if entity == self._you else "is"
        return Contradiction(
            "presence",
            text.strip(),
            f"{self._facts.after.name_of(entity)} {verb} in {self._place_of(entity)}",
        )

    def _check_presence(self, sentence: Sentence, clause: Clause, text: str) -> Iterator[Contradiction]:
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
        if not self._is_now(clause):
            return
        is_remote = self._phrases.search("remote", text) is not None
        absent = self._absent(clause.subjects())
        if (
            absent is not None
            and not is_remote
            and not clause.is_negative
            and self._appears(sentence, clause, absent, text)
        ):
            yield self._elsewhere(absent, text)
            return
        if not is_remote and not clause.is_negative:
            absent = self._absent_partner(sentence, clause)
            if absent is not None:
                yield self._elsewhere(absent, text)
                return
        company = next((one for one in clause.subjects() if self._is_with_you(one)), None)
        if company is not None and self._goes(clause):
            yield Contradiction(
                "presence", text.strip(), f"{self._facts.after.name_of(company)} is where you are"
            )
            return
        yield from self._check_alone(clause, text)
        yield from self._check_where(clause, text)

    def _check_unmoved(self, clause: Clause, text: str) -> Iterator[Contradiction]:
        """Check `has not left the x` of somebody who has left it."""
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

    def _is_near(self, clause: Clause) -> bool:
        """Return True if a clause is about the player, the place of the player, or people there."""
        if {"here"} & (clause.adverbs | set(clause.rest_words)):
            return True
        for group in (*clause.objects, *(group for _, group in clause.where)):
            chain = [group, *([group.of] if group.of is not None else [])]
            for one in chain:
                keys = [*one.keys("entity"), *one.owned_by()]
                if self._you in keys or any(self._is_with_you(key) for key in keys):
                    return True
                if set(one.keys("place")) & self._here:
                    return True
        return False

    def _appears(self, sentence: Sentence, clause: Clause, absent: str, text: str) -> bool:
        """Return True if an entity of another place is said to be in the scene."""
        if clause.is_passive or (clause.form == PARTICIPLE and not clause.is_perfect):
            return False
        near = self._is_near(clause)
        if self._names_place_of(sentence, absent):
            return near and clause.is_a("arrive", "give") and not clause.is_perfect
        if clause.base == "be" and not clause.is_progressive:
            return near or {"back", "beside"} & set(clause.rest_words[:2]) != set()
        if clause.is_perfect:
            return clause.is_a("arrive") or (near and clause.is_a("move"))
        if near and not (
            clause.is_a("mental") and clause.base not in words("wait sit stay sleep lie be rest")
        ):
            return clause.base not in words("owe miss resemble trust remain mean")
        if clause.is_a("arrive", "sit") and clause.base not in words(
            "wait stay remain work live sleep get find be land rest"
        ):
            return True
        if (
            clause.base in words("reply answer whisper murmur mutter greet nod grumble mumble")
            and not clause.objects
        ):
            return True
        if "communication" in clause.senses:
            is_loud = clause.base in words("shout call yell cry holler bellow scream bawl")
            return (
                "\u201c" in sentence.text
                and not is_loud
                and not clause.subordinator
                and not self._is_relative(sentence, clause)
            )
        return bool(clause.senses & _VISIBLE) and not clause.is_a("mental")

    def _is_relative(self, sentence: Sentence, clause: Clause) -> bool:
        return any(
            token.word in {"who", "which"} and clause.span[0] <= token.start < clause.span[1]
            for token in sentence.tokens
        )

    def _absent_partner(self, sentence: Sentence, clause: Clause) -> str | None:
        """Return an absent entity that people in the scene meet, see or touch."""
        if not any(one == self._you or self._is_with_you(one) for one in clause.subjects()):
            owner = None if clause.subject is None else self._absent(clause.subject.owned_by())
            is_body = clause.subject is not None and clause.subject.word in words_of("words", "body")
            if (
                owner is not None
                and is_body
                and not clause.is_a("rest")
                and (self._is_near(clause) or clause.senses & {"motion", "body", "contact"})
            ):
                return None if self._names_place_of(sentence, owner) else owner
            if (
                clause.subject is not None
                and clause.subject.word == "there"
                and clause.base in words("be stand sit wait")
            ):
                return self._absent(key for one in clause.objects for key in one.keys("entity"))
            return None
        joined = self._absent(clause.subjects())
        if joined is not None and not clause.is_a("mental"):
            return joined
        for group in clause.objects:
            absent = self._absent(group.keys("entity"))
            touches = bool(clause.senses & {"contact", "possession"}) or clause.base in words(
                "see meet face find greet hug kiss watch help join follow thank pass show"
            )
            if (
                absent is not None
                and touches
                and not self._names_place_of(sentence, absent)
                and clause.base not in words("leave miss need lose keep have")
            ):
                return absent
            owner = self._absent(group.owned_by())
            if (
                owner is not None
                and group.word in words("hand hands arm eye eyes gaze shoulder sleeve")
                and clause.senses & {"contact", "possession", "perception"}
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

    def _goes(self, clause: Clause) -> bool:
        """Return True if somebody with the player is said to be away."""
        told_words = clause.rest_words
        if clause.base == "be" and not clause.is_progressive:
            if clause.is_negative:
                return "here" in told_words[:3] or told_words[:2] in (["with", "you"], ["with", "us"])
            gone = next((word for word in told_words[:3] if word in _GONE), None)
            return (
                gone is not None
                and not (gone == "gone" and "for" in told_words[:3])
                and "far" not in told_words
            )
        if clause.is_negative or not clause.is_a("leave") or clause.is_passive:
            return False
        if clause.base == "go" and clause.verb == "go":
            return bool(words("out home away off") & set(told_words[:2]))
        things = [
            one
            for one in clause.objects
            if not (
                one.keys("place") or self._you in one.keys("entity") or one.word in {"room", "place", "scene"}
            )
        ]
        if clause.base == "take":
            return "off" in told_words[:1] and not clause.objects
        if clause.base in words("leave escape abandon desert exit flee") and things:
            return False
        behind = {"behind", "into"} & set(told_words[:1]) and clause.base in words(
            "retreat withdraw vanish disappear escape"
        )
        return not behind and not (
            "silence" in told_words or "thought" in told_words or "thoughts" in told_words
        )

    def _check_alone(self, clause: Clause, text: str) -> Iterator[Contradiction]:
        if clause.base != "be" or clause.is_negative or self._you not in clause.subjects():
            return
        told_words = clause.rest_words
        is_alone = "alone" in {*told_words[:4], *clause.adverbs} and not {"with", "your", "feel"} & set(
            told_words
        )
        company = [one for one in self._facts.after.names if self._is_with_you(one)]
        if is_alone and company and not any(word in {"this", "it"} for word in told_words):
            yield Contradiction(
                "presence", text.strip(), f"{self._facts.after.name_of(company[0])} is where you are"
            )

    def _check_where(self, clause: Clause, text: str) -> Iterator[Contradiction]:
        if clause.is_negative:
            return
        for entity in clause.subjects():
            places = self._facts.places_of(entity)
            if not places or (entity != self._you and self._facts.is_alive(entity) is False):
                continue
            place = self._place_told(clause)
            if place is not None and (place not in places or self._is_left_behind(clause, entity, place)):
                yield self._elsewhere(entity, text)
                return
            if entity == self._you and len(places) == 1 and self._leaves_here(clause, places):
                yield self._elsewhere(entity, text)
                return
        subject = clause.subject
        if subject is None or self._you in clause.subjects():
            return
        named = [*subject.keys("place"), *subject.places]
        if named and not set(named) & self._here:
            is_around = any(
                word in words("around about over above under beneath")
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

    def _is_left_behind(self, clause: Clause, entity: str, place: str) -> bool:
        """Return True if somebody who moved is said to stay in the place before."""
        before, after = (facts.places.get(entity) for facts in (self._facts.before, self._facts.after))
        if place != before or before == after:
            return False
        return clause.base in {"stay", "remain", "linger"} or (
            entity != self._you and clause.base in words("be wait sit stand lie")
        )

    def _place_told(self, clause: Clause) -> str | None:
        """Return the place in which a clause puts its subject."""
        if clause.base in words_of("verbs", "perceive") and clause.base != "turn":
            return None
        is_move = clause.is_a("move", "arrive") and not clause.is_passive
        puts = (
            clause.base in _PUTS
            and any(
                not one.word.endswith("sel") and not one.word.endswith(("self", "selves"))
                for one in clause.objects
            )
            and not clause.is_passive
        )
        carried = clause.is_passive and bool(clause.senses & words("motion contact possession social change"))
        for word, group in clause.where:
            places = group.keys("place")
            if not places or puts:
                continue
            if word in words("in inside within aboard") and (not clause.is_passive or carried):
                return places[0]
            if word in {"into", "onto", "to"} and (is_move or carried):
                return places[0]
            if word in words("at on under among") and (
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

    def _leaves_here(self, clause: Clause, places: set[str]) -> bool:
        if clause.base in words("leave exit abandon flee quit escape"):
            return any(set(one.keys("place")) & places for one in clause.objects[:1])
        out = {"out", "from"} & set(clause.rest_words[:2])
        return (
            bool(out)
            and clause.is_a("move")
            and any(set(one.keys("place")) & places for _, one in clause.phrases[:1])
            and clause.base not in {"go", "get"}
        )

    # --- groups ---

    def _check_groups(self, sentence: Sentence, text: str) -> Iterator[Contradiction]:
        """Check what is said by nouns: the corpse of a living person, no sign of a present one."""
        tokens = sentence.tokens
        for first, second, third in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False):
            is_late = first.word == "late" and second.tag == "name"
            is_dead = (
                second.text in {":", ","}
                and third is not None
                and third.word == "dead"
                and first.tag == "name"
            )
            after = (
                tokens[tokens.index(third) + 1].word
                if is_dead and third is not None and third is not tokens[-1]
                else ""
            )
            living = self._living(
                key
                for token in ((second,) if is_late else (first,) if is_dead else ())
                for kind, key in token.refs
                if kind == "entity"
            )
            if living is not None and after not in _NOT_DEATH - {"in", "on"}:
                yield Contradiction("life", text.strip(), f"{self._facts.after.name_of(living)} is alive")
                return
        if sentence.clauses and not any(self._is_now(clause) for clause in sentence.clauses):
            return
        for _, group in sentence.groups:
            owners = [*group.owned_by(), *(group.of.keys("entity") if group.of is not None else ())]
            living = self._living(owners)
            if living is not None and self._is_corpse(sentence, group):
                yield Contradiction("life", text.strip(), f"{self._facts.after.name_of(living)} is alive")
                return
            company = next((one for one in owners if self._is_with_you(one)), None)
            if company is None:
                continue
            is_lost = group.word in {"sign", "trace"} and "no" in self._words_before(sentence, group)
            if is_lost or self._is_empty_seat(sentence, group):
                yield Contradiction(
                    "presence", text.strip(), f"{self._facts.after.name_of(company)} is where you are"
                )
                return

    def _words_before(self, sentence: Sentence, group: Group) -> list[str]:
        place = sentence.tokens.index(group.tokens[0])
        return [token.word for token in sentence.tokens[max(0, place - 2) : place + 1]]

    def _is_corpse(self, sentence: Sentence, group: Group) -> bool:
        if group.word in _EXACT_CORPSES:
            return not any(not clause.is_asserted for clause in sentence.clauses)
        clauses = [
            clause for clause in sentence.clauses if clause.subject is group or group in clause.objects
        ]
        if group.word in {"body", "form", "figure"}:
            told_words = group.all_words | {word for clause in clauses for word in clause.rest_words[:3]}
            return bool(_LIFELESS & told_words) or any(clause.is_a("mourn") for clause in clauses)
        return group.word in _PULSE and any(
            clause.subject is group
            and (clause.base in _ENDS or {"stopped", "gone"} & set(clause.rest_words[:2]))
            and not clause.is_negative
            for clause in clauses
        )

    def _is_empty_seat(self, sentence: Sentence, group: Group) -> bool:
        return group.word in _SEATS and any(
            clause.subject is group
            and words("empty vacant deserted abandoned") & set(clause.rest_words[:3])
            and not clause.is_negative
            for clause in sentence.clauses
        )
