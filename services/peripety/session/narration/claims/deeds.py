"""Claims about actions, endings and dice: that something was done, succeeded, failed or ended."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from peripety.session.narration.claims.clauses import ProseClause
from peripety.session.narration.claims.english import (
    GERUND,
    PARTICIPLE,
    Phrases,
    alternatives,
    drop_reported,
    is_negative,
    is_unreal,
    is_unsure,
    load_toml,
    remove_speech,
    split_clauses,
    split_sentences,
    verb_forms,
    verb_table,
    words,
    words_of,
)
from peripety.session.narration.claims.grammar import read_sentence
from peripety.session.narration.claims.record import WrongClaim
from peripety.session.state_facts import to_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.session.narration.claims.clauses import Group, Sentence
    from peripety.session.narration.claims.english import NameTable
    from peripety.session.narration.claims.record import TurnFacts


_ARTICLES = words("the a an your some his her their my our")
_PREPOSITIONS = words("for on at with to into after through up down over from")
_STALLS = frozenset(
    form for verb in words("stop die stall fail quit choke splutter") for form in verb_forms(verb)
)
_PARTICLES = words("out off in away back")
_NAMELESS = (
    _ARTICLES
    | _PREPOSITIONS
    | words("it its this that them one all everything of and or yourself yourselves us you")
)
_QUESTIONS = words("what who whom whose which how why where when whether")
_REFLEXIVES = words("yourself yourselves myself ourselves himself herself itself themselves")
_MISSES = words(
    "miss misses missed fail fails failed but vain nothing not n't no without wide useless too never jammed"
)
_ANY = words_of("sets", "indefinite")
_OUTCOMES = {name: re.compile(text) for name, text in load_toml("vocabulary.toml")["outcomes"].items()}
_CACHED_VERBS = 4_096
_CHANCE = re.compile(r'"(?:rand\w*|roll\w*|chance|dice|draw)"')


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of action.

    Attributes:
        verbs: what its actor does.
        results: what its object does or is when it succeeded.
        states: what its object is when it failed.
    """

    verbs: frozenset[str]
    results: frozenset[str]
    states: frozenset[str]


@cache
def _kinds() -> tuple[_Kind, ...]:
    rows = (line.split("|") for line in load_toml("vocabulary.toml")["deeds"].values())
    return tuple(_Kind(*(frozenset(part.split()) for part in row)) for row in rows)


@lru_cache(maxsize=_CACHED_VERBS)
def _kind_of(verb: str) -> _Kind:
    found = [one for one in _kinds() if verb in one.verbs]
    return _Kind(
        frozenset({verb}).union(*(one.verbs for one in found)),
        frozenset().union(*(one.results for one in found)),
        frozenset().union(*(one.states for one in found)),
    )


@dataclass(frozen=True, slots=True)
class Deed:
    """An action as a verb and its object.

    Attributes:
        action_id: the action.
        name: its name.
        verb: the verb.
        thing: the object; empty for none.
        has_chance: True if the effects depend on chance.
    """

    action_id: str
    name: str
    verb: str
    thing: str
    has_chance: bool

    @property
    def kind(self) -> _Kind:
        """The kinds of action to which the verb belongs."""
        return _kind_of(self.verb)


def read_deeds(action: Mapping[str, Any]) -> Iterator[Deed]:
    """Yield the readings of an action's name and id as a verb with an object."""
    rules = json.dumps({key: action.get(key) for key in ("derives", "effects", "preconditions")})
    has_chance = _CHANCE.search(rules) is not None
    for name in dict.fromkeys([str(action.get("name") or ""), to_words(action["id"])]):
        verb, *rest = re.findall(r"[^\W_]+(?:['\u2019-][^\W_]+)*", name.lower()) or [""]
        while len(rest) > 1 and rest[0] in _ARTICLES | _PREPOSITIONS | _PARTICLES:
            rest = rest[1:]
        # An id is often the verb alone, which is too little where the name has an object.
        is_bare_id = not rest and bool(action.get("name")) and name != action["name"]
        # The object of `find out what leads x to y` is a question, and neither x nor y.
        if len(verb) > 1 and not is_bare_id and not _QUESTIONS & set(rest):
            yield Deed(action["id"], action.get("name") or action["id"], verb, " ".join(rest), has_chance)


