"""Likely claims of prose, which the record contradicts but a true sentence may look like.

Most cost no turn: the narrator reads the sentence and the fact in its next prompt. So these readings are
wide: any number beside an amount, any place beside a person, anything done to a thing or a person that the
record does not show.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from peripety.session.narration.claims.english import (
    GERUND,
    PARTICIPLE,
    is_function_word,
    number_forms,
    verb_table,
    words,
    words_of,
)
from peripety.session.narration.claims.record import WrongClaim
from peripety.session.narration.claims.totals import AmountReader, is_rounded, paths_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from peripety.session.narration.claims.clauses import Group, ProseClause, Sentence
    from peripety.session.narration.claims.deeds import DeedClaims
    from peripety.session.narration.claims.english import ProseWord
    from peripety.session.narration.claims.record import TurnFacts


_PART = words("more another further extra other others first second each apiece per ago later earlier")
_BEFORE = words(
    "before earlier morning noon yesterday once began started ago until from was were had been used "
    "instead of would could might if maybe perhaps until till short than out for by"
)
_ORDINAL_WORDS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
    *("eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth"),
    *("eighteenth", "nineteenth", "twentieth"),
)
_ORDINALS = {word: number for number, word in enumerate(_ORDINAL_WORDS, start=1)} | {
    "thirtieth": 30,
    "fortieth": 40,
    "fiftieth": 50,
    "sixtieth": 60,
    "hundredth": 100,
}
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80}
_SAID = words_of("likely", "said")
_INSIDE = words("in inside within aboard at on into onto behind beside under among near through across from")
_HOLDS = words("in on at under round around from with inside beside into by about against between")
_LOST = words("burn steal smash sell vanish melt destroy shatter trade swap confiscate snatch pawn surrender")
_MAY_BE_LOST = _LOST | words("lose break throw drop disappear go snap sink bury hand give fling toss forget")
_REMOVES = words(
    "take drag carry lead haul march bundle sweep whisk snatch escort arrest seize evacuate bring fetch"
)
_AWAY = words("off away out gone elsewhere aft abroad home")
_KILLS = words("hang kill murder drown behead execute strangle slay bury")
_MAY_KILL = _KILLS | words("shoot stab poison crush knife burn")
_GRAVE = words("grave coffin funeral wreath corpse body shroud widow burial tomb headstone remains")
_NONE = words_of("likely", "none")
_REFUSES = words_of("likely", "refuses")
_GOOD = re.compile(
    r"\b(?:work(?:s|ed) (?:like|at last|beautifully|perfectly)|better than|success\w*|succeed\w*|done it"
    r"|did it|goes? well|went well|at last|perfect\w*|clean|hold(?:s|ing) (?:fast|firm)|go(?:es)? through"
    r"|triumph\w*)\b",
    re.IGNORECASE,
)
_BAD = re.compile(
    r"\b(?:hopeless|in vain|fail\w*|nowhere|no use|no good|useless|too hard|won['\u2019]t|wouldn['\u2019]t"
    r"|more than (?:you|they|he|she|we) (?:can|could)|ruin\w*|botch\w*|spoil\w*|(?:comes?|came) to nothing"
    r"|not (?:at all|once)|cannot|can['\u2019]t|couldn['\u2019]t|could not|turned down"
    r"|(?:gives?|gave|given) up)\b",
    re.IGNORECASE,
)
_TRIED = words("than try tries tried trying attempt attempts if would could might almost nearly")
_LEAST_LENGTH = 3
_Claim = tuple[str, str, bool]
"""Kind, fact of the record, and True if the claim is certain."""
_NOT_NONE = words("more enough much many than yet another but other too most each less fewer further")
_NOT_COMPARED = words("never ever over after under other another together water paper number matter her")
_OFTEN = words("any ever always often never whenever every most usually")
_EARLIER = words("once ago before earlier last yesterday already again")
_TIME_NOUNS = words("hour hours day days minute minutes week weeks night nights month months year years")
_TIME_LEFT = words("left until till remain remains remained remaining before away")


class LikelyClaims:
    """Checker of likely claims.

    Args:
        facts: the turn.
        deeds: the actions of the scenario.
        is_past: True if the past is the tense of the story.
    """

    def __init__(self, facts: TurnFacts, deeds: DeedClaims, *, is_past: bool = False) -> None:
        self._facts = facts
        self._you = facts.after.you
        self._is_past = is_past
        self._amounts = AmountReader(facts, is_past=is_past)
        self._deeds = deeds
        self._rules = [_ActionWords(action) for action in facts.spec.get("actions", ())]
        named = {
            word
            for names in (*facts.after.names.values(), *facts.after.place_names.values())
            for name in names
            for word in name.lower().split()
        } | {word for thing in facts.after.holders for word in thing.split()}
        for rule in self._rules:
            others = {noun for one in self._rules if one is not rule for noun in one.nouns}
            rule.own_nouns = _nouns_of(rule.name_nouns) - others - named
        quantities = self._amounts.quantities
        self._levels = {
            path: [str(band.get("word") or "").lower() for band in label.get("bands") or ()]
            for path, label in (facts.spec.get("labels") or {}).items()
            if path in quantities and len(label.get("bands") or ()) > 1
        }

    def check(self, sentence: Sentence, text: str, context: Sequence[ProseWord] = ()) -> Iterator[WrongClaim]:
        """Yield the likely claims of a sentence that contradict the record.

        Args:
            sentence: the sentence without speech.
            text: the sentence.
            context: the tokens of the sentence before.
        """
        if sentence.is_unreal or sentence.attributed:
            return
        for read in (
            self._check_numbers,
            self._check_levels,
            self._check_places,
            self._check_holders,
            self._check_lives,
            self._check_actions,
        ):
            found = [*read(sentence, context)]
            for kind, expected, is_certain in sorted(found, key=lambda one: not one[2])[:1]:
                yield WrongClaim(kind, text.strip(), expected, is_certain=is_certain)

    # --- amounts ---

    def _check_numbers(self, sentence: Sentence, context: Sequence[ProseWord]) -> Iterator[_Claim]:
        """Check any number beside an amount: it is a value or a difference of the turn."""
        for clause in sentence.clauses:
            if _is_plain(clause) and not (clause.is_perfect and clause.is_past):
                paths = self._wrong_without_number(clause, sentence)
                if paths:
                    yield "amount", self._value_of(paths), False
        listed = False
        for preposition, group in sentence.groups:
            is_all = listed and preposition == "of"
            listed = group.word in words("one all each every any none")
            number = next((one.number for one in group.tokens if one.number is not None), None)
            if number is None:
                number = _ordinal(group)
                if number is None:
                    continue
                paths = [path for one in group.tokens for path in paths_of(one)]
                if paths and not any(self._amounts.has_value([path], number) for path in paths):
                    yield "amount", self._value_of(paths), False
                continue
            paths = self._paths_of(group)
            around = _clause_of(sentence, group)
            is_other = preposition in words("than for per by of") and not is_all
            moves = around is not None and around.is_a("read", "rise", "fall", "lower", "raise")
            if not paths or is_other or not _is_plain(around) or (preposition == "to" and not moves):
                continue
            is_loose = self._amounts.is_loose(sentence, group) or self._amounts.bound(sentence, group)
            if is_loose or _near(sentence, group) & (_PART | _NONE) or not _is_time_left(group, sentence):
                continue
            if self._number_is_wrong(sentence, around, group, paths, number, context):
                # `The x had fallen to four`: the amount is the subject.
                about = self._amounts.quantity_of(around.subject) if around is not None else []
                yield "amount", self._value_of(paths), preposition == "to" and bool({*about} & {*paths})

    def _wrong_without_number(self, clause: ProseClause, sentence: Sentence) -> list[str]:
        """Return the amount of `there is no x`, `still an x` or `cuts x to four`, if the clause is wrong."""
        told = {token.word for token in sentence.tokens}
        heads = [*clause.objects[:2], *([clause.subject] if clause.subject is not None else [])]
        for group in heads:
            paths = self._amounts.quantity_of(group)
            if not paths:
                continue
            values = self._amounts.values(paths)
            exists = clause.base in words("be have get remain leave find hold own") and not clause.modal
            first = group.tokens[0].word
            if clause.is_negative and exists and not told & _NOT_NONE and group is not clause.subject:
                is_none = first in words("a an one any single no") or group.is_negated
                is_none &= not any(token.number not in {None, 1.0} for token in group.tokens)
                if is_none and self._amounts.is_not_empty(paths) and not self._amounts.is_of_others(clause):
                    return paths
            is_some = exists and not (clause.is_negative or group.is_negated or any(values))
            is_some &= clause.subject is not None and clause.subject.word in words("there you we")
            if is_some and first in words("a an some enough plenty still"):
                return paths
            moves = clause.is_a("rise", "fall", "lower", "raise") or clause.base in words("cut go bring take")
            for word, one in clause.phrases if moves and not clause.is_negative else ():
                number = 0.0 if one.word in {"nothing", "zero"} else one.head.number
                if word == "to" and number is not None and not self._amounts.has_value(paths, number):
                    return paths
        return []

    def _number_is_wrong(
        self,
        sentence: Sentence,
        clause: ProseClause | None,
        group: Group,
        paths: list[str],
        number: float,
        context: Sequence[ProseWord],
    ) -> bool:
        values = self._amounts.values(paths)
        if not values or (clause is not None and clause.base in words_of("sets", "needs")):
            return False
        if clause is not None and (clause.is_negative or (clause.is_perfect and clause.is_past)):
            return False
        if self._amounts.has_value(paths, number):
            is_current = any(
                is_rounded(number, value) for path in paths for value in self._amounts.values_of(path)[1:]
            )
            is_now = clause is not None and clause.is_past is self._is_past
            return (
                not is_current
                and is_now
                and not {token.word for token in sentence.tokens}
                & (_BEFORE - {"was", "were", "had", "of", "for", "by"})
                and self._amounts.is_outdated(sentence, paths, number, context)
            )
        changes = {abs(step) for step in self._amounts.steps(paths)}
        units = {self._amounts.quantities[path].unit for path in paths}
        known = self._facts.after.quantities.values()
        others = [one.value for one in known if one.unit and one.unit in units]
        gaps = {abs(first - second) for first in others for second in others}
        if any(is_rounded(number, step) for step in changes | gaps):
            return False
        if number > max(values):
            return True
        is_loss = clause is not None and (
            clause.is_a("spend", "destroy", "kill")
            or clause.base in words("flee desert die drown perish flood")
        )
        if is_loss and number > 1 and not (clause is not None and self._amounts.is_of_others(clause)):
            return True
        is_part = group.of is not None and group.of.tokens[0].tag in {"det", "poss", "pron"}
        is_only = bool(words("just only single") & {token.word for token in sentence.tokens})
        is_state = clause is not None and clause.is_a("contain", "remain", "read")
        return not is_part and (number > 1 or is_only) and is_state

    def _paths_of(self, group: Group) -> list[str]:
        """Return the amounts that a group names, by their names or units."""
        chain: list[Group] = [group]
        while chain[-1].of is not None:
            chain.append(chain[-1].of)
        tokens = [token for one in chain for token in one.tokens]
        named = [path for token in tokens for path in paths_of(token)]
        units = [path for kind, path in group.head.refs if kind == "unit"]
        return [path for path in named or units if path in self._amounts.quantities]

    def _value_of(self, paths: Iterable[str]) -> str:
        return self._amounts.contradiction("", list(paths)).expected

    def _check_levels(self, sentence: Sentence, _context: Sequence[ProseWord]) -> Iterator[_Claim]:
        """Check the direction in which an amount changes, and the words for its level."""
        for clause in sentence.clauses:
            if not _is_plain(clause) or clause.is_negative or clause.subject is None:
                continue
            paths = self._amounts.quantity_of(clause.subject)
            for path, levels in self._levels.items():
                is_about = path in paths or ("bearer", path) in clause.subject.head.refs
                sign = self._moves(clause, levels, is_about=is_about, is_own=path in paths)
                step = self._amounts.end_step(path)
                if sign and step * sign <= 0:
                    yield "amount", self._value_of([path]), step * sign < 0 and _is_then(clause)
            sign = _direction(clause) if paths else 0
            if sign and all(self._amounts.end_step(path) * sign <= 0 for path in paths):
                yield "amount", self._value_of(paths), False

    @staticmethod
    def _moves(clause: ProseClause, levels: Sequence[str], *, is_about: bool, is_own: bool) -> int:
        """Return 1 if a clause compares its subject with more of a level, -1 with less, else 0."""
        told = clause.rest_words
        is_about |= clause.subject is not None and clause.subject.word in {"she", "he", "it"}
        compares = "than" in told or clause.base in words("grow get become turn")
        if is_own and clause.base in words("be grow get become run feel burn seem turn") and compares:
            more = any(word.endswith("er") and word not in _NOT_COMPARED for word in told[:4])
            if {"less", "lower", "fewer", "weaker", "smaller"} & set(told[:4]):
                return -1
            return 1 if more else 0
        for place, level in enumerate(levels):
            if f"{level}er" in told or f"{level}r" in told:
                half = place * 2 - (len(levels) - 1)
                return (half > 0) - (half < 0) if is_about else 0
        return 0

    # --- people and things ---

    def _check_places(self, sentence: Sentence, _context: Sequence[ProseWord]) -> Iterator[_Claim]:
        """Check any place beside a person, and a person who goes or is brought away."""
        for clause in sentence.clauses:
            gone = self._goes_away(clause)
            if gone is not None:
                yield "presence", self._place_of(gone), False
            if not _is_plain(clause) or clause.is_negative or clause.base in _SAID:
                continue
            if (clause.is_past and not self._is_past) or (
                clause.is_perfect and (clause.is_past or self._is_past)
            ):
                continue
            if clause.base == "be" and any(one.is_negated for one in clause.objects):
                continue
            named = [
                key
                for word, group in clause.where
                if word in _INSIDE and not (word == "from" and clause.is_a("move", "arrive", "leave"))
                for key in (*group.keys("place"), *group.places)
            ]
            for entity in clause.subjects():
                places = self._facts.places_of(entity)
                is_seen = clause.is_a("perceive") and entity == self._you
                if named and places and not is_seen and not places & set(named) and self._lives(entity):
                    yield "presence", self._place_of(entity), False
            taken = [key for one in clause.objects[:1] for key in one.keys("entity")]
            taken = clause.subjects() if clause.is_passive else taken
            for entity in taken if clause.base in _REMOVES and _AWAY & set(clause.rest_words) else ():
                places = self._facts.places_of(entity)
                if entity != self._you and len(places) == 1 and self._lives(entity):
                    yield "presence", self._place_of(entity), False

    def _goes_away(self, clause: ProseClause) -> str | None:
        """Return a person who leaves in a clause, and has not moved in the record."""
        if not _is_plain(clause) or clause.is_negative or (clause.is_past and not self._is_past):
            return None
        told = clause.rest_words
        away = _AWAY & set(told[:3])
        leaves = clause.is_a("leave") and not clause.objects and not clause.copied_subject
        leaves |= clause.base in words("go run walk ride slip sweep drift") and bool(away)
        leaves |= clause.base in {"be", "get"} and "gone" in told[:2]
        if not leaves or words("thought thoughts silence sleep fire mind") & set(told):
            return None
        unmoved = (one for one in clause.subjects() if len(self._facts.places_of(one)) == 1)
        return next((one for one in unmoved if one != self._you and self._lives(one)), None)

    def _lives(self, entity: str) -> bool:
        return self._facts.is_alive(entity) is not False and self._facts.after.alive.get(entity) is not False

    def _place_of(self, entity: str) -> str:
        after = self._facts.after
        verb = "are" if entity == self._you else "is"
        place = after.place_names[after.places[entity]][0].removeprefix("the ")
        return f"{after.name_of(entity)} {verb} in the {place}"

    def _check_holders(self, sentence: Sentence, _context: Sequence[ProseWord]) -> Iterator[_Claim]:
        """Check any person beside a thing, and a thing that is lost."""
        for clause in sentence.clauses:
            if not _is_plain(clause) or (clause.is_perfect and clause.is_past and not self._is_past):
                continue
            groups = [*clause.objects, *([clause.subject] if clause.subject is not None else [])]
            for thing in {key for one in groups for key in one.keys("thing")}:
                holders = self._facts.holders_of(thing)
                if len(holders) != 1:
                    continue
                beside = [one for word, one in clause.where if word in _HOLDS and one.owned_by()]
                owners = {key for one in beside for key in one.owned_by()}
                is_on = any(one.word in words_of("words", "holder") for one in beside)
                is_seen = clause.is_a("perceive") or clause.is_negative
                if owners and not is_seen and not holders & owners:
                    yield "possession", self._holder_of(thing), is_on
                is_lost = clause.base in _MAY_BE_LOST and (clause.base != "go" or "gone" in clause.rest_words)
                own = clause.subject is not None and thing in clause.subject.keys("thing")
                if is_lost and not clause.is_negative and (clause.is_passive or not own):
                    yield "possession", self._holder_of(thing), clause.base in _LOST
            for word, group in clause.where:
                for thing in group.keys("thing") if word == "without" else ():
                    if self._facts.holders_of(thing) & set(clause.subjects()):
                        yield "possession", self._holder_of(thing), False

    def _holder_of(self, thing: str) -> str:
        after = self._facts.after
        holder = after.holders.get(thing, "")
        verb = "have" if holder == self._you else "has"
        if holder not in after.names and holder != self._you:
            return f"the {thing} is in the {after.name_of(holder)}"
        return f"{after.name_of(holder)} {verb} the {thing}"

    def _check_lives(self, sentence: Sentence, _context: Sequence[ProseWord]) -> Iterator[_Claim]:
        """Check a living person who is killed or mourned, and a dead one who acts."""
        for clause in sentence.clauses:
            if not _is_plain(clause) or clause.is_negative:
                continue
            if clause.subject is not None and clause.subject.word in {"nobody", "none"}:
                continue
            victims = (
                clause.subjects()
                if clause.is_passive
                else [key for one in clause.objects[:1] for key in one.keys("entity")]
            )
            if clause.base in _MAY_KILL and not (clause.base == "hang" and not clause.is_passive):
                yield from self._alive(victims, is_certain=clause.base in _KILLS)
            if clause.is_past and not self._is_past:
                continue
            for word, group in clause.phrases:
                if word in {"with", "beside"} and self._you in clause.subjects():
                    yield from self._dead(group.keys("entity"), clause)
        for clause in sentence.clauses:
            is_now = _is_plain(clause) and clause.is_now(is_past=self._is_past) and not clause.is_negative
            for group in clause.groups() if is_now else ():
                if group.word in words("pulse breath breathing smile laugh laughter gaze"):
                    yield from self._dead(group.owned_by(), clause)
        for _, group in sentence.groups:
            if group.word in _GRAVE and any(_is_plain(clause) for clause in sentence.clauses):
                owners = [*group.owned_by(), *(group.of.keys("entity") if group.of is not None else ())]
                yield from self._alive(owners)
            if group.word == "last" and group.of is not None and group.tokens[0].word == "the":
                yield from self._alive(group.of.keys("entity"), is_certain=False)

    def _alive(self, people: Iterable[str], *, is_certain: bool = True) -> Iterator[_Claim]:
        for one in people:
            if one != self._you and self._facts.is_alive(one) is True:
                yield "life", f"{self._facts.after.name_of(one)} is alive", is_certain

    def _dead(self, people: Iterable[str], clause: ProseClause) -> Iterator[_Claim]:
        for one in people:
            if self._facts.is_alive(one) is False and not clause.is_a("mental", "perceive"):
                yield "life", f"{self._facts.after.name_of(one)} is dead", False

    # --- actions ---

    def _check_actions(self, sentence: Sentence, _context: Sequence[ProseWord]) -> Iterator[_Claim]:
        """Check what is done to the objects of an action, and whether it succeeds."""
        told = {token.word for token in sentence.tokens}
        named = [rule for rule in self._rules if rule.is_named(sentence, told)]
        for rule in self._rules:
            deed = next((one for one in self._deeds.deeds if one.action_id == rule.action_id), None)
            spoken = {word for one in told for word in one.split()}
            if deed is None or not (rule.nouns | {rule.verb}) & spoken:
                continue
            result = self._deeds.result_of(deed)
            if result == "open":
                continue
            is_wrong = named == [rule] and self._outcome_is_wrong(result, sentence, told)
            if is_wrong or any(
                self._clause_is_wrong(rule, result, clause, sentence, told) for clause in sentence.clauses
            ):
                outcome = {
                    "untried": "is not an action of this turn",
                    "refused": "was refused",
                    "failed": "failed",
                    "done": "was carried out",
                }[result]
                is_certain = result in {"untried", "refused"} and any(
                    rule.is_done_by(clause, self._you) and not told & (_TRIED | _EARLIER | _OFTEN | _NONE)
                    for clause in sentence.clauses
                )
                yield "action", f"the action '{deed.name}' {outcome}", is_certain

    def _outcome_is_wrong(self, result: str, sentence: Sentence, told: set[str]) -> bool:
        if result == "failed":
            hopes = told & (_TRIED | _NONE | _EARLIER | {"but"})
            return not hopes and bool(_GOOD.search(sentence.text)) and not _BAD.search(sentence.text)
        is_bad = result == "done" and bool(_BAD.search(sentence.text))
        return is_bad and not told & (_EARLIER | {"but", "nearly"})

    def _clause_is_wrong(
        self, rule: _ActionWords, result: str, clause: ProseClause, sentence: Sentence, told: set[str]
    ) -> bool:
        governor = clause.governor
        is_ordered = (
            clause.is_infinitive
            and governor is not None
            and self._you in governor.subjects()
            and (
                governor.base in {"order", "command", "tell"} or {"word", "order"} & set(governor.rest_words)
            )
            and _is_plain(governor)
            and not governor.is_negative
        )
        if (clause.is_infinitive and not is_ordered) or (
            clause.is_perfect and clause.is_past and not self._is_past
        ):
            return False
        subject = clause.subject
        groups = [*clause.objects, *(group for _, group in clause.phrases)]
        groups += [subject] if subject is not None and (clause.is_passive or result == "done") else []
        is_about = any(
            rule.nouns & {word for token in group.tokens[-1:] for word in token.word.split()}
            for group in groups
        )
        does = clause.base in rule.verbs
        is_yours = self._you in clause.subjects() or clause.is_passive
        if result == "done":
            if told & words("again yet more anymore until once") or not is_about:
                return False
            nothing = clause.base == "do" and any(one.word == "nothing" for one in clause.objects)
            denied = clause.is_negative and (does or clause.base in words("do make have get"))
            refused = clause.base in _REFUSES and is_yours and not clause.is_negative
            refused &= clause.base != "keep" or not clause.is_passive
            refused |= clause.base == "decide" and "against" in clause.rest_words
            no_noun = subject is not None and subject.is_negated and clause.is_passive
            # In prose, `would not` and `cannot` are often facts.
            is_able = clause.is_negative and clause.modal in words("could wo would ca can")
            is_factual = not clause.modal or (is_able and not clause.is_perfect)
            return (denied or refused or no_noun or nothing) and is_factual
        if result == "failed" or told & (_TRIED | _NONE | _EARLIER | {"but"}) or _BAD.search(sentence.text):
            return False
        is_done = is_ordered or (_is_plain(clause) and not clause.is_negative)
        if not rule.name_nouns:
            return is_done and clause.base == rule.verb and (is_ordered or is_yours) and not clause.objects
        if not is_about or not is_done:
            return False
        touching = [*clause.objects, *(one for word, one in clause.phrases if word == "to")]
        touching += [subject] if subject is not None and clause.is_passive else []
        touched = {word for one in touching for word in one.word.split()} & rule.own_nouns
        changes = bool(touched) and bool(clause.senses & words("contact change creation competition"))
        changes &= clause.base not in words_of("likely", "no_change")
        return is_yours and (does or changes)


def _is_then(clause: ProseClause) -> bool:
    """Return True for `than it was`, `than before`: a comparison with an earlier time."""
    told = clause.rest_words
    if "than" not in told:
        # A clause ends before `than it was`.
        return False
    after = told[told.index("than") + 1 :][:1]
    return bool(set(after) & words("before ever yesterday at when this"))


class _ActionWords:
    """The verbs and nouns of an action's name and description.

    Args:
        action: the action.
    """

    def __init__(self, action: Any) -> None:
        self.action_id: str = action["id"]
        text = f"{action.get('name') or ''}. {action.get('description') or ''}".lower()
        tokens = re.findall(r"[^\W\d_]+", text)
        table = verb_table()
        self.verb = tokens[0] if tokens else ""
        self.nouns = _nouns_of(tokens)
        name = re.findall(r"[^\W\d_]+", str(action.get("name") or "").lower())
        self.name_nouns = frozenset(
            token for token in name[1:] if not is_function_word(token) and len(token) >= _LEAST_LENGTH
        )
        parts = [str(action.get(key) or "").lower() for key in ("name", "description")]
        ordered = [re.findall(r"[^\W\d_]+", part) for part in parts]
        common = words_of("verbs", "any_turn")
        self._orders = frozenset(one[0] for one in ordered if one and one[0] not in common)
        goals = {noun for one in ordered if one for noun in _goal_of(one[1:])}
        self._goals = goals
        self.own_nouns: frozenset[str] = frozenset()
        """The nouns that name nothing else."""
        self.verbs = frozenset(
            one.lemma
            for token in tokens
            for one in table.get(token, ())
            # `say` or `tell` in a description is what any turn has.
            if token == tokens[0] or not (one.is_rare or one.lemma in _SAID)
        )

    def is_done_by(self, clause: ProseClause, you: str) -> bool:
        """Return True if an entity does what the name or the description orders: a verb with its object."""
        is_plain = _is_plain(clause) and not (clause.is_negative or clause.is_passive or clause.is_infinitive)
        if not is_plain or you not in clause.subjects() or clause.base not in self._orders:
            return False
        return any(one.of is None and one.word in self._goals for one in clause.objects[:1])

    def is_named(self, sentence: Sentence, told: Collection[str]) -> bool:
        """Return True if a sentence has a verb and all nouns of the action."""
        verbs = {token.reading.lemma for token in sentence.tokens if token.reading is not None}
        return bool(self.verbs & verbs) and self.name_nouns <= {word for one in told for word in one.split()}


def _goal_of(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return the forms of the object behind a verb: the last noun before the next word of the grammar."""
    kept = [*tokens]
    while kept and is_function_word(kept[0]):
        kept = kept[1:]
    end = next((place for place, token in enumerate(kept) if is_function_word(token)), len(kept))
    return number_forms(kept[end - 1]) if end and len(kept[end - 1]) >= _LEAST_LENGTH else ()


