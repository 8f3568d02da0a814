"""Lowering: the keys of version 1.1 that have no semantics of their own, as state, conditions and effects.

`once`, `clues`, `statements`, `promises` and `places` are written for authors. `lower` replaces them by what
the engine has: values of the state, preconditions, derived values, effects and schedules. A solution whose
moves name the value of a deal is replaced by one solution for each value. So backends, proofs, dry-runs and
replay know nothing of them. The hash of a scenario is that of the written document;
backends compile the lowered one. docs/reference/semantics.md, section 12, defines the result.

Three properties make the result safe:

- The shape of the state never changes. What is not there yet is the empty text, which no viewer sees
  (`peripety.engine.visibility`).
- Every written value is a derived one, so the narrator cannot cite it as a precedent.
- A written effect remains at its index; further effects follow at the end. `Lowering.to_written` names the
  written place of each.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from peripety.engine._reference.variants import list_options
from peripety.engine.canonical_json import canonicalize
from peripety.engine.json_values import loads
from peripety.engine.paths import MISSING, format_path, lookup, parse_path
from peripety.engine.schema_validation import format_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.engine.types import Status


SECTIONS = ("clues", "statements", "promises", "places")
"""The top-level keys, and the names of their values in the state."""
VEILED_SECTIONS = ("clues", "statements", "promises")
"""The sections whose values are texts that are empty at first."""
STORY_OPERATIONS = {
    "reveal": ("clue", "clues"),
    "say": ("statement", "statements"),
    "promise": ("promise", "promises"),
    "keep": ("promise", "promises"),
    "break": ("promise", "promises"),
    "move": ("entity", "places"),
}
"""The operations of effects, each with the key that names its subject, and with the section."""
CONDITIONS = {"known": "clues", "broken": "statements"}
"""The operators of conditions, each with the section of its operand."""
RESERVED_PREFIX = "lowered:"
"""The beginning of the names of derived values."""
MAX_SOLUTIONS = 512
"""The greatest number of solutions that one is replaced by; one that needs more remains as it is."""
SCHEDULE_PREFIX = "promise:"
"""The beginning of the ids of schedules."""
OPEN, KEPT, BROKEN = "open", "kept", "broken"

_ITERATORS = frozenset({"map", "filter", "reduce", "all", "some", "none"})
_RULES = (("actions", "preconditions"), ("random_events", "when"))
_ENDS = ("loss_conditions", "win_conditions", "solutions")
# A valid document in canonical form that has a lowered key has one of these words.
_WORDS = (b'"once":', b'"solutions":', *(f'"{section}":'.encode() for section in SECTIONS))


@dataclass(frozen=True)
class Lowering:
    """A lowered scenario.

    Attributes:
        spec: the scenario without the lowered keys.
        places: JSON Pointers in it that differ from those in the written document, with the latter.
    """

    spec: dict[str, Any]
    places: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_identity(self) -> bool:
        """True if the scenario has no lowered key."""
        return not self.places

    @cached_property
    def document(self) -> bytes:
        """The lowered scenario in canonical form."""
        return canonicalize(self.spec)

    def to_written(self, pointer: str) -> str:
        """Return the place in the written document of a JSON Pointer in the lowered one."""
        segments = pointer.split("/")
        for end in range(len(segments), 1, -1):
            written = self.places.get("/".join(segments[:end]))
            if written is not None:
                return "/".join([written, *segments[end:]])
        return pointer


def lower(spec: Mapping[str, Any]) -> Lowering:
    """Lower a scenario that is valid against its schema; without lowered keys it remains as it is.

    A reference to what does not exist has no effect here; `peripety.engine.checks` reports it.
    """
    return _Lowerer(spec).lower() if _has_lowered_keys(spec) else Lowering(dict(spec))


def lower_document(document: bytes) -> Lowering | None:
    """Lower a valid document in canonical form; None if it has no lowered key."""
    if not any(word in document for word in _WORDS):
        return None
    spec = loads(document)
    return _Lowerer(spec).lower() if _has_lowered_keys(spec) else None


def find_target(effect: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the path that an operation of `STORY_OPERATIONS` writes; None for other operations."""
    if effect["op"] not in STORY_OPERATIONS:
        return None
    key, section = STORY_OPERATIONS[effect["op"]]
    subject = effect[key]
    return ("state", section, subject) if isinstance(subject, str) else ("state", section)


