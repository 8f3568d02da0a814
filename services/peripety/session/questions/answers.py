"""Answers to questions about a session: patterns of English questions, and their answers from the record.

An answer cites the turns that it rests on; 0 is the start. A question that fits no pattern, or names a thing
that the viewer does not see, has no answer: nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.session.narration.claims.deeds import read_deeds
from peripety.session.narration.claims.english import alternatives, number_forms, verb_forms
from peripety.session.state_facts import to_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from peripety.session.questions.session_record import RecordedTurn, SessionRecord
    from peripety.session.state_facts import Quantity, StateFacts


CANNOT_SAY = "The record does not answer that."

_TURN = re.compile(
    r"[,\s]*\b(in|on|at|after|during|by|since|before|as of)?\s*(?:the\s+)?(?:turn|round)\s+(\d+)\b"
)
_LAST_TURN = re.compile(r"[,\s]*\b(?:in|during)?\s*(?:the\s+)?(?:last|previous) (?:turn|round)\b")
_POLITE = re.compile(r"^(?:please\s+|tell me[,:]?\s+|do you know\s+|and\s+|so\s+)+")
_MAX_QUOTED = 8


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a question.

    Attributes:
        text: the answer in English.
        is_found: False if the record does not answer the question.
        turns: the turns that the answer rests on, in order; 0 is the start.
    """

    text: str
    is_found: bool = True
    turns: tuple[int, ...] = ()


def answer_question(record: SessionRecord, question: str) -> Answer:
    """Return the answer to an English question about a session.

    Args:
        record: the record for one viewer.
        question: the question.
    """
    return _Question(record, question).answer() or Answer(CANNOT_SAY, is_found=False)