def _nouns_of(tokens: Iterable[str]) -> frozenset[str]:
    kept = (token for token in tokens if not is_function_word(token) and len(token) >= _LEAST_LENGTH)
    return frozenset(form for token in kept for form in number_forms(token))


def _is_plain(clause: ProseClause | None) -> bool:
    """Return True if a clause is asserted as a fact of the scene; also without a clause."""
    if clause is None:
        return True
    return clause.is_asserted and not clause.modal and not (clause.is_infinitive and clause.governor is None)


def _is_time_left(group: Group, sentence: Sentence) -> bool:
    """Return True unless a group is a duration, which is about no amount: `for nine hours`."""
    return group.word not in _TIME_NOUNS or bool(_TIME_LEFT & {token.word for token in sentence.tokens})


def _clause_of(sentence: Sentence, group: Group) -> ProseClause | None:
    """Return the clause that has a group; the nearest one if none has; None if the part has no verb."""
    for clause in sentence.clauses:
        inside = [*clause.groups(), *(one for _, one in clause.fronted)]
        if any(one is group or one.of is group or group in one.joined for one in inside):
            return clause
    start = group.tokens[0].start
    return next((clause for clause in sentence.clauses if clause.span[0] <= start < clause.span[1]), None)


def _near(sentence: Sentence, group: Group) -> set[str]:
    place = sentence.tokens.index(group.tokens[0])
    end = sentence.tokens.index(group.tokens[-1])
    return {token.word for token in sentence.tokens[max(0, place - 2) : end + 2]}


def _ordinal(group: Group) -> float | None:
    """Return the number of `the thirtieth day`."""
    if group.tokens[0].word not in {"the", "a", "your"}:
        return None
    for token in group.tokens[1:]:
        tens, _, unit = token.word.partition("-")
        if token.word in _ORDINALS and token.word not in {"first", "second"}:
            return float(_ORDINALS[token.word])
        if tens in _TENS and unit in _ORDINALS:
            return float(_TENS[tens] + _ORDINALS[unit])
    return None


def _direction(clause: ProseClause) -> int:
    """Return 1 if the subject of a clause rises, -1 if it falls, else 0."""
    if clause.is_passive:
        return 1 if clause.is_a("raise") else -1 if clause.is_a("lower") else 0
    is_bare = clause.form == PARTICIPLE and not clause.is_perfect
    if is_bare or (clause.form == GERUND and clause.is_infinitive):
        return 0
    measures = [one for one in clause.objects if one.head.tag in {"noun", "name"} and one.head.number is None]
    if measures or clause.base in words("run come go get stand be hold"):
        return 0
    return 1 if clause.is_a("rise") else -1 if clause.is_a("fall") else 0