def list_reserved_paths(spec: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the state that only the lowered keys of a scenario write."""
    yield from (("state", section) for section in SECTIONS if section in spec)
    if any(_list_flags(spec).values()):
        yield ("state", "hidden", "once")
    for entity in dict.fromkeys(entity for entity, _ in _iter_hearers(spec)):
        yield ("state", "private", entity, "promises")


def list_veiled_paths(spec: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the state whose empty texts no viewer sees."""
    for section in VEILED_SECTIONS:
        yield from (("state", section, name) for name in spec.get(section, ()))
    yield from (("state", "private", entity, "promises", name) for entity, name in _iter_hearers(spec))


def list_conditional_paths(spec: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the clues and statements that an effect with a condition may leave as they are."""
    for section, _ in _RULES:
        for rule in spec[section]:
            for _, effect, _ in iter_story_effects(rule["effects"], ""):
                if effect["op"] in STORY_OPERATIONS and effect.get("when"):
                    key, entries = STORY_OPERATIONS[effect["op"]]
                    for name in list_subjects(effect[key], rule.get("params", {})):
                        yield ("state", entries, name)


def list_subjects(subject: Any, params: Mapping[str, Any]) -> list[str]:
    """Return the ids that a subject of an effect may have, `id` or `{"param": name}`.

    Args:
        subject: the subject.
        params: the parameters of the rule. One that is not a string with `enum` gives none.
    """
    if isinstance(subject, str):
        return [subject]
    return list_options({"params": params}, subject["param"])


def dealt_key(value: Any) -> str | None:
    """Return the key of the text for a value of a deal: a text itself, a number or a boolean as in JSON.

    None for a list, an object or null, which have no such text.
    """
    if isinstance(value, str):
        return value
    return canonicalize(value).decode() if isinstance(value, bool | int | float) else None


def deal_epilogue(spec: Mapping[str, Any], tree: Any, status: Status) -> Status:
    """Return the status of a run with the epilogue of its ending, if that depends on a deal.

    Args:
        spec: a valid scenario.
        tree: the state of the run at its end.
        status: the status.
    """
    epilogue = spec.get("epilogues", {}).get(status.condition)
    if not isinstance(epilogue, dict):
        return status
    path = next(deal["path"] for deal in spec["deal"] if deal["id"] == epilogue["deal"])
    *_, last = epilogue["texts"].values()
    value = lookup(tree, parse_path(path)[1:])
    key = None if value is MISSING else dealt_key(value)
    return replace(status, epilogue=last if key is None else epilogue["texts"].get(key, last))


def read_epilogue(epilogues: Mapping[str, Any], status: Status) -> str:
    """Return the epilogue of the ending of a run, from `deal_epilogue`; empty if it has none.

    Args:
        epilogues: the epilogues of the scenario.
        status: the status of the run.
    """
    text = epilogues.get(status.condition) if status.condition else None
    return text if isinstance(text, str) else status.epilogue or ""


def list_dealt_params(solution: Mapping[str, Any]) -> list[str]:
    """Return the ids of the deals whose values the moves of a solution name."""
    moves = [*solution["steps"], *(step.get("otherwise") for step in solution["steps"])]
    given = [value for move in moves if isinstance(move, dict) for value in move.get("params", {}).values()]
    return [*dict.fromkeys(value["deal"] for value in given if isinstance(value, dict))]


def iter_story_effects(effects: Sequence[Mapping[str, Any]], place: str) -> Iterator[tuple[str, Any, bool]]:
    """Yield all effects of a list with their JSON Pointers, and True for those inside a schedule."""
    for index, effect in enumerate(effects):
        yield f"{place}/{index}", effect, False
        for inner, later, _ in iter_story_effects(effect.get("effects", ()), f"{place}/{index}/effects"):
            yield inner, later, True


def _has_lowered_keys(spec: Mapping[str, Any]) -> bool:
    if spec["spec_version"] != "1.1":
        return False
    if any(section in spec for section in SECTIONS) or any("place" in e for e in spec.get("entities", ())):
        return True
    if any(map(list_dealt_params, spec.get("solutions", ()))):
        return True
    rules = [rule for section, _ in _RULES for rule in spec[section]]
    return any(
        "once" in rule
        or any(
            "once" in effect or effect["op"] in STORY_OPERATIONS
            for _, effect, _ in iter_story_effects(rule["effects"], "")
        )
        for rule in rules
    )


def _list_flags(spec: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the ids of the rules and schedules that may happen once, by section."""
    flags: dict[str, list[str]] = {
        section: [rule["id"] for rule in spec[section] if rule.get("once")] for section, _ in _RULES
    }
    flags["schedules"] = [
        effect["id"]
        for section, _ in _RULES
        for rule in spec[section]
        for _, effect, _ in iter_story_effects(rule["effects"], "")
        if effect.get("once")
    ]
    return flags


def _iter_hearers(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the entities that hear of promises, each with the promise."""
    for name, promise in spec.get("promises", {}).items():
        yield from ((hearer["entity"], name) for hearer in promise.get("hears", ()))


@dataclass
class _LoweredRule:
    """Parts that a rule gains.

    Attributes:
        guards: conditions beside its own.
        derives: derived values beside its own.
        effects: effects after its own, each with the index of the effect that it belongs to, or None for the
            rule itself.
        params: its parameters.
        place: its JSON Pointer.
        texts: the section and the subject of each text that its own effects write, with the derived value.
    """

    place: str
    params: Mapping[str, Any] = field(default_factory=dict)
    guards: list[Any] = field(default_factory=list)
    derives: dict[str, Any] = field(default_factory=dict)
    effects: list[tuple[dict[str, Any], int | None]] = field(default_factory=list)
    texts: list[tuple[str, Any, str]] = field(default_factory=list)

    def derive(self, name: str, logic: Any) -> str:
        """Add a derived value; return its name."""
        name = f"{RESERVED_PREFIX}{name}"
        self.derives[name] = logic
        return name


class _Lowerer:
    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._spec = spec
        self._sections: dict[str, dict[str, Any]] = {name: spec.get(name, {}) for name in SECTIONS}
        self._deals = {deal["id"]: deal for deal in spec.get("deal", ())}
        self._places = {"/state/hidden/once": ""}
        self._places |= {f"/state/{section}": f"/{section}" for section in SECTIONS if section in spec}

    def lower(self) -> Lowering:
        spec = {key: value for key, value in self._spec.items() if key not in SECTIONS}
        spec["state"] = self._initial_state()
        if "entities" in spec:
            spec["entities"] = [
                {key: value for key, value in entity.items() if key != "place"} for entity in spec["entities"]
            ]
        for section, condition in _RULES:
            spec[section] = [
                self._lower_rule(rule, section, index, condition) for index, rule in enumerate(spec[section])
            ]
        if "solutions" in spec:
            spec["solutions"] = self._lower_solutions()
        for section in _ENDS:
            if section in spec:
                spec[section] = [
                    {**one, "when": self._lower_logic(one["when"])} if "when" in one else one
                    for one in spec[section]
                ]
        for solution in spec.get("solutions", ()):
            solution["steps"] = [
                {**step, "when": self._lower_logic(step["when"])} if "when" in step else step
                for step in solution["steps"]
            ]
        return Lowering(spec, self._places)

    # --- state ---

    def _initial_state(self) -> dict[str, Any]:
        state = dict(self._spec["state"])
        for section in VEILED_SECTIONS:
            if section in self._spec:
                state[section] = dict.fromkeys(self._spec[section], "")
        if "places" in self._spec:
            entities = self._spec.get("entities", ())
            state["places"] = {entity["id"]: entity["place"] for entity in entities if "place" in entity}
        flags = _list_flags(self._spec)
        if any(flags.values()):
            once = {section: dict.fromkeys(ids, False) for section, ids in flags.items() if ids}
            state["hidden"] = _as_object(state.get("hidden")) | {"once": once}
        for entity, promise in _iter_hearers(self._spec):
            private = _as_object(state.get("private"))
            own = _as_object(private.get(entity))
            news = {**_as_object(own.get("promises")), promise: ""}
            state["private"] = {**private, entity: {**own, "promises": news}}
        return state

    # --- rules ---

    def _lower_rule(self, rule: dict[str, Any], section: str, index: int, condition: str) -> dict[str, Any]:
        place = format_pointer((section, index))
        gained = _LoweredRule(place, rule.get("params", {}))
        if rule.get("once"):
            self._guard_once(section, rule["id"], None, gained)
        effects = [
            self._lower_effect(effect, number, gained, f"{place}/effects/{number}")
            for number, effect in enumerate(rule["effects"])
        ]
        lowered = {key: value for key, value in rule.items() if key != "once"}
        lowered["effects"] = [*effects, *(effect for effect, _ in gained.effects)]
        for number, (_, owner) in enumerate(gained.effects, start=len(effects)):
            written = f"{place}/once" if owner is None else f"{place}/effects/{owner}"
            self._places[f"{place}/effects/{number}"] = written
        derives = {name: self._lower_logic(logic) for name, logic in rule.get("derives", {}).items()}
        if derives or gained.derives:
            lowered["derives"] = {**derives, **gained.derives}
        logic = self._lower_logic(rule[condition])
        if gained.guards:
            self._places[f"{place}/{condition}/and/{len(gained.guards)}"] = f"{place}/{condition}"
            logic = {"and": [*gained.guards, *([logic] if logic != {} else [])]}
        lowered[condition] = logic
        return lowered

    def _guard_once(self, section: str, name: str, owner: int | None, gained: _LoweredRule) -> None:
        flag = format_path(("state", "hidden", "once", section, name))
        gained.guards.append({"!": [{"var": flag}]})
        gained.effects.append(
            ({"op": "set", "path": flag, "value": gained.derive("true", logic=True)}, owner)
        )

    def _lower_effect(
        self,
        effect: dict[str, Any],
        owner: int,
        gained: _LoweredRule,
        place: str,
    ) -> dict[str, Any]:
        """Return the replacement of an effect at a place; `gained` receives the rest."""
        if effect["op"] == "schedule":
            if effect.get("once"):
                self._guard_once("schedules", effect["id"], owner, gained)
            written = [*gained.texts]
            later = [
                self._lower_effect(inner, owner, gained, f"{place}/effects/{number}")
                for number, inner in enumerate(effect["effects"])
            ]
            gained.texts = written
            return {key: value for key, value in effect.items() if key != "once"} | {"effects": later}
        if effect["op"] == "move":
            return self._lower_move(effect, owner, gained)
        if effect["op"] in STORY_OPERATIONS:
            return self._lower_subject(effect, owner, gained, place)
        return effect

    def _lower_subject(
        self,
        effect: dict[str, Any],
        owner: int,
        gained: _LoweredRule,
        place: str,
    ) -> dict[str, Any]:
        """Lower an effect on a clue, a statement or a promise."""
        key, section = STORY_OPERATIONS[effect["op"]]
        subject = effect[key]
        if isinstance(subject, dict):
            return self._lower_chosen(effect, gained, place)
        if subject not in self._sections[section]:
            return _nothing()
        path = format_path(("state", section, subject))
        entry = self._sections[section][subject]
        if section != "promises":
            text = self._text_by_deal(entry["text"])
            return _set(path, self._derive_text(effect, path, f"{key}:{subject}", text, gained, place))
        return self._lower_promise(effect["op"], subject, path, owner, gained)

    def _lower_chosen(self, effect: dict[str, Any], gained: _LoweredRule, place: str) -> dict[str, Any]:
        """Lower an effect on the clue or statement that a parameter names."""
        key, section = STORY_OPERATIONS[effect["op"]]
        entries, name = self._sections[section], effect[key]["param"]
        options = [option for option in list_subjects(effect[key], gained.params) if option in entries]
        if not options:
            return _nothing()
        texts = {option: self._text_by_deal(entries[option]["text"]) for option in options}
        text = _choose_text({"var": f"params.{name}"}, [*texts.items()])
        path = f"state.{section}[params.{name}]"
        return _set(path, self._derive_text(effect, path, f"{key}s:{name}", text, gained, place))

    def _derive_text(
        self,
        effect: dict[str, Any],
        path: str,
        name: str,
        text: Any,
        gained: _LoweredRule,
        place: str,
    ) -> str:
        """Add the text of a clue or statement, or what is there while the condition of the effect fails.

        Returns:
            The name of the derived value.
        """
        key, section = STORY_OPERATIONS[effect["op"]]
        subject = effect[key]
        if effect.get("when"):
            name = f"when:{len(gained.derives)}"
            pointer = f"{gained.place}/derives/{RESERVED_PREFIX}{name}"
            self._places[pointer] = self._places[f"{pointer}/if/0"] = f"{place}/when"
            present = _present_text(section, subject, path, gained)
            text = {"if": [self._lower_logic(effect["when"]), text, present]}
        derived = gained.derive(name, text)
        gained.texts.append((section, subject, derived))
        return derived

    def _text_by_deal(self, text: Any) -> Any:
        """Return the text of a clue or a statement as an expression; it may depend on a deal."""
        if isinstance(text, str):
            return text
        if not text["texts"] or text["deal"] not in self._deals:
            return ""
        deal = self._deals[text["deal"]]
        values = {dealt_key(value): value for value in deal["values"]}
        pairs = [(values.get(key, key), told) for key, told in text["texts"].items()]
        return _choose_text({"var": deal["path"]}, pairs)

    # --- solutions ---

    def _lower_solutions(self) -> list[dict[str, Any]]:
        """Return the solutions, and one for each value of the deals that the moves of one name."""
        lowered: list[dict[str, Any]] = []
        for index, solution in enumerate(self._spec["solutions"]):
            deals = [self._deals[name] for name in list_dealt_params(solution) if name in self._deals]
            if not deals or prod(len(deal["values"]) for deal in deals) > MAX_SOLUTIONS:
                self._places[f"/solutions/{len(lowered)}"] = f"/solutions/{index}"
                lowered.append(dict(solution))
                continue
            for number, values in enumerate(product(*(deal["values"] for deal in deals))):
                self._places[f"/solutions/{len(lowered)}"] = f"/solutions/{index}"
                dealt = dict(zip((deal["id"] for deal in deals), values, strict=True))
                lowered.append(self._solve_for(solution, number, dealt))
        return lowered

    def _solve_for(self, solution: dict[str, Any], number: int, dealt: dict[str, Any]) -> dict[str, Any]:
        """Return a solution for some values of the deals that its moves name."""
        tests = [{"===": [{"var": self._deals[name]["path"]}, value]} for name, value in dealt.items()]
        tests += [solution["when"]] if solution.get("when") else []
        return {
            "id": f"{solution['id']}:{number}",
            "when": tests[0] if len(tests) == 1 else {"and": tests},
            "steps": [_deal_params(step, dealt) for step in solution["steps"]],
        }

    # --- promises ---

    def _lower_promise(
        self,
        operation: str,
        name: str,
        path: str,
        owner: int,
        gained: _LoweredRule,
    ) -> dict[str, Any]:
        promise = self._sections["promises"][name]
        entry = f"{SCHEDULE_PREFIX}{name}"
        if operation == "promise":
            gained.guards.append({"===": [{"var": path}, ""]})
            broken = [_set(path, gained.derive(BROKEN, BROKEN)), *self._tell(name, BROKEN, gained)]
            due = {"op": "schedule", "id": entry, "after": promise["due"], "effects": broken}
            gained.effects.append((due, owner))
            return _set(path, gained.derive(OPEN, OPEN))
        status = KEPT if operation == "keep" else BROKEN
        gained.guards.append({"===": [{"var": path}, OPEN]})
        # An entry of the same id replaces the one that would break the promise.
        gained.effects.append(({"op": "schedule", "id": entry, "after": 1, "effects": []}, owner))
        gained.effects += [(told, owner) for told in self._tell(name, status, gained)]
        return _set(path, gained.derive(status, status))

    def _tell(self, name: str, status: str, gained: _LoweredRule) -> list[dict[str, Any]]:
        """Return the schedules by which others hear of a promise."""
        return [
            {
                "op": "schedule",
                "id": f"{SCHEDULE_PREFIX}{name}:{hearer['entity']}",
                "after": hearer["after"],
                "effects": [
                    _set(
                        format_path(("state", "private", hearer["entity"], "promises", name)),
                        gained.derive(status, status),
                    ),
                ],
            }
            for hearer in self._sections["promises"][name].get("hears", ())
        ]

    # --- places ---

    def _lower_move(self, effect: dict[str, Any], owner: int, gained: _LoweredRule) -> dict[str, Any]:
        places, entity, to = self._sections["places"], effect["entity"], effect["to"]
        if not places or (isinstance(to, str) and to not in places):
            return _nothing()
        path = (
            format_path(("state", "places", entity))
            if isinstance(entity, str)
            else f"state.places[params.{entity['param']}]"
        )
        present = {"var": path}
        if isinstance(to, str):
            sources = [name for name, place in places.items() if to in place.get("exits", ())]
            gained.guards.append({"in": [present, sources]})
            return _set(path, gained.derive(f"place:{to}", to))
        chosen = {"var": f"params.{to['param']}"}
        ways = [
            {"and": [{"===": [present, name]}, {"in": [chosen, place["exits"]]}]}
            for name, place in places.items()
            if place.get("exits")
        ]
        gained.guards.append({"or": ways} if ways else {"!": [True]})
        return _set(path, gained.derive(f"move:{owner}", chosen))

    # --- conditions ---

    def _lower_logic(self, logic: Any) -> Any:
        """Replace the operators of `CONDITIONS`, but not within iterators, which cannot read the state."""
        if isinstance(logic, list):
            return [self._lower_logic(item) for item in logic]
        if not isinstance(logic, dict):
            return logic
        if len(logic) == 1:
            ((operator, operand),) = logic.items()
            name = _read_operand(operand)
            if operator in CONDITIONS and name is not None and CONDITIONS[operator] in self._spec:
                return self._condition(operator, name)
            if operator in _ITERATORS and isinstance(operand, list):
                lowered = [self._lower_logic(item) for item in operand]
                return {operator: [*lowered[:1], *operand[1:2], *lowered[2:]]}
        return {operator: self._lower_logic(operand) for operator, operand in logic.items()}

    def _condition(self, operator: str, name: str) -> dict[str, Any]:
        entry = self._sections[CONDITIONS[operator]].get(name)
        if entry is None:
            return {"!": [True]}
        seen = {"!!": [{"var": format_path(("state", CONDITIONS[operator], name))}]}
        if operator == "known":
            return seen
        clue = entry.get("broken_by")
        if entry["true"] is True or clue not in self._sections["clues"]:
            return {"!": [True]}
        parts: list[Any] = [seen, self._condition("known", clue)]
        if entry["true"] is not False:
            parts.append({"!": [self._lower_logic(entry["true"])]})
        return {"and": parts}


def _read_operand(operand: Any) -> str | None:
    """Return the id in the operand of a condition, `"id"` or `["id"]`."""
    only = operand[0] if isinstance(operand, list) and len(operand) == 1 else operand
    return only if isinstance(only, str) else None


def iter_conditions(logic: Any, place: str) -> Iterator[tuple[str, str, str]]:
    """Yield the operators of `CONDITIONS` in an expression, with their operands and JSON Pointers."""
    if isinstance(logic, list):
        for index, item in enumerate(logic):
            yield from iter_conditions(item, f"{place}/{index}")
    elif isinstance(logic, dict):
        for operator, operand in logic.items():
            name = _read_operand(operand)
            if operator in CONDITIONS and name is not None:
                yield operator, name, place
            else:
                yield from iter_conditions(operand, f"{place}{format_pointer([operator])}")


def _present_text(section: str, subject: Any, path: str, gained: _LoweredRule) -> Any:
    """Return the text at a path of a clue or statement after the earlier effects of its rule."""
    present: Any = {"var": path}
    for other, written, derived in gained.texts:
        value = {"var": format_path(("derives", derived))}
        if other == section and written == subject:
            present = value
        elif other == section and not (isinstance(written, str) and isinstance(subject, str)):
            pair = [
                one if isinstance(one, str) else {"var": f"params.{one['param']}"}
                for one in (written, subject)
            ]
            present = {"if": [{"===": pair}, value, present]}
    return present


def _choose_text(chosen: dict[str, Any], texts: Sequence[tuple[Any, Any]]) -> Any:
    """Return the text for the value of an expression; the last one is for all other values."""
    *others, (_, last) = texts
    tested = [part for value, told in others for part in ({"===": [chosen, value]}, told)]
    return {"if": [*tested, last]} if tested else last


def _deal_params(move: dict[str, Any], dealt: Mapping[str, Any]) -> dict[str, Any]:
    """Return a move of a solution with the values of deals in the place of their names."""
    changed = dict(move)
    if "params" in move:
        changed["params"] = {
            name: dealt.get(value["deal"], value) if isinstance(value, dict) else value
            for name, value in move["params"].items()
        }
    if isinstance(move.get("otherwise"), dict):
        changed["otherwise"] = _deal_params(move["otherwise"], dealt)
    return changed


def _set(path: str, value: str) -> dict[str, Any]:
    return {"op": "set", "path": path, "value": value}


def _nothing() -> dict[str, Any]:
    """Return the replacement of an effect that refers to nothing."""
    return {"op": "addlog", "message": "-"}


def _as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
