"""Claims about people: that they are alive or dead, and what they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import GERUND, PARTICIPLE, verb_forms, words, words_of
from peripety.session.narration.claims.record import WrongClaim

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.session.narration.claims.clauses import Group, ProseClause, Sentence
    from peripety.session.narration.claims.english import ProseWord
    from peripety.session.narration.claims.record import TurnFacts


_ACTS = words(
    "motion contact body communication consumption perception possession social "
    "creation competition emotion change weather"
)
_LIVELY = _ACTS | words("perception cognition") - words("emotion")
_NO_OBJECT = words("nothing none")
_EXACT_CORPSES = words("corpse grave funeral cadaver tomb burial death murder killer remains carcass")
_LIFELESS = words("lifeless dead cold still limp motionless")
_PULSE = words("heart pulse breathing breath heartbeat")
_ENDS = words("stop cease fail end fade")
_IDIOMS = words(
    "laughter laughing boredom shame embarrassment curiosity envy thirst joy act scene role part play game"
)
_DURATIONS = words("second seconds minute minutes hour hours day days week weeks month months year years")
_CARRIES = words(
    "carry drag haul lift lay cover lower load bring dig pull wrap wash bury burn identify uncover find "
    "throw roll turn shroud"
)
_NOT_DEATH = words(
    "tired serious set weight certain wrong drunk asleep quiet silent calm ahead "
    "against sure center end in on weary straight last level beat to for still"
)
# `dead in the water`, `dead on his feet`
_NOT_GRAVES = words("feet legs water time target track tracks center centre ground eyes mind middle face")
# Hurts that no one survives.
_FATAL = {"neck": "broken", "throat": "cut", "skull": "split", "heart": "stopped"}


class LifeClaims:
    """Checker of claims about the lives of entities.

    Args:
        facts: the turn.
        is_past: True if the past is the tense of the story.
    """

    def __init__(self, facts: TurnFacts, *, is_past: bool = False) -> None:
        self._facts = facts
        self._is_past = is_past
        self._you = facts.after.you

    def check(self, sentence: Sentence, text: str) -> Iterator[WrongClaim]:
        """Yield the claims of a sentence that contradict the record.

        Args:
            sentence: the sentence without speech.
            text: the sentence.
        """
        if sentence.is_unreal:
            return
        for clause in sentence.clauses:
            yield from self._check_life(sentence, clause, text)
        yield from self._check_groups(sentence, text)

    def _dead(self, keys: Iterable[str]) -> str | None:
        return next((one for one in keys if one != self._you and self._facts.is_alive(one) is False), None)

    def _living(self, keys: Iterable[str]) -> str | None:
        is_over = self._facts.status.kind == "lost"
        return next(
            (
                one
                for one in keys
                if self._facts.is_alive(one) is True
                or (one == self._you and not is_over and self._facts.is_alive(one) is None)
            ),
            None,
        )

    def _check_life(self, sentence: Sentence, clause: ProseClause, text: str) -> Iterator[WrongClaim]:
        yield from self._check_recovery(clause, text)
        dead = self._dead(clause.subjects()) or self._dead_partner(clause)
        if (
            dead is not None
            and clause.is_now(is_past=self._is_past)
            and not clause.is_negative
            and not (clause.subordinator in {"when", "while"} and clause.base == "be")
            and self._acts(clause, dead)
        ):
            yield WrongClaim("life", text.strip(), f"{self._facts.after.name_of(dead)} is dead")
            return
        if dead is not None and clause.is_now(is_past=self._is_past) and self._is_undead(clause):
            yield WrongClaim("life", text.strip(), f"{self._facts.after.name_of(dead)} is dead")
            return
        owner = None if clause.subject is None else self._dead(clause.subject.owned_by())
        if owner is not None and clause.is_now(is_past=self._is_past) and self._is_lively_body(clause):
            yield WrongClaim("life", text.strip(), f"{self._facts.after.name_of(owner)} is dead")
            return
        people = [*clause.subjects(), *(key for one in clause.objects for key in one.keys("entity"))]
        # The end of the player is the end of the run, which its own check reads.
        alive = (one for one in people if one != self._you and self._living([one]) is not None)
        hurt = clause.subject
        state = _FATAL.get(hurt.word) if hurt is not None else None
        if state is not None and hurt is not None and not (clause.is_negative or clause.is_infinitive):
            told = {
                clause.base,
                *clause.rest_words[:2],
                *([verb_forms(clause.base)[3]] if clause.base else []),
            }
            owner = self._living(hurt.owned_by()) if clause.base in {"be", "break", "cut", "stop"} else None
            if state in told and owner is not None and owner != self._you and clause.is_asserted:
                yield WrongClaim("life", text.strip(), f"{self._facts.after.name_of(owner)} is alive")
                return
        living = next((one for one in alive if self._dies(sentence, clause, one)), None)
        if living is not None and clause.is_asserted:
            name = self._facts.after.name_of(living)
            yield WrongClaim("life", text.strip(), f"{name} is alive")

    @staticmethod
    def _is_undead(clause: ProseClause) -> bool:
        """Return True for `is not dead`, `has a pulse`."""
        if clause.base == "be":
            return clause.is_negative and "dead" in clause.rest_words[:3] and "only" not in clause.rest_words
        return clause.base == "have" and not clause.is_negative and "pulse" in clause.rest_words[:4]

    def _check_recovery(self, clause: ProseClause, text: str) -> Iterator[WrongClaim]:
        """Check that a person who died in this turn does not live on."""
        after = self._facts.after.alive
        lost = next((one for one in clause.subjects() if after.get(one) is False and one != self._you), None)
        if lost is None or clause.is_negative:
            return
        told = clause.rest_words
        lives = (
            clause.base in {"survive", "recover", "heal"}
            or clause.verb == "pull-through"
            or (clause.base == "pull" and "through" in told[:1])
        )
        mends = clause.base == "be" and told[:3] == ["on", "the", "mend"]
        is_now = clause.is_asserted and (clause.is_past is self._is_past or clause.is_perfect)
        through = (
            clause.base in {"come", "pull", "get"}
            and "through" in told[:2]
            and (clause.is_perfect or told[1:2] in ([], ["it"], ["after"]))
        )
        still = words("still yet") & {*told, *clause.adverbs}
        breathes = clause.base in {"breathe", "live"} and bool(still)
        lively = clause.base in words("be sit stand") and bool(
            words("alive living unharmed unhurt breathing") & set(told[:4])
        )
        lively |= clause.base in words("sit stand walk come") and bool(
            {"scratch"} & set(told) and {"not", "without"} & set(told)
        )
        mends |= is_now and (through or breathes or lively) and not clause.subordinator
        will = clause.base == "live" and clause.governor is not None and clause.governor.base == "go"
        if (lives and clause.is_asserted) or mends or will:
            yield WrongClaim("life", text.strip(), f"{self._facts.after.name_of(lost)} is dead")

    def _dead_partner(self, clause: ProseClause) -> str | None:
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

    def _acts(self, clause: ProseClause, dead: str) -> bool:
        """Return True if only a living person does this."""
        if dead not in clause.subjects():
            return True
        if "communication" in clause.senses and "still" in {*clause.adverbs, *clause.rest_words}:
            # `still speaks to you` is a memory.
            return False
        if clause.is_passive or (clause.form == PARTICIPLE and not clause.is_perfect):
            return False
        if clause.is_a("die") or (clause.is_a("kill") and not clause.objects):
            # `drowned in the first flood`
            return False
        if (
            clause.base == "look"
            and clause.rest_words[:1]
            and clause.rest_words[0]
            in words("at up down over around back away toward towards to out into from round")
        ):
            return True
        if clause.base in words("be look feel sound seem") and not clause.is_progressive:
            told = clause.rest_words[:4]
            if "up" in told[:2] and set(told[told.index("up") + 1 :]) & words("on in at there under to"):
                # `is up on the x`
                return False
            return any(word in words_of("words", "alive") for word in told) and not (
                {"in", "on", "at"} & set(told[:1]) or ("back" in told and clause.base != "be")
            )
        has_effect = not clause.objects or any(one.word not in _NO_OBJECT for one in clause.objects)
        return has_effect and not clause.is_a("rest") and bool(clause.senses & _LIVELY)

    def _is_lively_body(self, clause: ProseClause) -> bool:
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
            and clause.base not in words("stare gaze be echo ring stand sit point gleam")
        )

    def _dies(self, sentence: Sentence, clause: ProseClause, living: str) -> bool:
        is_subject = living in clause.subjects()
        told = clause.rest_words
        if not is_subject:
            is_nobody = clause.subject is not None and clause.subject.word in {"nobody", "none"}
            is_real = not (clause.is_negative or clause.is_infinitive or is_nobody)
            return clause.is_a("kill", "mourn") and is_real
        if {"hardly", "scarcely", "barely"} & clause.adverbs:
            return False
        is_timed = sentence.text[clause.span[1] :].lstrip().startswith(("after", "before", "later", "while"))
        if clause.is_negative:
            is_end = clause.base in (
                words("survive breathe live") if living != self._you else {"survive"}
            ) or (clause.base == "make" and "it" in told)
            is_end |= clause.verb.startswith("get") and told[:2] == ["up", "again"]
            is_gone = clause.base == "be" and "alive" in told[:3]
            return (
                is_end
                and clause.modal not in {"can", "cannot", "could"}
                and not (clause.base in {"breathe", "live"} and len(told) > 1)
            ) or is_gone
        if clause.is_a("die") and clause.base != "pass" and clause.base not in {"give", "starve", "freeze"}:
            return (
                not _IDIOMS & set(told)
                and told[:1] != ["to"]
                and told[:3] != ["a", "little", "inside"]
                and not (told == ["a", "little"] and not is_timed)
                and not clause.is_progressive
            )
        if clause.is_a("die") or (clause.is_a("kill") and clause.is_passive):
            return True
        if clause.base in {"stop", "cease"} and "breathing" in told[:2]:
            return True
        if clause.base == "breathe" and clause.form == GERUND and clause.copied_subject:
            governor = clause.governor
            stops = governor is not None and governor.base in {"stop", "cease"} and not governor.is_negative
            return stops and not (clause.rest_words or (governor is not None and governor.modal))
        if clause.base in words("hang shoot drown kill") and any(
            one.word in {"himself", "herself", "themselves"} for one in clause.objects
        ):
            return True
        if (
            clause.base in words("gun shoot cut strike hack")
            and clause.is_passive
            and ("dead" in told[:1] or (clause.base == "gun" and "down" in told[:1]))
        ):
            return True
        if clause.base == "breathe" and {"last", "final"} & set(told[:2]):
            return True
        if (
            clause.base in {"draw", "take", "breathe"}
            and {"last", "final"} & set(told)
            and ({"breath"} & set(told) or clause.base == "breathe")
        ):
            return True
        if clause.base in words("be lie fall drop collapse slump sprawl go crumple"):
            return self._is_dead_predicate(clause)
        return False

    def _is_dead_predicate(self, clause: ProseClause) -> bool:
        told = clause.rest_words
        reach = 8 if clause.base in words("fall drop collapse slump crumple") else 5
        for place, word in enumerate(told[:reach]):
            if word in words("dead lifeless deceased slain"):
                after = told[place + 1] if place + 1 < len(told) else ""
                if after == "for" and _DURATIONS & set(told[place + 2 : place + 6]):
                    after = ""
                where = next((one for word, one in clause.phrases if word == after), None)
                is_place = where is not None and where.word not in _NOT_GRAVES and after in {"on", "in", "at"}
                if after in _NOT_DEATH and not is_place:
                    return False
                return (
                    told[place - 1] not in words("half nearly almost like as not the n't") if place else True
                )
        return False

    def _is_corpse(self, sentence: Sentence, group: Group) -> bool:
        if group.word in _EXACT_CORPSES:
            return not any(not clause.is_asserted for clause in sentence.clauses)
        clauses = [
            clause for clause in sentence.clauses if clause.subject is group or group in clause.objects
        ]
        if group.word in {"body", "form", "figure"}:
            told = group.all_words | {word for clause in clauses for word in clause.rest_words[:3]}
            lies = any(
                clause.subject is group
                and clause.base in words("be lie hang float rest sprawl swing")
                and clause.phrases
                for clause in clauses
            )
            is_carried = group.word == "body" and any(
                (group in clause.objects or (clause.subject is group and clause.is_passive))
                and clause.base in _CARRIES
                and not clause.is_negative
                for clause in clauses
            )
            return (
                bool(_LIFELESS & told)
                or is_carried
                or (group.word == "body" and lies)
                or any(clause.is_a("mourn") for clause in clauses)
            )
        return group.word in _PULSE and any(
            clause.subject is group
            and (clause.base in _ENDS or {"stopped", "gone"} & set(clause.rest_words[:2]))
            and not clause.is_negative
            for clause in clauses
        )

    def _check_groups(self, sentence: Sentence, text: str) -> Iterator[WrongClaim]:
        """Check nouns: the corpse of a living person, the late person."""
        living = self._living(_late_or_dead(sentence.tokens))
        is_now = not sentence.clauses or any(
            clause.is_now(is_past=self._is_past) for clause in sentence.clauses
        )
        for _, group in sentence.groups if living is None and is_now else ():
            owners = [*group.owned_by(), *(group.of.keys("entity") if group.of is not None else ())]
            if self._is_corpse(sentence, group):
                living = living or self._living(owners)
        if living is not None and living != self._you:
            yield WrongClaim("life", text.strip(), f"{self._facts.after.name_of(living)} is alive")


def _late_or_dead(tokens: Sequence[ProseWord]) -> Iterator[str]:
    """Yield the entities of `the late x` and of `x: dead`."""
    ends = [*tokens[2:], None, None]
    for first, second, third, fourth in zip(tokens, tokens[1:], ends, ends[1:], strict=False):
        is_dead = second.text in {":", ","} and third is not None and third.word == "dead"
        if first.word == "with" and second.tag == "name" and third is not None and third.word == "dead":
            yield from (key for kind, key in second.refs if kind == "entity")
            continue
        if is_dead and fourth is not None and fourth.word in _NOT_DEATH - {"in", "on"}:
            continue
        named = second if first.word == "late" else first if is_dead else None
        if named is not None and named.tag == "name":
            yield from (key for kind, key in named.refs if kind == "entity")


_EARLIER = words(
    "once before earlier when last yesterday first ago since already twice often until till then"
)


def _told_earlier(sentence: Sentence) -> bool:
    return bool(_EARLIER & {token.word for token in sentence.tokens})


_NOT_HELD = words("sight mind view eye look need glance hope interest use")
_SLIGHT = words_of("sets", "slight")
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

    def check(self, sentence: Sentence, text: str) -> Iterator[WrongClaim]:
        """Yield the claims of a sentence that contradict the record.

        Args:
            sentence: the sentence without speech.
            text: the sentence.
        """
        if sentence.is_unreal:
            return
        for clause in sentence.clauses:
            kept = self._kept(clause)
            for thing in kept if self._is_past or not clause.is_past else ():
                if all(
                    self._contradicts(thing, one, is_denied=False, clause=None) for one in clause.subjects()
                ):
                    yield self._contradiction(thing, text)
                    return
            is_earlier = clause.is_past and clause.is_perfect
            if not clause.is_asserted or (is_earlier and (not self._is_past or _told_earlier(sentence))):
                continue
            for thing, holder, is_denied in self._told(clause):
                if self._contradicts(thing, holder, is_denied=is_denied, clause=clause):
                    yield self._contradiction(thing, text)
                    return
        yield from self._check_groups(sentence, text)

    def _kept(self, clause: ProseClause) -> list[str]:
        """Return the things that the subject of a clause will not give away, and so has."""
        is_refusal = clause.is_negative and clause.modal in words("will 'll would wo")
        hands = clause.base in words("yield surrender relinquish") or any(
            f"{clause.base} {word}" in ("give up", "hand over", "let go", "part with")
            for word in clause.rest_words
        )
        groups = [*clause.objects, *(group for _, group in clause.phrases)]
        is_kept = is_refusal and hands and bool(clause.subjects())
        return [thing for one in groups for thing in self._things_in(one)] if is_kept else []

    def _contradiction(self, thing: str, text: str) -> WrongClaim:
        current = self._facts.after.holders.get(thing, "")
        verb = "have" if current == self._you else "has"
        where = current not in self._facts.after.names and current != self._you
        name = self._facts.after.name_of(current)
        told = f"the {thing} is in the {name}" if where else f"{name} {verb} the {thing}"
        return WrongClaim("possession", text.strip(), told)

    def _contradicts(self, thing: str, holder: str, *, is_denied: bool, clause: ProseClause | None) -> bool:
        if holder == self._you and not self._knows_you:
            return False
        holders = self._facts.holders_of(thing)
        if is_denied and holder == "" and clause is not None and clause.base in {"be", "go"}:
            # A thing that is gone may be in the hands of another person.
            return {self._you} == holders
        if is_denied:
            return {holder} == holders or (holder == "" and len(holders) == 1)
        if clause is not None and clause.is_past and not self._is_past:
            return False
        return holder not in holders

    def _things_in(self, group: Group) -> list[str]:
        return [key for key in group.keys("thing") if key in self._things]

    def _people(self, clause: ProseClause) -> list[str]:
        return clause.subjects()

    def _told(self, clause: ProseClause) -> Iterator[tuple[str, str, bool]]:
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
        self, clause: ProseClause, thing: str, people: list[str]
    ) -> Iterator[tuple[str, str, bool]]:
        told_words = clause.rest_words
        if _NOT_HELD & set(told_words):
            return
        is_nobody = clause.subject is not None and clause.subject.word in {"nobody", "none"}
        is_nobody |= clause.subject is not None and clause.subject.word == "one" and clause.subject.is_negated
        if is_nobody and clause.is_a("hold") and not clause.is_passive and not clause.phrases:
            yield thing, "", True
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
        elif clause.base == "turn" and words("round around") & set(told_words):
            # A thing in the hands of another person can be turned round.
            return
        elif any(self._facts.holders_of(thing) & {*one.owned_by()} for one in clause.objects):
            # `You polish x's token`
            return
        elif (
            clause.is_a("handle")
            and clause.base
            in words(
                "pocket unfold use turn raise wave polish spin flip jingle twirl dangle unroll "
                "clip buckle strap pin slide slip juggle insert fit produce brandish flourish "
                "fish"
            )
        ) or self._handles(clause, thing):
            yield from ((thing, one, False) for one in people[:1])

    def _handles(self, clause: ProseClause, thing: str) -> bool:
        """Return True if a clause is about a thing in the hands of its subject."""
        holder = self._facts.after.holders.get(thing)
        if (
            not clause.senses & words("contact possession motion")
            or clause.base in _SLIGHT
            or clause.is_infinitive
        ):
            return False
        groups = [*clause.groups(), *(group for _, group in clause.fronted)]
        named = {key for one in groups for key in (*one.keys("entity"), *one.owned_by())}
        is_free = all(
            not one.owner and one.of is None
            for one in clause.objects
            if thing in one.keys("thing") and self._you not in one.owned_by()
        )
        return is_free and holder in self._facts.after.names and holder not in named

    def _receiver(self, clause: ProseClause) -> str | None:
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

    def _body_owner(self, clause: ProseClause) -> str | None:
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

    def _drawn_from(self, clause: ProseClause) -> str | None:
        """Return the entity out of whose pocket something comes."""
        if clause.base not in words("pull take draw produce fish dig get slide slip bring whip unfold"):
            return None
        for word, group in clause.phrases:
            if word in {"of", "from"} and group.word in words_of("words", "holder") and group.owned_by():
                return group.owned_by()[0]
        return None

    def _sources(self, clause: ProseClause) -> list[str]:
        found = []
        for word, group in clause.phrases:
            if word in {"from", "off"}:
                found += group.keys("entity") or (
                    group.owned_by() if group.word in words_of("words", "holder") else []
                )
        return found

    def _subject_holders(self, clause: ProseClause, thing: str) -> Iterator[tuple[str, str, bool]]:
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

    def _phrase_holders(self, clause: ProseClause, people: list[str]) -> Iterator[tuple[str, str, bool]]:
        """Yield the holders of things behind a preposition: `you walk off with the token`."""
        if clause.is_negative or clause.is_passive:
            return
        for word, group in clause.where:
            for thing in self._things_in(group):
                takes = clause.base in words(
                    "walk run make go stride slip leave ride disappear vanish flee return come"
                )
                if word == "with" and clause.base == "leave" and clause.objects:
                    # `leaves you with the token`
                    yield from ((thing, one, False) for one in clause.objects[0].keys("entity")[:1])
                elif word == "with" and (
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
                closes = any(one.word in words("fingers hand hands fist") for one in clause.objects)
                if (
                    word in {"around", "on", "over", "round"}
                    and closes
                    and clause.base in words("close wrap tighten curl clench")
                ):
                    yield from ((thing, one, False) for one in people[:1])

    def _check_groups(self, sentence: Sentence, text: str) -> Iterator[WrongClaim]:
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
                if second.word in words_of("words", "holder")
                and word in words("in on around under at from across over inside round against")
                else []
            )
            if word == "from" and sentence.clauses:
                holder = []
            # A preposition and its determiner are between them.
            things = self._things_in(first) if gap <= 3 else []  # noqa: PLR2004
            if things and holder and self._contradicts(things[0], holder[0], is_denied=False, clause=None):
                yield self._contradiction(things[0], text)
                return
