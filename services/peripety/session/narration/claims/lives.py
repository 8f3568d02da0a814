"""Claims about the lives of people: that the living are dead, and what the dead do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.session.narration.claims.record import Contradiction
from peripety.session.narration.claims.words import PARTICIPLE, words, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.session.narration.claims.clauses import Clause, Group, Sentence
    from peripety.session.narration.claims.record import TurnFacts
    from peripety.session.narration.claims.words import Word


_ACTS = words(
    "motion contact body communication consumption perception possession social "
    "creation competition emotion change weather"
)
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

    def check(self, sentence: Sentence, text: str) -> Iterator[Contradiction]:
        """Yield the claims of a sentence that contradict the record.

        Args:
            sentence: the sentence without speech.
            text: the sentence.
        """
        if sentence.is_unreal:
            return
        for clause in sentence.clauses:
            yield from self._check_life(clause, text)
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

    def _check_life(self, clause: Clause, text: str) -> Iterator[Contradiction]:
        yield from self._check_recovery(clause, text)
        dead = self._dead(clause.subjects()) or self._dead_partner(clause)
        if (
            dead is not None
            and clause.is_now(is_past=self._is_past)
            and not clause.is_negative
            and not (clause.subordinator in {"when", "while"} and clause.base == "be")
            and self._acts(clause, dead)
        ):
            yield Contradiction("life", text.strip(), f"{self._facts.after.name_of(dead)} is dead")
            return
        if dead is not None and clause.is_now(is_past=self._is_past) and self._is_undead(clause):
            yield Contradiction("life", text.strip(), f"{self._facts.after.name_of(dead)} is dead")
            return
        owner = None if clause.subject is None else self._dead(clause.subject.owned_by())
        if owner is not None and clause.is_now(is_past=self._is_past) and self._is_lively_body(clause):
            yield Contradiction("life", text.strip(), f"{self._facts.after.name_of(owner)} is dead")
            return
        people = [*clause.subjects(), *(key for one in clause.objects for key in one.keys("entity"))]
        alive = (one for one in people if self._living([one]) is not None)
        living = next((one for one in alive if self._dies(clause, one)), None)
        if living is not None and clause.is_asserted:
            name = self._facts.after.name_of(living)
            yield Contradiction(
                "life", text.strip(), f"{name} {'are' if living == self._you else 'is'} alive"
            )

    @staticmethod
    def _is_undead(clause: Clause) -> bool:
        """Return True for `is not dead`, `has a pulse`."""
        if clause.base == "be":
            return clause.is_negative and "dead" in clause.rest_words[:3] and "only" not in clause.rest_words
        return clause.base == "have" and not clause.is_negative and "pulse" in clause.rest_words[:4]

    def _check_recovery(self, clause: Clause, text: str) -> Iterator[Contradiction]:
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
        will = clause.base == "live" and clause.governor is not None and clause.governor.base == "go"
        if (lives and clause.is_asserted) or mends or will:
            yield Contradiction("life", text.strip(), f"{self._facts.after.name_of(lost)} is dead")

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
            told = clause.rest_words[:4]
            return any(word in words_of("words", "alive") for word in told) and not (
                {"in", "on", "at"} & set(told[:1]) or ("back" in told and clause.base != "be")
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
        told = clause.rest_words
        if not is_subject:
            return clause.is_a("kill", "mourn") and not clause.is_negative and not clause.is_infinitive
        if clause.is_negative:
            is_end = clause.base in (
                words("survive breathe live wake") if living != self._you else {"survive"}
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
                and told[:2] != ["a", "little"]
                and not clause.is_progressive
            )
        if clause.is_a("die") or (clause.is_a("kill") and clause.is_passive):
            return True
        if clause.base in {"stop", "cease"} and "breathing" in told[:2]:
            return True
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

    def _is_dead_predicate(self, clause: Clause) -> bool:
        told = clause.rest_words
        for place, word in enumerate(told[:5]):
            if word in words("dead lifeless deceased slain"):
                after = told[place + 1] if place + 1 < len(told) else ""
                if after in _NOT_DEATH and not (
                    after in {"on", "in", "at"} and clause.base in {"lie", "fall", "drop"}
                ):
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
            return (
                bool(_LIFELESS & told)
                or (group.word == "body" and lies)
                or any(clause.is_a("mourn") for clause in clauses)
            )
        return group.word in _PULSE and any(
            clause.subject is group
            and (clause.base in _ENDS or {"stopped", "gone"} & set(clause.rest_words[:2]))
            and not clause.is_negative
            for clause in clauses
        )

    def _check_groups(self, sentence: Sentence, text: str) -> Iterator[Contradiction]:
        """Check nouns: the corpse of a living person, the late person."""
        living = self._living(_late_or_dead(sentence.tokens))
        is_now = not sentence.clauses or any(
            clause.is_now(is_past=self._is_past) for clause in sentence.clauses
        )
        for _, group in sentence.groups if living is None and is_now else ():
            owners = [*group.owned_by(), *(group.of.keys("entity") if group.of is not None else ())]
            if self._is_corpse(sentence, group):
                living = living or self._living(owners)
        if living is not None:
            yield Contradiction("life", text.strip(), f"{self._facts.after.name_of(living)} is alive")


def _late_or_dead(tokens: Sequence[Word]) -> Iterator[str]:
    """Yield the entities of `the late x` and of `x: dead`."""
    ends = [*tokens[2:], None, None]
    for first, second, third, fourth in zip(tokens, tokens[1:], ends, ends[1:], strict=False):
        is_dead = second.text in {":", ","} and third is not None and third.word == "dead"
        if is_dead and fourth is not None and fourth.word in _NOT_DEATH - {"in", "on"}:
            continue
        named = second if first.word == "late" else first if is_dead else None
        if named is not None and named.tag == "name":
            yield from (key for kind, key in named.refs if kind == "entity")