class DeedClaims:
    """Checker of claims about actions.

    Args:
        facts: the turn.
    """

    def __init__(self, facts: TurnFacts) -> None:
        self._facts = facts
        self.deeds = [deed for action in facts.spec.get("actions", ()) for deed in read_deeds(action)]
        self._kinds = {deed: deed.kind for deed in self.deeds}
        names = {name.lower(): entity for entity, known in facts.after.names.items() for name in known}
        self._people = {deed.thing: names[deed.thing] for deed in self.deeds if deed.thing in names}
        self.words = frozenset(form for deed in self.deeds for form in verb_forms(deed.verb))
        """The words with which a claim may begin."""

    def check(self, sentence: Sentence, text: str) -> Iterator[WrongClaim]:
        """Yield the claims of a sentence that contradict the record.

        Args:
            sentence: the sentence without speech.
            text: the sentence.
        """
        if not sentence.is_unreal:
            yield from self._check_actions(sentence, text)
            yield from self._check_flags(sentence, text)

    def _check_flags(self, sentence: Sentence, text: str) -> Iterator[WrongClaim]:
        """Check the states of things, such as a door that is locked."""
        before, after = self._facts.before.flags, self._facts.after.flags
        for (thing, state), value in after.items():
            if before.get((thing, state)) is not value or ("flag", thing) not in sentence.refs:
                continue
            for clause in sentence.clauses:
                subject = clause.subject
                if subject is None or ("flag", thing) not in subject.head.refs or not clause.is_asserted:
                    continue
                if self._is_wrong_state(clause, state, value=value):
                    told = "is" if value else "is not"
                    yield WrongClaim("action", text.strip(), f"the {thing} {told} {state}")
                    return

    def _is_wrong_state(self, clause: ProseClause, state: str, *, value: bool) -> bool:
        """Return True if a clause gives its subject a state that the record denies."""
        told = {*clause.rest_words[:3], *([verb_forms(clause.base)[3]] if clause.is_passive else ())}
        if (
            clause.base not in words("be stand lie hang look stay remain get swing hold fly")
            and not clause.is_passive
        ):
            return False
        opposite = {
            word
            for kind in _kinds()
            if state in kind.states | kind.results
            for word in (kind.results if state in kind.states else kind.states)
        }
        has_state, has_opposite = state in told, bool(opposite & told)
        is_on = has_state is not clause.is_negative if has_state or clause.is_negative else None
        if has_opposite and not clause.is_negative:
            return value
        return has_state and is_on is not value

    def _check_actions(self, sentence: Sentence, text: str) -> Iterator[WrongClaim]:
        named = sentence.named("object")
        heads = [clause.subject for clause in sentence.clauses if clause.subject is not None]
        heads += [one for clause in sentence.clauses for one in clause.objects[:1]]
        has_nothing = any(one.word == "nothing" for one in heads)
        for deed in self.deeds:
            person = self._people.get(deed.thing)
            is_absent = person is not None and person not in sentence.named("entity")
            is_named = (
                not deed.thing
                or (person is not None and not is_absent)
                or f"{deed.action_id}/{deed.thing}" in named
            )
            wrong = self._contradicted_whole(deed, sentence)
            if wrong is None and (is_named or has_nothing):
                wrong = self._contradicted_result(deed, sentence)
            if wrong is not None:
                yield WrongClaim("action", text.strip(), f"the action '{deed.name}' {wrong}")
                return

    def result_of(self, deed: Deed) -> str:
        """Return `done`, `failed`, `refused` or `untried`; `open` if the record does not show it."""
        results = [action.accepted for action in self._facts.actions if action.action_id == deed.action_id]
        if True not in results:
            return "refused" if results else "untried"
        rolls = [roll for roll in self._facts.rolls if roll.kind == deed.action_id]
        ids = {one.action_id for one in self.deeds}
        if not rolls and not deed.has_chance and all(roll.kind in ids for roll in self._facts.rolls):
            # Each roll is that of another action.
            return "open" if False in results else "done"
        if not rolls and (deed.has_chance or self._facts.rolls):
            accepted = {action.action_id for action in self._facts.actions if action.accepted}
            if len(accepted) != 1 or not self._facts.rolls:
                return "open"
            rolls = list(self._facts.rolls)
        if False in results:
            return "open"
        results = [roll.success for roll in rolls]
        return "done" if all(results) else "failed" if not any(results) else "open"

    def _contradicted_result(self, deed: Deed, sentence: Sentence) -> str | None:
        """Return the recorded result of an action if a sentence contradicts it."""
        result = self.result_of(deed)
        told = {
            "refused": "was refused",
            "untried": "is not an action of this turn",
            "failed": "failed",
            "done": "was carried out",
        }
        if result == "open":
            return None
        attempted = self._attempt_result(deed, sentence)
        if attempted is not None and attempted is not (result == "done"):
            return told[result]
        for clause in sentence.clauses:
            if result == "done":
                wrong = self._claims_failure(deed, clause, sentence)
            else:
                is_earlier = (
                    result == "untried"
                    and deed.action_id in self._facts.done_before
                    and (clause.is_past or clause.is_perfect)
                )
                wrong = not is_earlier and self._claims_success(deed, clause, sentence, result)
            if wrong:
                return told[result]
        return None

    def _attempt_result(self, deed: Deed, sentence: Sentence) -> bool | None:
        """Return the result that a sentence gives to an attempt: `your attempt to open the x fails`."""
        tries = [
            clause
            for clause in sentence.clauses
            if clause.is_infinitive and self._does(deed, clause) and self._has_object(deed, clause)
        ]
        if not tries:
            return None
        told_words = {token.word for token in sentence.tokens if token.start < tries[0].span[1]}
        is_attempt = bool(told_words & words("attempt attempts effort efforts try tries tried attempted bid"))
        later = [clause for clause in sentence.clauses if clause.start > tries[0].start and not clause.modal]
        for clause in later if is_attempt else ():
            is_own = clause.copied_subject or (
                clause.subject is not None
                and (
                    clause.subject.word in words("attempt effort try it")
                    or self._is_yours(clause)
                    or self._is_object(deed, clause.subject)
                )
            )
            ends = clause.base in words("end come meet be result") and bool(
                {"failure", "nothing", "vain"} & set(clause.rest_words)
            )
            if is_own and (clause.base in {"fail", "flop", "misfire"} or ends):
                return clause.is_negative
            if is_own and (
                clause.base in {"succeed", "work"} or (clause.base == "pay" and "off" in clause.rest_words)
            ):
                return not clause.is_negative
        return None

    def _contradicted_whole(self, deed: Deed, sentence: Sentence) -> str | None:
        """Return the recorded result of an action if a sentence about it as a whole contradicts it."""
        result = self.result_of(deed)
        outcome = self._named_outcome(deed, sentence) if result in {"done", "failed", "refused"} else None
        if outcome is not None and outcome is not (result == "done"):
            return {"done": "was carried out", "failed": "failed", "refused": "was refused"}[result]
        is_tried = any(one.action_id == deed.action_id and one.accepted for one in self._facts.actions)
        if is_tried and any(self._claims_omission(deed, clause, sentence) for clause in sentence.clauses):
            return "was carried out" if result == "done" else "was tried"
        return None

    def _claims_omission(self, deed: Deed, clause: ProseClause, sentence: Sentence) -> bool:
        """Return True if a clause states that an action was not even tried."""
        told = {token.word for token in sentence.tokens}
        late = words("again yet anymore longer further until till another without before")
        is_once = (
            "once" in told and re.search(r"\b(?:never|not) once\b", sentence.text, re.IGNORECASE) is None
        )
        if told & late or is_once or clause.modal:
            return False
        if self._is_untouched(deed, clause, sentence):
            return True
        governor, is_named = clause.governor, bool(deed.thing) and self._names_deed(deed, clause)
        is_any = clause.base == deed.verb and any(one.word in _ANY for one in clause.objects)
        if not is_named and not (is_any and not clause.is_passive):
            return False
        subject = clause.subject
        nobody = subject is not None and (
            subject.word == "nobody" or (subject.word == "one" and subject.is_negated)
        )
        if nobody and clause.is_asserted and not clause.is_infinitive and not clause.subordinator:
            return self.result_of(deed) == "done"
        if governor is None or not (clause.is_infinitive or clause.form == GERUND):
            return False
        holds_back = governor.base in words(
            "try attempt bother trouble dare care stir do think dream go come"
        )
        refuses = governor.base in words("refuse decline forget neglect omit")
        is_own = self._is_yours(governor) and not governor.modal and not governor.subordinator
        return is_own and (governor.is_negative if holds_back else refuses and not governor.is_negative)

    def _is_untouched(self, deed: Deed, clause: ProseClause, sentence: Sentence) -> bool:
        """Return True for `you never go near the x`, `no one touches the x`, `you let the x alone`."""
        subject = clause.subject
        told = {token.word for token in sentence.tokens}
        if told & words("but except save else") or clause.subordinator or not clause.is_asserted:
            return False
        if not deed.thing or subject is None:
            return False
        if clause.is_infinitive or any(
            one is not clause and self._does(deed, one) for one in sentence.clauses
        ):
            return False
        named = any(
            self._is_object(deed, one) for one in (*clause.objects, *(one for _, one in clause.where))
        )
        own = self._is_object(deed, subject)
        nobody = subject.word == "nobody" or subject.is_negated
        actor = self._is_yours(clause) or nobody or (clause.is_passive and not own)
        touches = clause.base in words_of("sets", "touches")
        if nobody or clause.is_negative:
            is_none = subject.is_negated and own and clause.is_passive
            is_held = is_none and clause.base in words_of("sets", "steady") | words("make give set")
            is_own = own and clause.is_passive and clause.base in {"touch", "try", "attempt"}
            return is_held or is_own or (actor and named and touches and self._is_clear(clause))
        told = set(clause.rest_words)
        if self._is_yours(clause) and clause.base in {"leave", "let"}:
            lone = words("alone untouched untried be lie")
            return bool(told & lone) and any(self._is_object(deed, one) for one in clause.objects[:1])
        stays = clause.base in words("be go stay remain lie stand sit hang leave")
        return own and stays and bool(told & {"untouched", "untried"})

    @staticmethod
    def _is_clear(clause: ProseClause) -> bool:
        """Return True if a negated clause is not about how something was done: `not very far`."""
        return not words("far long hard well much than enough so as only more") & set(clause.rest_words[:4])

    def _names_deed(self, deed: Deed, clause: ProseClause) -> bool:
        return self._does(deed, clause) and not clause.is_passive and self._has_object(deed, clause)

    def _named_outcome(self, deed: Deed, sentence: Sentence) -> bool | None:
        """Return the result that a sentence gives to an action by its noun: `the repair is a success`."""
        for clause in sentence.clauses:
            subject = clause.subject
            if subject is None or not clause.is_asserted or clause.modal or clause.copied_subject:
                continue
            if clause.subordinator or not self._is_noun_of(deed, subject):
                continue
            told = " ".join([clause.base, *clause.rest_words])
            for name, value in (("good", True), ("bad", False)):
                if _OUTCOMES[name].match(told) is not None:
                    return value is not clause.is_negative
        return None

    def _is_noun_of(self, deed: Deed, group: Group) -> bool:
        """Return True if a group names an action: `your search`, `the tending`, or its whole name."""
        if set(deed.name.lower().split()) - _ARTICLES == group.all_words - _ARTICLES:
            return True
        if group.owner and group.owned_by() not in ([], [self._facts.after.you]):
            return False
        stem = deed.verb.removesuffix("e")
        is_noun = len(stem) > 2 and group.word.startswith(stem)  # noqa: PLR2004 - a verb
        is_alone = len({other.action_id for other in self.deeds if other.verb == deed.verb}) == 1
        about = group.of is not None and self._is_object(deed, group.of)
        is_listed = group.tokens[0].word in words("the your our this that it")
        return (
            is_noun and group.head.tag == "noun" and is_listed and (about or (is_alone and group.of is None))
        )

    def _is_object(self, deed: Deed, group: Group | None) -> bool:
        if group is None or not deed.thing:
            return False
        person = self._people.get(deed.thing)
        if person is not None:
            return person in group.keys("entity")
        key = f"{deed.action_id}/{deed.thing}"
        heads = [group, *group.joined, *([group.of] if group.of is not None else [])]
        return any(
            key in one.keys("object") or any(("object", key) in token.refs for token in one.tokens[-2:])
            for one in heads
        )

    def _has_object(self, deed: Deed, clause: ProseClause) -> bool:
        if not deed.thing:
            return True
        if any(self._is_object(deed, one) for one in clause.objects):
            return True
        return any(
            self._is_object(deed, one)
            for word, one in clause.phrases
            if word in words("at on up through into to down over out from after with of around across")
            or word == deed.verb
        )

    def _has_part(self, deed: Deed, clause: ProseClause) -> bool:
        """Return True if a clause names only a part of an object, such as `half a metre of the x`."""
        groups = [*clause.objects, *(one for _, one in clause.phrases)]
        found = [one for one in groups if self._is_object(deed, one)]
        parts = [one for one in found if one.of is not None and self._is_object(deed, one.of)]
        behind = any(word == "behind" for word, _ in clause.phrases)
        whole = words("all whole rest last") | (frozenset() if behind else words("door doors gate gates lid"))
        is_measure = any(one.word not in whole for one in parts)
        return (
            bool(found)
            and len(parts) == len(found)
            and is_measure
            and (
                clause.base != deed.verb or any(words("half part some few") & one.all_words for one in parts)
            )
        )

    @staticmethod
    def _names_thing(deed: Deed, sentence: Sentence) -> bool:
        """Return True if a sentence names the object of a deed, and not only by a pronoun."""
        named = set(deed.thing.split()) - _NAMELESS
        return not deed.thing or bool(named & {token.word for token in sentence.tokens})

    def _is_yours(self, clause: ProseClause) -> bool:
        return self._facts.after.you in clause.subjects()

    def _does(self, deed: Deed, clause: ProseClause) -> bool:
        verbs = self._kinds[deed].verbs
        return clause.verb in verbs or clause.base in verbs

    def _claims_success(self, deed: Deed, clause: ProseClause, sentence: Sentence, result: str) -> bool:
        if not clause.is_asserted or clause.is_negative:
            return False
        told_words = {token.word for token in sentence.tokens}
        if "than" in told_words or any(one.word == "nothing" for one in clause.objects):
            # `opened tougher locks than that`, `send it nothing`
            return False
        if result == "untried" and clause.is_past and told_words & words("once ago before earlier when last"):
            # It may be an action of an earlier turn.
            return False
        if result == "failed" and _MISSES & {token.word for token in sentence.tokens}:
            return False
        if result == "failed" and clause.is_past and "once" in told_words:
            return False
        later = {token.word for token in sentence.tokens if token.start > clause.verb_start}
        if clause.base in words("catch start run hum burn glow work roar rumble purr") and later & _STALLS:
            # `coughs, catches and stops`
            return False
        kind = self._kinds[deed]
        if self._is_yours(clause):
            if (
                self._does(deed, clause)
                and not clause.is_passive
                and self._has_object(deed, clause)
                and not self._has_part(deed, clause)
                and self._is_told_done(deed, clause, result)
                and (result != "untried" or self._names_thing(deed, sentence))
            ):
                return True
            states = kind.results & set(clause.rest_words) | (
                {verb_forms(deed.verb)[3]} & set(clause.rest_words)
            )
            later = {
                one.base for one in sentence.clauses if one.governor is clause and one.form == PARTICIPLE
            }
            states |= later & {verb.partition("-")[0] for verb in kind.verbs}
            if (
                clause.base in words_of("sets", "causes")
                and states
                and deed.thing
                and any(self._is_object(deed, one) for one in clause.objects)
            ):
                return True
        if clause.subject is not None and any(one.number is not None for one in clause.subject.tokens):
            # `Four x are working` is an amount.
            return False
        if deed.thing and self._is_object(deed, clause.subject):
            told_words = set(clause.rest_words[:4])
            participles = {verb_forms(deed.verb)[3]}
            if clause.is_passive and clause.base in {verb.partition("-")[0] for verb in kind.verbs}:
                return True
            if (clause.base in kind.results or clause.verb in kind.results) and (
                result != "untried"
                or clause.base == deed.verb
                or clause.base not in words("work run hum hold burn glow fall die strike")
            ):
                return not clause.objects or bool({one.word for one in clause.objects} & kind.results)
            strong = told_words & (kind.results | participles)
            if strong and clause.base in words(
                "be stand lie get swing come fly go look hang grind creak slide burst spring pop drop"
            ):
                return (
                    result != "untried"
                    or clause.base in words("swing come fly get grind creak slide burst spring pop")
                    or bool(told_words & participles)
                )
        return False

    def _is_told_done(self, deed: Deed, clause: ProseClause, result: str) -> bool:
        if clause.is_infinitive and clause.governor is not None:
            return clause.governor.base in words("manage get succeed dare finish take help")
        if clause.form == GERUND:
            return clause.governor is None or clause.copied_subject
        if clause.form == PARTICIPLE and not clause.is_perfect:
            return False
        if not deed.thing and clause.base != deed.verb:
            return False
        return not (result == "failed" and clause.base in words_of("sets", "attempts"))

    def _claims_failure(self, deed: Deed, clause: ProseClause, sentence: Sentence) -> bool:
        if clause.modal in words("would might may should must shall 'd 'll"):
            return False
        kind = self._kinds[deed]
        if (
            self._is_yours(clause)
            and clause.is_asserted
            and deed.thing
            and any(self._is_object(deed, one) for one in clause.objects)
        ):
            # `You never touch the x`, `you leave the x alone`, `you keep the x shut`.
            told = clause.rest_words
            is_untouched = "never" in clause.adverbs and clause.base in words("touch try approach attempt")
            untried = {"alone", f"un{verb_forms(deed.verb)[3]}"} | kind.states
            is_left = clause.base == "leave" and bool(untried & set(told[-1:]))
            is_kept = clause.base == "keep" and bool(kind.states & set(told[-2:]))
            if is_untouched or (not clause.is_negative and (is_left or is_kept)):
                return True
        if (
            clause.subject is not None
            and clause.subject.word == "nothing"
            and clause.is_passive
            and clause.base == deed.verb
        ):
            return True
        spoken = {token.word for token in sentence.tokens}
        nothing = self._is_yours(clause) and any(one.word == "nothing" for one in clause.objects[:1])
        if nothing and clause.base == deed.verb and clause.is_asserted and not clause.is_negative:
            # `You bake nothing all morning.`
            return not spoken & words("but else more except until yet before save")
        if self._is_yours(clause) and self._does(deed, clause) and self._has_object(deed, clause):
            governor = clause.governor
            if clause.is_negative and clause.subordinator == "" and not clause.is_infinitive:
                told_words = words("again yet alone further any completely all quickly quietly until without")
                return not told_words & set(clause.rest_words)
            if (
                clause.is_infinitive
                and governor is not None
                and governor.base == "give"
                and "up" in governor.rest_words
                and not governor.is_negative
            ):
                return not governor.modal
            if (
                clause.is_infinitive
                and governor is not None
                and governor.subordinator == ""
                and not governor.modal
            ):
                fails = governor.base == "fail" and not governor.is_negative
                not_managed = (
                    governor.is_negative
                    and governor.base in words("manage get bring be")
                    and ("able" in governor.rest_words or governor.base != "be")
                )
                unable = governor.base == "be" and "unable" in governor.rest_words
                tries = governor.base in {"try", "attempt"} and self._is_vain(sentence)
                return fails or not_managed or unable or tries
            if clause.base == "give" and clause.verb.endswith("up"):
                return True
        if (
            deed.thing
            and self._is_object(deed, clause.subject)
            and clause.is_asserted | (clause.modal in {"will", "'ll"} and clause.is_negative)
        ):
            if "never" in clause.adverbs and words("better so more as") & set(clause.rest_words):
                # `has never been fed better`
                return False
            if clause.is_negative and (
                clause.modal in {"will", "'ll"}
                or clause.base in kind.results | kind.verbs
                or clause.base in words("budge move give open work")
            ):
                return True
            if clause.base == "refuse":
                return True
            if (
                clause.base in words_of("sets", "stays")
                and kind.states & set(clause.rest_words[:3])
                and not clause.is_negative
            ):
                return clause.base in words_of("sets", "stays_2") or "still" in clause.adverbs
            is_record = "never" in clause.adverbs and bool(
                words("better so more as") & set(clause.rest_words)
            )
            if clause.is_negative and clause.is_passive and clause.base in kind.verbs and not is_record:
                return True
        return False

    def _is_vain(self, sentence: Sentence) -> bool:
        text = sentence.text.lower()
        return any(
            one in text
            for one in (
                "but fail",
                "without success",
                "in vain",
                "to no avail",
                "no luck",
                "but it does not",
                "nothing gives",
            )
        )