class _Question:
    """A question: its words without the turn that it names, and that turn."""

    def __init__(self, record: SessionRecord, question: str) -> None:
        self._record = record
        text = re.sub(r"\s+", " ", question.lower().replace("\u2019", "'")).strip(" ?!.")
        self._turn: int | None = None
        self._relation = ""
        if (found := _TURN.search(text)) is not None:
            self._relation, self._turn = found[1] or "", int(found[2])
            text = f"{text[: found.start()]} {text[found.end() :]}"
        elif (found := _LAST_TURN.search(text)) is not None:
            self._turn = record.last_turn
            text = f"{text[: found.start()]} {text[found.end() :]}"
        self._text = _POLITE.sub("", re.sub(r"\s+", " ", text).strip(" ,"))

    @property
    def _time(self) -> int:
        """The turn after which the state counts."""
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
        for pattern, way in _WAYS:
            found = pattern.fullmatch(self._text)
            if found is not None and (answer := way(self, found)) is not None:
                return answer
        return None

    # --- the run ---

    def describe_turn(self, _found: re.Match[str]) -> Answer | None:
        if self._relation == "since":
            turns = [turn for turn in self._record.turns if turn.turn > (self._turn or 0)]
            told = [f"Turn {turn.turn}: {_join(self._describe_turn(turn))}" for turn in turns[-_MAX_QUOTED:]]
            numbers = tuple(turn.turn for turn in turns[-_MAX_QUOTED:])
            return Answer(" ".join(told) or "Nothing.", turns=numbers)
        turn = self._record.find_turn(self._record.last_turn if self._turn is None else self._turn)
        if turn is None:
            return None
        return Answer(_join(self._describe_turn(turn)), turns=(turn.turn,))

    def _describe_turn(self, turn: RecordedTurn) -> Iterator[str]:
        names, events = self._names("actions"), self._names("random_events")
        for action in turn.actions:
            yield f"{names.get(action.action_id, action.action_id)}{'' if action.accepted else ' (refused)'}"
        if not turn.actions:
            yield "No action"
        if turn.event_id is not None:
            yield events.get(turn.event_id, turn.event_id)
        for name, values in self._net_changes(turn).items():
            yield f"{name}: {_format(values[0])} to {_format(values[1])}"
        yield from turn.log
        if turn.status.kind != "ongoing":
            yield f"the run ended: {turn.status.kind}"

    def _net_changes(self, turn: RecordedTurn) -> dict[str, tuple[float, float]]:
        before, after = self._record.facts_after(turn.turn - 1), self._record.facts_after(turn.turn)
        changed = {
            quantity.names[0]
            if quantity.owner is None
            else f"{after.name_of(quantity.owner)}: {quantity.names[0]}": (
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

    def list_actions(self, _found: re.Match[str]) -> Answer | None:
        if self._turn not in {None, self._record.last_turn}:
            return None
        names = self._names("actions")
        listed = [names.get(action, action) for action in self._record.legal_actions]
        return Answer(f"{_join(listed)}" if listed else "Nothing: no action is legal.", turns=self._now)

    def describe_status(self, _found: re.Match[str]) -> Answer | None:
        turn = self._record.find_turn(self._time)
        status = self._record.status if turn is None else turn.status
        if status.kind == "ongoing":
            return Answer("No, the run continues.", turns=(self._time,))
        message = f" {status.message}" if status.message else ""
        return Answer(f"The run has ended: {status.kind}.{message}", turns=(self._time,))

    def count_turns(self, _found: re.Match[str]) -> Answer:
        count = self._record.last_turn
        return Answer(f"{count} {'turn is' if count == 1 else 'turns are'} over.", turns=self._now)

    @property
    def _now(self) -> tuple[int, ...]:
        return (self._record.last_turn,)

    # --- amounts ---

    def _find_quantities(self, text: str, facts: StateFacts) -> list[Quantity]:
        """Return the quantities that a text names: those of the longest name, of the owner that it names."""
        known: dict[str, list[Quantity]] = {}
        for quantity in facts.quantities.values():
            for form in {form for name in quantity.names for form in number_forms(name)}:
                known.setdefault(form, []).append(quantity)
        named = re.findall(rf"(?<![\w-])(?:{alternatives(known)})(?![\w-])", text)
        if not named:
            return []
        found = known[max(named, key=len)]
        owner = self._find_entity(text, facts)
        if owner is not None:
            return [one for one in found if one.owner == owner] or ([] if owner != facts.you else found)
        return [one for one in found if one.owner in {None, facts.you}] or found

    def describe_amount(self, found: re.Match[str]) -> Answer | None:
        facts = self._facts
        quantities = self._find_quantities(found["what"], facts)
        if not quantities:
            return None
        told = [_describe(quantity, facts) for quantity in quantities]
        turns = {self._record.last_change(quantity.path, self._time) for quantity in quantities}
        return Answer(_join(told), turns=tuple(sorted(turns)))

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

    def describe_change(self, found: re.Match[str]) -> Answer | None:
        change = self._difference(found["what"])
        if change is None:
            return None
        quantity, before, after, turns = change
        name = _sentence_case(quantity.names[0])
        if before == after:
            return Answer(f"{name} did not change: {_format(after)}.", turns=turns)
        return Answer(f"{name}: {_format(before)} to {_format(after)}.", turns=turns)

    def confirm_change(self, found: re.Match[str]) -> Answer | None:
        change = self._difference(found["what"])
        if change is None:
            return None
        _, before, after, turns = change
        holds = {"rise": after > before, "grow": after > before, "change": after != before}
        is_so = holds.get(found["how"], after < before)
        return Answer(f"{'Yes' if is_so else 'No'}: {_format(before)} to {_format(after)}.", turns=turns)

    # --- times ---

    def date_change(self, found: re.Match[str]) -> Answer | None:
        turns = self._turns_of(found["what"], found["how"])
        if turns is None:
            return None
        if not turns:
            return Answer("Never.", turns=self._now)
        return Answer(f"In turn {turns[-1]}.", turns=(turns[-1],))

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

    def date_event(self, found: re.Match[str]) -> Answer | None:
        what = found["what"]
        names = {name.lower(): event_id for event_id, name in self._names("random_events").items()}
        event_id = names.get(re.sub(r"^(?:the|an?) ", "", what)) or names.get(what)
        if event_id is None:
            return None
        turns = [turn.turn for turn in self._record.turns if turn.event_id == event_id]
        text = f"In {'turn' if len(turns) == 1 else 'turns'} {', '.join(map(str, turns[-_MAX_QUOTED:]))}."
        return Answer(text if turns else "Never.", turns=tuple(turns[-_MAX_QUOTED:]) or self._now)

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
        text = re.sub(r"^(?:take the action|use|do)\s+", "", deed).strip("'\" ")
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

    def date_deed(self, found: re.Match[str]) -> Answer | None:
        turns = self._turns_of_deed(found["deed"])
        if turns is None:
            return None
        return (
            Answer(f"In turn {turns[-1]}.", turns=(turns[-1],))
            if turns
            else Answer("Never.", turns=self._now)
        )

    def count_deed(self, found: re.Match[str]) -> Answer | None:
        turns = self._turns_of_deed(found["deed"])
        if turns is None:
            return None
        times = "once" if len(turns) == 1 else f"{len(turns)} times"
        return Answer(f"{_sentence_case(times)}.", turns=tuple(turns[-_MAX_QUOTED:]) or self._now)

    def confirm_deed(self, found: re.Match[str]) -> Answer | None:
        turns = self._turns_of_deed(found["deed"])
        if turns is None:
            return None
        if not turns:
            return Answer("No.", turns=(self._turn,) if self._turn else self._now)
        listed = ", ".join(map(str, turns[-_MAX_QUOTED:]))
        return Answer(
            f"Yes, in {'turn' if len(turns) == 1 else 'turns'} {listed}.", turns=tuple(turns[-_MAX_QUOTED:])
        )

    # --- speech ---

    def quote(self, found: re.Match[str]) -> Answer | None:
        topic = found["topic"]
        facts = self._record.facts_after(self._record.last_turn)
        turns = [turn for turn in self._record.turns if self._turn is None or turn.turn == self._turn]
        if found["who"] == "i":
            said = [(turn.turn, turn.input) for turn in turns if turn.input]
        else:
            entity = self._find_entity(found["who"], facts)
            if entity is None:
                return None
            said = [(turn.turn, words) for turn in turns for who, words in turn.dialogue if who == entity]
        if topic is not None:
            said = [(turn, words) for turn, words in said if topic in words.lower()]
        if not said:
            return Answer("Nothing.", turns=(self._turn,) if self._turn else self._now)
        last = said if self._turn is not None else said[-1:]
        quoted = " ".join(f"\u201c{words}\u201d" for _, words in last)
        return Answer(f"{quoted} (turn {last[-1][0]})", turns=tuple(sorted({turn for turn, _ in last})))

    # --- people and things ---

    def _find_entity(self, text: str, facts: StateFacts) -> str | None:
        """Return the entity that a text names."""
        if re.search(r"\b(?:i|me|my|we|our|us)\b", text):
            return facts.you
        named = {name.lower(): entity for entity, names in facts.names.items() for name in names}
        named |= {entity.lower(): entity for entity in facts.names}
        found = re.findall(rf"(?<![\w-])(?:{alternatives(named)})(?![\w-])", text)
        return named[max(found, key=len)] if found else None

    def _find_thing(self, text: str, facts: StateFacts) -> str | None:
        found = re.findall(rf"(?<![\w-])(?:{alternatives(facts.holders)})(?![\w-])", text)
        return max(found, key=len) if found else None

    def _find_place(self, text: str) -> str | None:
        named = {name: place for place, names in self._record.place_names().items() for name in names}
        found = re.findall(rf"(?<![\w-])(?:{alternatives(named)})(?![\w-])", text)
        return named[max(found, key=len)] if found else None

    def _source(self, kind: str, key: str) -> tuple[int, ...]:
        path = self._facts.sources.get((kind, key))
        return (0,) if path is None else (self._record.last_change(path, self._time),)

    def list_company(self, found: re.Match[str]) -> Answer | None:
        facts = self._facts
        named = found.groupdict().get("place")
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
        return Answer(_join(names) if names else "No other person.", turns=tuple(sorted(turns)))

    def confirm_life(self, found: re.Match[str]) -> Answer | None:
        facts = self._facts
        entity = self._find_entity(found["who"], facts)
        if entity is None or entity not in facts.alive:
            return None
        is_so = facts.alive[entity] is (found["how"] == "alive")
        return Answer("Yes." if is_so else "No.", turns=self._source("life", entity))

    def confirm_place(self, found: re.Match[str]) -> Answer | None:
        facts = self._facts
        named = found.groupdict().get("place")
        entity = self._find_entity(found["who"], facts)
        place = facts.places.get(facts.you) if named is None else self._find_place(named)
        if entity is None or place is None or entity not in facts.places:
            return None
        return Answer("Yes." if facts.places[entity] == place else "No.", turns=self._source("place", entity))

    def locate(self, found: re.Match[str]) -> Answer | None:
        facts = self._facts
        thing = self._find_thing(found["what"], facts)
        if thing is not None:
            return self.name_holder(found)
        entity = self._find_entity(found["what"], facts)
        if entity is None or entity not in facts.places:
            return None
        place = facts.place_names[facts.places[entity]][0]
        return Answer(f"In the {place}.", turns=self._source("place", entity))

    def name_holder(self, found: re.Match[str]) -> Answer | None:
        facts = self._facts
        thing = self._find_thing(found["what"], facts)
        if thing is None:
            return None
        has = "have" if facts.holders[thing] == facts.you else "has"
        name = _sentence_case(facts.name_of(facts.holders[thing]))
        return Answer(f"{name} {has} the {thing}.", turns=self._source("holder", thing))

    def list_things(self, found: re.Match[str]) -> Answer | None:
        facts = self._facts
        who = found.groupdict().get("who")
        entity = facts.you if who is None else self._find_entity(who, facts)
        if entity is None or not facts.holders:
            return None
        things = [thing for thing, holder in facts.holders.items() if holder == entity]
        turns = {turn for thing in things for turn in self._source("holder", thing)} or {self._time}
        return Answer(
            _join(f"the {thing}" for thing in things) if things else "Nothing.", turns=tuple(sorted(turns))
        )

    def confirm_holder(self, found: re.Match[str]) -> Answer | None:
        facts = self._facts
        who = found.groupdict().get("who")
        entity = facts.you if who is None else self._find_entity(who, facts)
        thing = self._find_thing(found["what"], facts)
        if entity is None or thing is None:
            return None
        return Answer(
            "Yes." if facts.holders[thing] == entity else "No.", turns=self._source("holder", thing)
        )


def _describe(quantity: Quantity, facts: StateFacts) -> str:
    owner = "" if quantity.owner is None else f"{_sentence_case(facts.name_of(quantity.owner))}: "
    unit = f" {quantity.unit}" if quantity.unit else ""
    return f"{owner}{quantity.names[0]}: {_format(quantity.value)}{unit}"


def _format(value: Any) -> str:
    return f"{value:.10g}"


def _sentence_case(text: str) -> str:
    return text[:1].upper() + text[1:]


def _join(parts: Iterable[str]) -> str:
    """Return one sentence of some parts."""
    text = "; ".join(parts)
    return _sentence_case(text) + ("" if text.endswith((".", "!", "?")) else ".")


_IN_PLACE = r"(?:in|at) (?P<place>.+)"
_Q = _Question
_PATTERNS: tuple[tuple[str, Callable[[_Question, re.Match[str]], Answer | None]], ...] = (
    (r"what (?:has )?(?:happened|changed)\b.*", _Q.describe_turn),
    (r"what can (?:i|we) do\b.*|what are (?:my|our) options", _Q.list_actions),
    (r"which actions? (?:is|are) (?:possible|legal)\b.*", _Q.list_actions),
    (r"is (?:the|this) (?:game|run|story) over\b.*|is it over|what is the status", _Q.describe_status),
    (r"(?:did|have) (?:i|we) (?:won|win|lost|lose)\b.*|has the (?:game|run) ended", _Q.describe_status),
    (r"(?:what|which) (?:turn|round) is it\b.*", _Q.count_turns),
    (r"how many (?:turns|rounds) (?:have passed|were played|are over)", _Q.count_turns),
    (r"when did (?P<what>.+?) (?P<how>change|rise|fall|drop|grow|die|move)(?: last)?", _Q.date_change),
    (r"when did (?P<what>.+?) (?:happen|occur)(?: last)?", _Q.date_event),
    (r"when (?:was|were) (?P<what>.+?) (?:last )?(?P<how>change)d", _Q.date_change),
    (r"when did i (?:last )?(?P<deed>.+)", _Q.date_deed),
    (r"how (?:often|many times) (?:did|have) i (?P<deed>.+)", _Q.count_deed),
    (r"(?:did|have) i (?:ever )?(?P<deed>.+?)(?: before| yet| already)?", _Q.confirm_deed),
    (r"what did (?P<who>.+?) (?:say|tell me|answer)(?: about (?P<topic>.+))?", _Q.quote),
    (r"how did (?P<what>.+?) change", _Q.describe_change),
    (r"did (?P<what>.+?) (?P<how>rise|fall|drop|grow|change)", _Q.confirm_change),
    (r"who is (?:here|with (?:me|us)|around)", _Q.list_company),
    (rf"who is {_IN_PLACE}", _Q.list_company),
    (r"is (?P<who>.+?) (?:still )?(?P<how>alive|dead)", _Q.confirm_life),
    (r"is (?P<who>.+?) (?:still )?(?:here|with me)", _Q.confirm_place),
    (rf"is (?P<who>.+?) (?:still )?{_IN_PLACE}", _Q.confirm_place),
    (r"where (?:is|are|am|was|were) (?P<what>.+)", _Q.locate),
    (r"who (?:has|holds|owns|carries|had|held) (?P<what>.+)", _Q.name_holder),
    (r"what (?:do|did) i (?:have|carry|hold|own)", _Q.list_things),
    (r"what (?:does|did) (?P<who>.+?) (?:have|carry|hold|own)", _Q.list_things),
    (r"(?:do|did) i (?:still )?have (?P<what>.+)", _Q.confirm_holder),
    (r"(?:does|did) (?P<who>.+?) (?:still )?have (?P<what>.+)", _Q.confirm_holder),
    (r"how (?:many|much|high|large|big|low) (?P<what>.+)", _Q.describe_amount),
    (r"what (?:is|was|are|were) (?P<what>.+)", _Q.describe_amount),
)
_WAYS = [(re.compile(pattern), way) for pattern, way in _PATTERNS]
"""Patterns of questions, with the methods that answer them; the first that answers counts."""
