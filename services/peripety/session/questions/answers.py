"""Answers to questions about a session, from its record, in the language of the game.

An answer cites the turns that it rests on; 0 is the start. A question that fits no pattern, or names a thing
that the viewer does not see, has no answer: nothing is guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.author.text_analysis.reading import find_story_language
from peripety.session.narration.claims.deeds import read_deeds
from peripety.session.narration.claims.english import alternatives, number_forms, verb_forms
from peripety.session.narration.scenario_prompt import describe_characters
from peripety.session.questions.question_words import (
    DEFAULT,
    OWN,
    find_words,
    list_question_languages,
    load_words,
)
from peripety.session.state_facts import to_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from peripety.session.questions.question_words import QuestionWords
    from peripety.session.questions.session_record import RecordedTurn, SessionRecord
    from peripety.session.state_facts import Quantity, StateFacts


CANNOT_SAY = load_words(DEFAULT).say("cannot")
"""The English answer to a question that the record does not answer."""

_MAX_QUOTED = 8
_MARKS = " ?!.\u00bf\u00a1\u3002\uff1f\uff01"
_ENDS = (".", "!", "?", "\u3002", "\uff01", "\uff1f")
_LEAST_SHARE = 0.5
"""The share of the words of a question that the name of an action has to have."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a question.

    Attributes:
        text: the answer in the language of the game.
        is_found: False if the record does not answer the question.
        turns: the turns that the answer rests on, in order; 0 is the start.
    """

    text: str
    is_found: bool = True
    turns: tuple[int, ...] = ()


def answer_question(record: SessionRecord, question: str) -> Answer:
    """Return the answer to a question about a session.

    The question is in the language of the game, or English; the answer is in the language of the game. A game
    in a language without questions has English ones.

    Args:
        record: the record for one viewer.
        question: the question.
    """
    own, *others = find_words(record.spec)
    answers = (_Question(record, question, words, own).answer() for words in (own, *others))
    found = next((answer for answer in answers if answer is not None), None)
    return found or Answer(_say_no_answer(record.spec, own), is_found=False)


def _say_no_answer(spec: Mapping[str, Any], words: QuestionWords) -> str:
    """Return the text if the record has no answer; it names the languages with questions if this has none."""
    language = find_story_language(spec)
    is_other = bool(spec.get("opening")) and language not in {"", *list_question_languages()}
    return words.say("cannot_here" if is_other else "cannot")


class _Question:
    """A question: its words without the turn that it names, and that turn.

    Args:
        record: the record for one viewer.
        question: the question.
        words: the words of the language of the question.
        texts: the words of the language of the answer.
    """

    def __init__(
        self, record: SessionRecord, question: str, words: QuestionWords, texts: QuestionWords
    ) -> None:
        self._record, self._words, self._told = record, words, texts
        text = re.sub(r"\s+", " ", question.lower().replace("\u2019", "'")).strip(_MARKS)
        text = text if words.has_spaces else re.sub(r"\s+", "", text)
        gap = " " if words.has_spaces else ""
        self._turn: int | None = None
        self._relation = ""
        if (found := words.turn.search(text)) is not None:
            parts = {name.rstrip("_") for name, part in found.groupdict().items() if part is not None}
            self._turn = int(found["number"])
            self._relation = next((name for name in ("since", "before") if name in parts), "")
            text = f"{text[: found.start()]}{gap}{text[found.end() :]}"
        elif (found := words.last_turn.search(text)) is not None:
            self._turn = record.last_turn
            text = f"{text[: found.start()]}{gap}{text[found.end() :]}"
        self._text = words.polite.sub("", re.sub(r"\s+", " ", text).strip(" ,\uff0c"))

    def _join(self, parts: Iterable[str]) -> str:
        """Return one sentence of some parts."""
        text = self._told.say("join").join(parts)
        return _sentence_case(text) + ("" if text.endswith(_ENDS) else self._told.say("stop"))

    @property
    def _time(self) -> int:
        """Number of the turn whose final state the answer is about."""
        if self._turn is None:
            return self._record.last_turn
        return self._turn - 1 if self._relation == "before" else self._turn

    @property
    def _facts(self) -> StateFacts:
        return self._record.facts_after(self._time)

    def answer(self) -> Answer | None:
        """Return the answer; None if the record does not have it."""
        if self._time < 0 or self._time > self._record.last_turn:
            return None
        for pattern in self._words.patterns:
            found = pattern.match(self._text)
            if found is not None and (answer := _WAYS[pattern.method](self, found)) is not None:
                return answer
        return None

    # --- the run ---

    def describe_turn(self, _found: Mapping[str, str]) -> Answer | None:
        if self._relation == "since":
            turns = [turn for turn in self._record.turns if turn.turn > (self._turn or 0)]
            told = [
                self._told.say("turn_line", turn=turn.turn, text=self._join(self._describe_turn(turn)))
                for turn in turns[-_MAX_QUOTED:]
            ]
            numbers = tuple(turn.turn for turn in turns[-_MAX_QUOTED:])
            return Answer(" ".join(told) or self._told.say("nothing"), turns=numbers)
        turn = self._record.find_turn(self._record.last_turn if self._turn is None else self._turn)
        if turn is None:
            return None
        return Answer(self._join(self._describe_turn(turn)), turns=(turn.turn,))

    def _describe_turn(self, turn: RecordedTurn) -> Iterator[str]:
        names, events = self._names("actions"), self._names("random_events")
        for action in turn.actions:
            name = names.get(action.action_id, action.action_id)
            yield name if action.accepted else self._told.say("refused", name=name)
        if not turn.actions:
            yield self._told.say("no_action")
        if turn.event_id is not None:
            yield events.get(turn.event_id, turn.event_id)
        for name, values in self._net_changes(turn).items():
            yield self._told.say("pair", name=name, value=self._from_to(*values))
        yield from turn.log
        if turn.status.kind != "ongoing":
            yield self._told.say("run_ended", kind=self._told.name_kind(turn.status.kind))

    def _net_changes(self, turn: RecordedTurn) -> dict[str, tuple[float, float]]:
        before, after = self._record.facts_after(turn.turn - 1), self._record.facts_after(turn.turn)
        changed = {
            self._label(quantity)
            if quantity.owner is None
            else f"{after.name_of(quantity.owner)}: {self._label(quantity)}": (
                before.quantities[path].value,
                quantity.value,
            )
            for path, quantity in after.quantities.items()
            if path in before.quantities and before.quantities[path].value != quantity.value
        }
        return dict(list(changed.items())[:_MAX_QUOTED])

    def _names(self, group: str) -> dict[str, str]:
        return {
            rule["id"]: rule.get("name") or to_words(rule["id"])
            for rule in self._record.spec.get(group) or ()
        }

    def list_actions(self, _found: Mapping[str, str]) -> Answer | None:
        if self._turn not in {None, self._record.last_turn}:
            return None
        names = self._names("actions")
        listed = [names.get(action, action) for action in self._record.legal_actions]
        return Answer(self._join(listed) if listed else self._told.say("no_legal"), turns=self._now)

    def describe_status(self, _found: Mapping[str, str]) -> Answer | None:
        turn = self._record.find_turn(self._time)
        status = self._record.status if turn is None else turn.status
        if status.kind == "ongoing":
            return Answer(self._told.say("continues"), turns=(self._time,))
        message = f" {status.message}" if status.message else ""
        text = self._told.say("ended", kind=self._told.name_kind(status.kind), message=message)
        return Answer(text, turns=(self._time,))

    def count_turns(self, _found: Mapping[str, str]) -> Answer:
        count = self._record.last_turn
        return Answer(self._told.count("turns_over", count), turns=self._now)

    def count_turns_left(self, _found: Mapping[str, str]) -> Answer | None:
        horizon = self._record.spec.get("horizon")
        if horizon is None or self._record.status.kind != "ongoing":
            return None
        return Answer(self._told.count("turns_left", horizon - self._record.last_turn), turns=self._now)

    @property
    def _now(self) -> tuple[int, ...]:
        return (self._record.last_turn,)

    # --- amounts ---

    def _find_quantities(self, text: str, facts: StateFacts) -> list[Quantity]:
        """Return the quantities that a text names; the longest name wins, of the owner named."""
        known: dict[str, list[Quantity]] = {}
        for quantity in facts.quantities.values():
            for form in {form for name in quantity.names for form in number_forms(name)}:
                known.setdefault(form, []).append(quantity)
        named = re.findall(self._words.bound(alternatives(known)), text)
        if not named:
            return []
        found = known[max(named, key=len)]
        owner = self._find_entity(text, facts)
        if owner is not None:
            return [one for one in found if one.owner == owner] or ([] if owner != facts.you else found)
        return [one for one in found if one.owner in {None, facts.you}] or found

    def describe_amount(self, found: Mapping[str, str]) -> Answer | None:
        facts = self._facts
        quantities = self._find_quantities(found["what"], facts)
        if not quantities:
            return None
        told = [self._describe(quantity, facts) for quantity in quantities]
        turns = {self._record.last_change(quantity.path, self._time) for quantity in quantities}
        return Answer(self._join(told), turns=tuple(sorted(turns)))

    def _describe(self, quantity: Quantity, facts: StateFacts) -> str:
        owner = "" if quantity.owner is None else f"{_sentence_case(facts.name_of(quantity.owner))}: "
        unit = f" {quantity.unit}" if quantity.unit else ""
        value = f"{_format(quantity.value)}{unit}"
        return owner + self._told.say("pair", name=self._label(quantity), value=value)

    def _label(self, quantity: Quantity) -> str:
        """Return the name of a quantity; in the case of its label where nouns have capitals."""
        name = quantity.names[0]
        label = str((self._record.spec.get("labels") or {}).get(quantity.path, {}).get("name") or "")
        return label if label.lower() == name and self._told.language != DEFAULT else name

    def _span(self) -> tuple[int, int]:
        """Return the turns before and after which two values are compared."""
        if self._turn is None:
            return 0, self._record.last_turn
        return (
            (self._turn, self._record.last_turn)
            if self._relation == "since"
            else (self._turn - 1, self._turn)
        )

    def _difference(self, text: str) -> tuple[Quantity, float, float, tuple[int, ...]] | None:
        """Return a quantity that a text names, its values before and after, and the turns that changed it."""
        quantities = self._find_quantities(text, self._facts)
        if len(quantities) != 1:
            return None
        path = quantities[0].path
        start, end = self._span()
        values = [self._record.facts_after(max(0, turn)).quantities.get(path) for turn in (start, end)]
        if values[0] is None or values[1] is None:
            return None
        turns = [turn for turn in self._record.turns_that_changed(path) if start < turn <= end]
        return quantities[0], values[0].value, values[1].value, tuple(turns[-_MAX_QUOTED:]) or (max(0, end),)

    def describe_change(self, found: Mapping[str, str]) -> Answer | None:
        change = self._difference(found["what"])
        if change is None:
            return None
        quantity, before, after, turns = change
        name = _sentence_case(self._label(quantity))
        if before == after:
            text = self._told.say("unchanged", name=name, value=_format(after))
            return Answer(text, turns=turns)
        return Answer(
            self._join([self._told.say("pair", name=name, value=self._from_to(before, after))]), turns=turns
        )

    def confirm_change(self, found: Mapping[str, str]) -> Answer | None:
        change = self._difference(found["what"])
        if change is None:
            return None
        _, before, after, turns = change
        holds = {"rise": after > before, "grow": after > before, "change": after != before}
        is_so = holds.get(found["how"], after < before)
        text = self._told.say(
            "yes_change" if is_so else "no_change", before=_format(before), after=_format(after)
        )
        return Answer(text, turns=turns)

    # --- times ---

    def date_change(self, found: Mapping[str, str]) -> Answer | None:
        turns = self._turns_of(found["what"], found["how"])
        if turns is None:
            return None
        return self._date_last(turns, turns[-1:])

    def _date_last(self, turns: list[int], shown: list[int]) -> Answer:
        """Return the answer with some of the turns of something; "never" without any."""
        if not turns:
            return Answer(self._told.say("never"), turns=self._now)
        text = self._told.count("in_turns", len(shown), turns=", ".join(map(str, shown)))
        return Answer(text, turns=tuple(shown))

    def _from_to(self, before: float, after: float) -> str:
        return self._told.say("from_to", before=_format(before), after=_format(after))

    def _turns_of(self, what: str, how: str) -> list[int] | None:
        """Return the turns in which something changed in a way; None if it is unknown."""
        record, facts = self._record, self._record.facts_after(self._record.last_turn)
        entity = self._find_entity(what, facts)
        quantities = self._find_quantities(what, facts)
        if how == "die" or (how == "move" and entity is not None) or (entity is not None and not quantities):
            kind = "life" if how == "die" else "place"
            path = facts.sources.get((kind, entity or ""))
            turns = None if path is None else record.turns_that_changed(path)
            if turns is not None and how == "die":
                return [turn for turn in turns if record.facts_after(turn).alive.get(entity or "") is False]
            return turns
        if len(quantities) == 1:
            path = quantities[0].path
            turns = record.turns_that_changed(path)
            if how == "change":
                return turns
            return [turn for turn in turns if self._has_moved(path, turn, is_up=how in {"rise", "grow"})]
        thing = self._find_thing(what, facts)
        return None if thing is None else record.turns_that_changed(facts.sources["holder", thing])

    def _has_moved(self, path: str, turn: int, *, is_up: bool) -> bool:
        values = [self._record.facts_after(one).quantities.get(path) for one in (turn - 1, turn)]
        if values[0] is None or values[1] is None:
            return False
        return values[1].value > values[0].value if is_up else values[1].value < values[0].value

    def date_event(self, found: Mapping[str, str]) -> Answer | None:
        what = found["what"]
        names = {name.lower(): event_id for event_id, name in self._names("random_events").items()}
        event_id = names.get(re.sub(r"^(?:the|an?) ", "", what)) or names.get(what)
        if event_id is None and self._words.language != DEFAULT:
            event_id = self._match_words(what, "random_events")
        if event_id is None:
            return None
        turns = [turn.turn for turn in self._record.turns if turn.event_id == event_id]
        return self._date_last(turns, turns[-_MAX_QUOTED:])

    # --- deeds ---

    def _turns_of_deed(self, deed: str) -> list[int] | None:
        """Return the turns in which an action was carried out; None if it is not an action."""
        ids = set(self._find_actions(deed))
        if not ids:
            return None
        turns = [
            turn.turn
            for turn in self._record.turns
            if any(action.accepted and action.action_id in ids for action in turn.actions)
        ]
        if self._turn is None:
            return turns
        if self._relation == "since":
            return [turn for turn in turns if turn > self._turn]
        return [
            turn
            for turn in turns
            if (turn < self._turn if self._relation == "before" else turn == self._turn)
        ]

    def _find_actions(self, deed: str) -> Iterator[str]:
        text = self._words.action_lead.sub("", deed).strip("'\" ")
        if self._words.language != DEFAULT:
            matched = self._match_words(text, "actions")
            yield from [matched] if matched else ()
            return
        for action in self._record.spec.get("actions") or ():
            if text in {str(action.get("name") or "").lower(), to_words(action["id"]), action["id"].lower()}:
                yield action["id"]
                continue
            for reading in read_deeds(action):
                forms = alternatives(verb_forms(reading.verb))
                thing = alternatives([reading.thing])
                if re.fullmatch(rf"(?:{forms})\s+(?:the |an? |my |our )?{thing}", text):
                    yield action["id"]
                    break

    def _match_words(self, text: str, group: str) -> str | None:
        """Return the rule whose name has most words of a text; None if another has as many, or few fit."""
        wanted = self._words.find_content(text)
        shares = {
            rule_id: len(wanted & self._words.find_content(name.lower()))
            for rule_id, name in self._names(group).items()
        }
        best = max(shares.values(), default=0)
        found = [rule_id for rule_id, share in shares.items() if share == best]
        return found[0] if len(found) == 1 and best and best >= _LEAST_SHARE * len(wanted) else None

    def date_deed(self, found: Mapping[str, str]) -> Answer | None:
        turns = self._turns_of_deed(found["deed"])
        if turns is None:
            return None
        return self._date_last(turns, turns[-1:])

    def count_deed(self, found: Mapping[str, str]) -> Answer | None:
        turns = self._turns_of_deed(found["deed"])
        if turns is None:
            return None
        text = self._told.count("times", len(turns))
        return Answer(text, turns=tuple(turns[-_MAX_QUOTED:]) or self._now)

    def confirm_deed(self, found: Mapping[str, str]) -> Answer | None:
        turns = self._turns_of_deed(found["deed"])
        if turns is None:
            return None
        if not turns:
            return Answer(self._told.say("no"), turns=(self._turn,) if self._turn else self._now)
        listed = ", ".join(map(str, turns[-_MAX_QUOTED:]))
        text = self._told.count("yes_in_turns", len(turns), turns=listed)
        return Answer(text, turns=tuple(turns[-_MAX_QUOTED:]))

    # --- speech ---

    def quote(self, found: Mapping[str, str]) -> Answer | None:
        topic = found.get("topic")
        facts = self._record.facts_after(self._record.last_turn)
        turns = [turn for turn in self._record.turns if self._turn is None or turn.turn == self._turn]
        if found["who"] == OWN:
            said = [(turn.turn, turn.input) for turn in turns if turn.input]
        else:
            entity = self._find_entity(found["who"], facts)
            if entity is None:
                return None
            said = [(turn.turn, words) for turn in turns for who, words in turn.dialogue if who == entity]
        if topic is not None:
            said = [(turn, words) for turn, words in said if topic in words.lower()]
        if not said:
            return Answer(self._told.say("nothing"), turns=(self._turn,) if self._turn else self._now)
        last = said if self._turn is not None else said[-1:]
        text = " ".join(self._told.say("speech", words=words) for _, words in last)
        return Answer(text, turns=tuple(sorted({turn for turn, _ in last})))

    # --- what the player knows ---

    def describe_entity(self, found: Mapping[str, str]) -> Answer | None:
        entity = self._find_entity(found["who"], self._facts)
        told = [
            one for one in describe_characters(self._record.spec, self._record.viewer) if one["id"] == entity
        ]
        texts = [text for one in told for key in ("description", "manner") if (text := one.get(key))]
        if not texts:
            return None
        name = _sentence_case(self._facts.name_of(entity or ""))
        return Answer(self._told.say("pair", name=name, value=" ".join(texts)), turns=(0,))

    def list_knowledge(self, found: Mapping[str, str]) -> Answer | None:
        """Return the clues and statements that the viewer has; with a topic, only what is about it."""
        texts = dict(self._known_texts())
        topic = found.get("topic")
        who = None if topic is None else self.describe_entity({"who": topic})
        if topic is not None:
            entity = self._find_entity(topic, self._facts)
            names = {topic, *(name.lower() for name in self._facts.names.get(entity or "", ()))}
            texts = {
                path: text for path, text in texts.items() if any(name in text.lower() for name in names)
            }
            if not texts:
                return who
        elif not texts:
            return Answer(self._told.say("nothing"), turns=self._now)
        turns = {self._record.last_change(path, self._record.last_turn) for path in texts}
        told = [*([who.text] if who is not None else []), *texts.values()]
        return Answer(" ".join(told), turns=tuple(sorted(turns)))

    def _known_texts(self) -> Iterator[tuple[str, str]]:
        """Yield the paths and texts of the clues and statements that the viewer has."""
        spec, tree = self._record.spec, self._record.tree
        for name, text in tree.get("clues", {}).items() if "clues" in spec else ():
            yield f"state.clues.{name}", text
        for name, text in tree.get("statements", {}).items() if "statements" in spec else ():
            speaker = _sentence_case(self._facts.name_of(spec["statements"][name]["by"]))
            quoted = self._told.say("speech", words=text)
            yield f"state.statements.{name}", self._told.say("pair", name=speaker, value=quoted)

    def list_promises(self, _found: Mapping[str, str]) -> Answer | None:
        spec = self._record.spec
        if "promises" not in spec:
            return None
        known = [(name, status) for name, status in self._record.tree.get("promises", {}).items() if status]
        told = [
            self._told.say(
                "promise",
                name=_sentence_case(self._facts.name_of(spec["promises"][name]["to"])),
                terms=spec["promises"][name]["terms"].rstrip("".join(_ENDS)),
                status=self._told.texts["promise_states"][status],
            )
            for name, status in known
            if spec["promises"][name].get("by", self._facts.you) == self._facts.you
        ]
        turns = {
            self._record.last_change(f"state.promises.{name}", self._record.last_turn) for name, _ in known
        }
        return Answer(
            self._join(told) if told else self._told.say("nothing"), turns=tuple(sorted(turns)) or self._now
        )

    # --- people and things ---

    def _find_entity(self, text: str, facts: StateFacts) -> str | None:
        """Return the entity that a text names."""
        if text == OWN or self._words.own.search(text):
            return facts.you
        named = {name.lower(): entity for entity, names in facts.names.items() for name in names}
        named |= {entity.lower(): entity for entity in facts.names}
        found = re.findall(self._words.bound(alternatives(named)), text)
        return named[max(found, key=len)] if found else None

    def _find_thing(self, text: str, facts: StateFacts) -> str | None:
        found = re.findall(self._words.bound(alternatives(facts.holders)), text)
        return max(found, key=len) if found else None

    def _find_place(self, text: str) -> str | None:
        named = {name: place for place, names in self._record.place_names().items() for name in names}
        found = re.findall(self._words.bound(alternatives(named)), text)
        return named[max(found, key=len)] if found else None

    def _source(self, kind: str, key: str) -> tuple[int, ...]:
        path = self._facts.sources.get((kind, key))
        return (0,) if path is None else (self._record.last_change(path, self._time),)

    def list_company(self, found: Mapping[str, str]) -> Answer | None:
        facts = self._facts
        named = found.get("place")
        place = facts.places.get(facts.you) if named is None else self._find_place(named)
        if place is None:
            return None
        there = [
            entity
            for entity, where in facts.places.items()
            if where == place and entity != facts.you and facts.alive.get(entity) is not False
        ]
        turns = {turn for entity in there for turn in self._source("place", entity)} or {self._time}
        names = [facts.name_of(entity) for entity in there]
        return Answer(self._join(names) if names else self._told.say("nobody"), turns=tuple(sorted(turns)))

    def confirm_life(self, found: Mapping[str, str]) -> Answer | None:
        facts = self._facts
        entity = self._find_entity(found["who"], facts)
        if entity is None or entity not in facts.alive:
            return None
        is_so = facts.alive[entity] is (found["how"] == "alive")
        return Answer(self._told.say("yes" if is_so else "no"), turns=self._source("life", entity))

    def confirm_place(self, found: Mapping[str, str]) -> Answer | None:
        facts = self._facts
        named = found.get("place")
        entity = self._find_entity(found["who"], facts)
        place = facts.places.get(facts.you) if named is None else self._find_place(named)
        if entity is None or place is None or entity not in facts.places:
            return None
        return Answer(
            self._told.say("yes" if facts.places[entity] == place else "no"),
            turns=self._source("place", entity),
        )

    def locate(self, found: Mapping[str, str]) -> Answer | None:
        facts = self._facts
        thing = self._find_thing(found["what"], facts)
        if thing is not None:
            return self.name_holder(found)
        entity = self._find_entity(found["what"], facts)
        if entity is None or entity not in facts.places:
            return None
        place = facts.place_names[facts.places[entity]][0]
        return Answer(self._told.say("in_place", place=place), turns=self._source("place", entity))

    def name_holder(self, found: Mapping[str, str]) -> Answer | None:
        facts = self._facts
        thing = self._find_thing(found["what"], facts)
        if thing is None:
            return None
        key = "you_have" if facts.holders[thing] == facts.you else "has"
        name = _sentence_case(facts.name_of(facts.holders[thing]))
        return Answer(self._told.say(key, name=name, thing=thing), turns=self._source("holder", thing))

    def list_things(self, found: Mapping[str, str]) -> Answer | None:
        facts = self._facts
        who = found.get("who")
        entity = facts.you if who in {None, OWN} else self._find_entity(str(who), facts)
        if entity is None or not facts.holders:
            return None
        things = [thing for thing, holder in facts.holders.items() if holder == entity]
        turns = {turn for thing in things for turn in self._source("holder", thing)} or {self._time}
        listed = (self._told.say("thing", thing=thing) for thing in things)
        return Answer(self._join(listed) if things else self._told.say("nothing"), turns=tuple(sorted(turns)))

    def confirm_holder(self, found: Mapping[str, str]) -> Answer | None:
        facts = self._facts
        who = found.get("who")
        entity = facts.you if who in {None, OWN} else self._find_entity(str(who), facts)
        thing = self._find_thing(found["what"], facts)
        if entity is None or thing is None:
            return None
        return Answer(
            self._told.say("yes" if facts.holders[thing] == entity else "no"),
            turns=self._source("holder", thing),
        )


def _format(value: Any) -> str:
    return f"{value:.10g}"


def _sentence_case(text: str) -> str:
    return text[:1].upper() + text[1:]


_Q = _Question
_WAYS: dict[str, Callable[[_Question, Mapping[str, str]], Answer | None]] = {
    way.__name__: way
    for way in (
        *(_Q.describe_turn, _Q.list_actions, _Q.describe_status, _Q.count_turns, _Q.count_turns_left),
        *(_Q.describe_entity, _Q.list_knowledge, _Q.list_promises),
        *(_Q.date_change, _Q.date_event, _Q.date_deed, _Q.count_deed, _Q.confirm_deed, _Q.quote),
        *(_Q.describe_change, _Q.confirm_change, _Q.describe_amount),
        *(_Q.list_company, _Q.confirm_life, _Q.confirm_place, _Q.locate),
        *(_Q.name_holder, _Q.list_things, _Q.confirm_holder),
    )
}
"""Methods that answer the patterns of `question_words.toml`, by name."""