_WRONG_ENDINGS = {
    "ongoing": {"won", "lost", "over"},
    "won": {"lost", "on", "not_won"},
    "lost": {"won", "on", "not_lost"},
    "survived": {"on"},
}
_GUESSES = {"on", "not_won", "not_lost"}
_MIN_MESSAGE_CHARACTERS = 12
_ANY_TURN = words_of("verbs", "any_turn")
_HAD = re.compile(r"\bhad\b(?! to\b)|(?<=\w)['\u2019]d\b(?= \w+(?:ed|en|ne|n|t)\b)", re.IGNORECASE)
_NOT_WORDS = re.compile(r"[^\w]+")
# `a version of this where you win` is not an ending.
_RELATIVE = re.compile(
    r"\b(?:where|when|whenever|which|until|till|before|after|once|whether|than|in case|as long as)\s+$",
    re.IGNORECASE,
)


class EndingClaims:
    """Checker of claims about the end of the run, and about dice.

    Args:
        facts: the turn.
        is_past: True if the past is the tense of the story.
    """

    def __init__(self, facts: TurnFacts, *, is_past: bool = False) -> None:
        self._facts = facts
        self._is_past = is_past
        self._endings: list[tuple[str, ProseClause | str]] = []
        self._titles: set[str] = set()
        self._messages = _unreached_messages(facts)
        you = alternatives(facts.after.names.get(facts.after.you, ()))
        self._player = re.compile(rf"\b(?:{you})\b(?!['\u2019])", re.IGNORECASE)
        kinds = alternatives(word for roll in facts.rolls for word in _related_words(roll.kind))
        self._phrases = Phrases("deeds", {"you": rf"\b(?:you|I|we|{you})\b", "kinds": kinds})
        messages = (text.partition(" ")[0] for text in self._messages)
        self.words = frozenset({*self._phrases.words("signals"), *messages})
        """The words with which a claim may begin."""

    def read_endings(self, names: NameTable) -> None:
        """Read the descriptions and messages of the endings, with names."""
        ends = [*self._facts.spec.get("loss_conditions", ()), *(self._facts.spec.get("win_conditions") or ())]
        for end in ends:
            title = str(end.get("name") or end["id"])
            name = to_words(title).split()
            if len(name) > 1 and end["id"] != self._facts.status.condition:
                self._titles.add(_normalize(title))
            verbs = (
                [one.lemma for one in verb_table().get(name[0], ()) if one.form == PARTICIPLE]
                if name and len(name) < 3  # noqa: PLR2004 - `thrown out`
                else []
            )
            self._endings += [(end["id"], verb) for verb in verbs[:1]]
            for text in (
                *_as_sentences(title),
                str(end.get("description") or ""),
                str(end.get("message") or ""),
            ):
                for sentence in split_sentences(text):
                    told = remove_speech(sentence)
                    parsed = read_sentence(told, names, self._facts.after.you, is_third=True)
                    plain = (
                        one
                        for one in parsed.clauses
                        if not one.subordinator and not one.is_negative and _is_distinct(one)
                    )
                    self._endings += [(end["id"], clause) for clause in plain]

    def check(self, sentence: Sentence, text: str) -> Iterator[WrongClaim]:
        """Yield the claims of a sentence that contradict the record.

        Args:
            sentence: the sentence without speech.
            text: the sentence.
        """
        yield from self._check_described_ending(sentence, text)
        told = drop_reported(sentence.text[sentence.attributed :])
        if not is_unreal(told):
            yield from self._check_ending(text, told)
            yield from self._check_rolls(text, told)

    def _check_ending(self, sentence: str, told: str) -> Iterator[WrongClaim]:
        text = _normalize(sentence)
        told = self._player.sub("you", told)
        if self._is_past:
            # In a story in the past, `had been done` is a state of now.
            told = _HAD.sub("have", told)
        clauses = dict.fromkeys([told.strip(" .!\n"), *split_clauses(told)])
        claimed = {claim for clause in clauses for claim in self._claimed_endings(clause)}
        claimed |= {"won"} if self._phrases.search("won_at_last", told.strip()) else set()
        wrong = _WRONG_ENDINGS[self._facts.status.kind]
        # A narrator that does not know the end of the turn may guess that the run continues.
        wrong = wrong if self._facts.knows_status else wrong - _GUESSES
        if claimed & wrong or any(message in text for message in self._messages) or text in self._titles:
            yield WrongClaim("ending", sentence.strip(), self._expected())

    def _claimed_endings(self, clause: str) -> Iterator[str]:
        if not is_unsure(clause) and self._phrases.search("nothing_left", clause):
            yield "over"
        for claim in ("on", "not_won", "not_lost"):
            if self._phrases.search(claim, clause):
                yield claim
                return
        if not is_negative(clause) and not is_unsure(clause):
            for claim in ("won", "lost", "over"):
                found = self._phrases.search(claim, clause)
                before = clause[: found.start()] if found is not None else ""
                if found is not None and (claim == "over" or _RELATIVE.search(before) is None):
                    yield claim

    def _check_described_ending(self, sentence: Sentence, text: str) -> Iterator[WrongClaim]:
        """Check clauses that repeat the description of an ending: `the guests leave`."""
        lone = _normalize(sentence.text)
        reached = self._facts.status.condition
        own = [one for ending, one in self._endings if ending == reached and isinstance(one, ProseClause)]
        for ending, wanted in self._endings:
            if ending == reached:
                continue
            if isinstance(wanted, str) and lone == verb_forms(wanted)[3]:
                yield WrongClaim("ending", text.strip(), self._expected())
                return
            for clause in sentence.clauses:
                is_now = (
                    clause.is_asserted and not clause.is_negative and (self._is_past or not clause.is_past)
                )
                if any(_says(clause, one) for one in own):
                    # Endings may have words in common.
                    continue
                is_told = (
                    _says(clause, wanted)
                    if isinstance(wanted, ProseClause)
                    else self._befalls(clause, wanted) and not _has_content(sentence, clause)
                )
                if is_now and is_told:
                    yield WrongClaim("ending", text.strip(), self._expected())
                    return

    def _expected(self) -> str:
        kind = self._facts.status.kind
        return "the run has not ended" if kind == "ongoing" else f"the run has ended: {kind}"

    def _befalls(self, clause: ProseClause, verb: str) -> bool:
        """Return True if the player does, or suffers, the verb that names an ending: `escaped`."""
        if clause.base != verb or not (
            clause.is_perfect or clause.is_passive or clause.is_past is self._is_past
        ):
            return False
        you = self._facts.after.you
        if clause.is_progressive or (clause.subordinator and clause.subordinator != "that"):
            # `stops finding it`, `after you had lost it`
            return False
        is_own = you in clause.subjects()
        suffers = not is_own and any(
            you in one.keys("entity") and one.word not in _REFLEXIVES for one in clause.objects
        )
        objects = [one for one in clause.objects if one.word not in words("it case mystery crime riddle all")]
        return suffers or (
            you in clause.subjects() and not objects and (clause.is_passive or not clause.phrases)
        )

    def _check_rolls(self, sentence: str, told: str) -> Iterator[WrongClaim]:
        results = {roll.success for roll in self._facts.rolls}
        if len(results) != 1:
            return
        has_success = results == {True}
        for clause in split_clauses(told):
            claimed = None if is_unsure(clause) else self._claimed_result(clause)
            if claimed is not None and claimed is not has_success:
                expected = "the roll succeeded" if has_success else "the roll failed"
                yield WrongClaim("action", sentence.strip(), expected)
                return

    def _claimed_result(self, clause: str) -> bool | None:
        """Return True if a clause states that a test succeeded, False if that it failed, else None."""
        if self._phrases.search("no_failure", clause):
            return True
        if self._phrases.search("failure", clause):
            return False
        return True if self._phrases.search("success", clause) and not is_negative(clause) else None


def _as_sentences(title: str) -> list[str]:
    """Return the sentences of a title: `The x comes`, and `The x is taken` for `The x taken`."""
    found = re.fullmatch(
        r"(?:The |the )?(?P<noun>[\w'\u2019-]+(?: [\w'\u2019-]+)?) (?P<last>\w+)", title.strip()
    )
    if found is None or not title[:4].lower().startswith("the "):
        return []
    readings = verb_table().get(found["last"].lower(), ())
    if any(one.form == PARTICIPLE for one in readings):
        return [f"The {found['noun']} is {found['last']}."]
    return [f"{title}."] if any(one.form == "third" for one in readings) else []


def _has_content(sentence: Sentence, clause: ProseClause) -> bool:
    """Return True for `you find that …`, which is about something else than the player."""
    return any(one.governor is clause and one.subordinator for one in sentence.clauses)


def _is_distinct(clause: ProseClause) -> bool:
    """Return True if a clause of a message describes an ending; `she says` occurs in any turn."""
    subject = clause.subject
    if subject is None or (subject.head.tag == "pron" and subject.word != "you"):
        return False
    if clause.base not in _ANY_TURN:
        return True
    groups = [*clause.objects[:1], *(group for _, group in clause.phrases[:1])]
    return any(one.head.tag in {"noun", "name"} for one in groups)


def _says(clause: ProseClause, wanted: ProseClause) -> bool:
    """Return True if a clause has the verb, the subject and the object of another one."""
    is_same_verb = clause.base == wanted.base or clause.base in _kind_of(wanted.base).verbs
    if not is_same_verb or clause.subject is None or wanted.subject is None:
        return False
    if wanted.is_passive and not clause.is_passive:
        # `They throw you out` is `you are thrown out`.
        return any(_is_same_group(one, wanted.subject) for one in clause.objects)
    if clause.is_passive and wanted.objects and not wanted.is_passive:
        # `The x is closed` is `They close the x`.
        return _is_same_group(clause.subject, wanted.objects[0])
    if clause.is_passive is not wanted.is_passive:
        return False
    if not _is_same_group(clause.subject, wanted.subject):
        return False
    if wanted.base in {"be", "have", "get"}:
        told = set(wanted.rest_words) - _ARTICLES
        return bool(told) and told <= set(clause.rest_words)
    goals = [
        *wanted.objects[:1],
        *(group for word, group in wanted.phrases[:1] if word in words("with to on into")),
    ]
    known = [*clause.objects, *(group for _, group in clause.phrases)]
    particles = (
        {token.word for token in wanted.rest[:1] if token.tag in {"prep", "adv"}}
        if not wanted.objects
        else set()
    )
    return all(any(_is_same_group(one, goal) for one in known) for goal in goals) and (
        not particles or bool(particles & set(clause.rest_words[:2]))
    )


def _is_same_group(first: Group, second: Group) -> bool:
    same = set(first.head.refs) & set(second.head.refs)
    return bool(same) or (first.word == second.word and not first.head.refs)


def _unreached_messages(facts: TurnFacts) -> list[str]:
    """Return the normalized messages of the endings that were not reached."""
    spec, reached = facts.spec, facts.status.condition
    names = {
        _normalize(str(rule.get(key) or ""))
        for group in ("actions", "random_events")
        for rule in spec.get(group, ())
        for key in ("name", "description")
    }
    ends = [*spec.get("loss_conditions", ()), *(spec.get("win_conditions") or ())]
    texts = [(end["id"] == reached, _normalize(str(end.get("message") or ""))) for end in ends]
    said = names | {text for is_reached, text in texts if is_reached}
    return [text for _, text in texts if text not in said and len(text) >= _MIN_MESSAGE_CHARACTERS]


def _normalize(text: str) -> str:
    return _NOT_WORDS.sub(" ", text.lower()).strip()


def _related_words(kind: str) -> tuple[str, ...]:
    """Return the forms of the word for the purpose of a roll, such as climb, climbs and climbing."""
    word = to_words(kind)
    return (word,) if " " in word else verb_forms(word)
