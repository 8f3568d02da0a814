"""Specifications with planted defects, mutations and schema violations."""

from __future__ import annotations

import copy
import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from support.engine.seeded_specs import random_logic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from random import Random

    Schema = Mapping[str, Any]

    Break = tuple[str, Any]


Json = dict[str, Any]

# A number of the state that no rule of the specification knows.
_SPOT = "planted"
_PATH = f"state.{_SPOT}"
_READ = {"var": _PATH}
_HORIZON = 50  # where a specification names none


def plant(document: bytes, defect: str, random: Random) -> tuple[bytes, frozenset[str]]:
    """A copy of a specification with a defect, and the codes of which a checker should give one."""
    spec = {"horizon": _HORIZON, **deepcopy(json.loads(document))}
    make, codes = DEFECTS[defect]
    make(spec, random)
    return json.dumps(spec).encode(), codes


def _start(spec: Json, value: Any) -> None:
    spec["state"][_SPOT] = value


def _event(spec: Json, *effects: Json, weight: float = 0.3, when: Json | None = None, **more: Any) -> None:
    event = {"id": _SPOT, "weight": weight, "when": when or {}, "effects": list(effects), **more}
    spec["random_events"].append(event)


def _action(spec: Json, *effects: Json, **more: Any) -> None:
    action = {"id": _SPOT, "params": {}, "preconditions": {}, "effects": list(effects), **more}
    spec["actions"].append(action)


def _loss(spec: Json, when: Json) -> None:
    spec["loss_conditions"].append({"id": _SPOT, "when": when})


def _narrow(rule: Json, key: str, clause: Json) -> None:
    rule[key] = {"and": [rule[key], clause]} if rule[key] else clause


def _rising(amount: float) -> Json:
    return {"op": "inc", "path": _PATH, "value": amount}


# --- rules that can never do what they are there for ---


def _goal_out_of_reach(spec: Json, random: Random) -> None:
    _start(spec, 0)
    step = random.randint(1, 5)
    random.choice(spec["actions"])["effects"].append(_rising(step))
    target = _horizon_of(spec) * step + random.randint(1, 50)
    spec["win_conditions"] = [{"id": "goal", "when": {">=": [_READ, target]}}]


def _goal_behind_a_wall(spec: Json, random: Random) -> None:
    """Stop raising a value before it is enough."""
    _start(spec, 0)
    wall = random.randint(3, 6)
    _action(spec, _rising(1), preconditions={"<": [_READ, wall]})
    spec["win_conditions"] = [{"id": "goal", "when": {">": [_READ, wall]}}]


def _loss_that_cannot_happen(spec: Json, random: Random) -> None:
    _start(spec, random.randint(0, 9))
    random.choice(spec["actions"])["effects"].append(_rising(random.randint(1, 3)))
    _loss(spec, {"<": [_READ, -1]})


def _certain_loss(spec: Json, random: Random) -> None:
    turns = random.randint(2, max(2, _horizon_of(spec) // 2))
    _start(spec, turns)
    spec["negativity_budget"].setdefault("decay_per_turn", {})[_PATH] = 1
    _loss(spec, {"<=": [_READ, 0]})
    spec.pop("win_conditions", None)


def _lost_at_once(spec: Json, _random: Random) -> None:
    _loss(spec, {">=": [{"var": "turn"}, 1]})


def _dead_action(spec: Json, random: Random) -> None:
    _start(spec, random.randint(0, 4))
    _action(spec, _rising(1), preconditions={">": [_READ, 5]})


def _dead_choice(spec: Json, random: Random) -> None:
    """An action of two clauses that contradict each other."""
    _start(spec, 5)
    edge = random.randint(2, 8)
    _action(spec, _rising(1), preconditions={"and": [{">": [_READ, edge]}, {"<": [_READ, edge]}]})
    _event(spec, {"op": "dec", "path": _PATH, "value": 1})


def _dead_event(spec: Json, random: Random) -> None:
    _start(spec, random.randint(0, 4))
    _event(spec, _rising(1), when={">": [_READ, 5]})


# --- rules that do too much, or fail ---


def _runaway_growth(spec: Json, random: Random) -> None:
    _start(spec, 1)
    _event(spec, {"op": "mul", "path": _PATH, "value": random.choice([1e3, 1e6, 1e9])})
    _slow_end(spec)


def _retyped_number(spec: Json, _random: Random) -> None:
    _start(spec, 1)
    _event(spec, {"op": "set", "path": _PATH, "value": "many"})
    _action(spec, _rising(1))
    _slow_end(spec)


def _division_by_zero(spec: Json, random: Random) -> None:
    _start(spec, random.randint(1, 3))
    _event(spec, {"op": "dec", "path": _PATH, "value": 1}, when={">": [_READ, 0]})
    _action(spec, {"op": "addlog", "message": "a"}, preconditions={">": [{"/": [1, _READ]}, -9]})
    _slow_end(spec)


def _empty_array(spec: Json, random: Random) -> None:
    _start(spec, [1] * random.randint(0, 2))
    _event(spec, {"op": "pop", "path": _PATH})
    _slow_end(spec)


def _missing_element(spec: Json, _random: Random) -> None:
    _start(spec, [1])
    _event(spec, {"op": "inc", "path": f"{_PATH}[1]", "value": 1})
    _slow_end(spec)


def _horizon_of(spec: Json) -> int:
    turns: int = spec.get("horizon", 50)
    return turns


def _slow_end(spec: Json) -> None:
    """Give the runs time to come to the rule."""
    spec["horizon"] = max(_horizon_of(spec), 40)


# --- balance ---


def _too_easy(spec: Json, _random: Random) -> None:
    spec["negativity_budget"].update(min_fail_rate=1.0)
    spec["negativity_budget"].pop("max_fail_rate", None)
    spec["win_conditions"] = [{"id": "goal", "when": {">=": [{"var": "turn"}, 2]}}]


def _too_hard(spec: Json, random: Random) -> None:
    spec["negativity_budget"].update(min_fail_rate=0.01, max_fail_rate=0.05)
    _start(spec, 0)
    _event(spec, _rising(1))
    _loss(spec, {">=": [_READ, random.randint(1, 2)]})


def _positive_drift(spec: Json, random: Random) -> None:
    _start(spec, 10)
    spec["negativity_budget"].setdefault("decay_per_turn", {})[_PATH] = -random.randint(2, 9)
    _event(spec, {"op": "dec", "path": _PATH, "value": 3})
    _loss(spec, {"<=": [_READ, 0]})


def _dominant_action(spec: Json, random: Random) -> None:
    """Let everything depend on what one free action sustains."""
    _start(spec, 1.5)
    spec["negativity_budget"]["decay_per_turn"] = {_PATH: 1}
    _action(spec, _rising(1))
    _event(spec, {"op": "dec", "path": _PATH, "value": 1}, weight=random.choice([0.05, 0.1]))
    spec["loss_conditions"] = [
        {"id": "low", "when": {"<=": [_READ, 0]}},
        {"id": "lower", "when": {"<=": [_READ, -1]}},
    ]
    spec.pop("win_conditions", None)
    _slow_end(spec)


def _idle_choices(spec: Json, _random: Random) -> None:
    """Nothing that can be done does anything, and chance decides."""
    note = {"op": "addlog", "message": "a"}
    spec["actions"] = [{"id": "a", "params": {}, "preconditions": {}, "effects": [note]}]
    spec.pop("win_conditions", None)
    _start(spec, 4)
    _event(spec, {"op": "dec", "path": _PATH, "value": 1}, weight=0.1)
    _loss(spec, {"<=": [_READ, 0]})


# --- what no run is needed for ---


def _unknown_path(spec: Json, random: Random) -> None:
    random.choice(spec["actions"])["effects"].append({"op": "inc", "path": "state.nowhere.at", "value": 1})


def _unknown_variable(spec: Json, random: Random) -> None:
    _narrow(random.choice(spec["random_events"]), "when", {">": [{"var": "state.nowhere"}, 1]})


def _wrong_arity(spec: Json, random: Random) -> None:
    _narrow(random.choice(spec["actions"]), "preconditions", {">": [1]})


def _unknown_operator(spec: Json, random: Random) -> None:
    _narrow(random.choice(spec["actions"]), "preconditions", {"beside": [1, 2]})


def _circle(spec: Json, random: Random) -> None:
    rule = random.choice(spec["actions"])
    one, other = {"+": [{"var": "derives.y"}, 1]}, {"+": [{"var": "derives.x"}, 1]}
    rule.setdefault("derives", {}).update(x=one, y=other)


def _code_in_a_value(spec: Json, _random: Random) -> None:
    _start(spec, [1])
    _action(spec, {"op": "push", "path": _PATH, "value": {"+": [1, 2]}})


def _heavy_event(spec: Json, random: Random) -> None:
    random.choice(spec["random_events"])["weight"] = random.choice([0.31, 0.5, 1, 0.01])


def _one_loss(spec: Json, _random: Random) -> None:
    del spec["loss_conditions"][1:]


def _no_budget(spec: Json, _random: Random) -> None:
    spec["negativity_budget"]["min_fail_rate"] = 0


def _same_id(spec: Json, random: Random) -> None:
    section = random.choice(["actions", "random_events", "loss_conditions"])
    spec[section].append(deepcopy(spec[section][0]))


def _unknown_key(spec: Json, random: Random) -> None:
    random.choice(spec["actions"])["power"] = 1


DEFECTS: dict[str, tuple[Callable[[Json, Random], None], frozenset[str]]] = {
    "a goal out of reach": (_goal_out_of_reach, frozenset({"UNREACHABLE_WIN"})),
    "a goal behind a wall": (_goal_behind_a_wall, frozenset({"UNREACHABLE_WIN"})),
    "a loss that cannot happen": (_loss_that_cannot_happen, frozenset({"IMPOSSIBLE_LOSS"})),
    "a certain loss": (_certain_loss, frozenset({"CERTAIN_LOSS"})),
    "lost at once": (_lost_at_once, frozenset({"CERTAIN_LOSS", "LOST_AT_ONCE"})),
    "a dead action": (_dead_action, frozenset({"DEAD_ACTION"})),
    "a choice that contradicts itself": (_dead_choice, frozenset({"DEAD_ACTION"})),
    "a dead event": (_dead_event, frozenset({"DEAD_EVENT"})),
    "runaway growth": (_runaway_growth, frozenset({"RUNAWAY_GROWTH"})),
    "a number that becomes text": (_retyped_number, frozenset({"TYPE_ERROR", "TYPE_MISMATCH"})),
    "a division by zero": (_division_by_zero, frozenset({"TYPE_ERROR", "DIVISION_BY_ZERO"})),
    "an array that is empty": (_empty_array, frozenset({"TYPE_ERROR", "EMPTY_ARRAY"})),
    "an element that is missing": (_missing_element, frozenset({"TYPE_ERROR", "MISSING_PATH"})),
    "too easy": (_too_easy, frozenset({"TOO_EASY"})),
    "too hard": (_too_hard, frozenset({"TOO_HARD"})),
    "positive drift": (_positive_drift, frozenset({"POSITIVE_DRIFT"})),
    "a dominant action": (_dominant_action, frozenset({"DOMINANT_ACTION"})),
    "choices that do not matter": (_idle_choices, frozenset({"CHOICES_DO_NOT_MATTER"})),
    "an unknown path": (_unknown_path, frozenset({"UNKNOWN_PATH", "MISSING_PATH"})),
    "an unknown variable": (_unknown_variable, frozenset({"UNKNOWN_PATH"})),
    "a wrong number of arguments": (_wrong_arity, frozenset({"WRONG_ARITY"})),
    "an unknown operator": (_unknown_operator, frozenset({"UNKNOWN_OPERATOR"})),
    "a circle of derived values": (_circle, frozenset({"DERIVE_CYCLE"})),
    "code in a value": (_code_in_a_value, frozenset({"CODE_IN_VALUE"})),
    "a weight out of bounds": (_heavy_event, frozenset({"OUT_OF_RANGE"})),
    "a single loss": (_one_loss, frozenset({"TOO_SHORT"})),
    "no budget": (_no_budget, frozenset({"OUT_OF_RANGE"})),
    "the same id twice": (_same_id, frozenset({"DUPLICATE_ID"})),
    "an unknown key": (_unknown_key, frozenset({"UNKNOWN_KEY"})),
}


_OF_TYPE = {
    "string": "x",
    "number": 0.5,
    "integer": 1,
    "boolean": True,
    "object": {},
    "array": [],
    "null": None,
}


def constraints(schema: Schema) -> Iterator[str]:
    """Yield a label for each keyword at each place of the schema: each is one thing the schema forbids."""
    pending: list[tuple[str, Any]] = [("#", schema)]
    while pending:
        place, node = pending.pop()
        if not isinstance(node, dict):
            continue
        for keyword in _BROKEN:
            if keyword in node and (keyword != "additionalProperties" or node[keyword] is False):
                yield f"{place}/{keyword}"
        for key, inner in _children(node):
            pending.append((f"{place}/{key}", inner))


def _children(node: Schema) -> Iterator[tuple[str, Any]]:
    for keyword in ("properties", "$defs"):
        yield from ((f"{keyword}/{name}", inner) for name, inner in node.get(keyword, {}).items())
    for keyword in ("oneOf", "anyOf"):
        yield from ((f"{keyword}/{index}", inner) for index, inner in enumerate(node.get(keyword, [])))
    for keyword in ("items", "additionalProperties"):
        if keyword in node:
            yield keyword, node[keyword]


def breaks(schema: Schema, value: Any) -> Iterator[Break]:
    """Values that break one constraint each, with its label."""
    yield from _Breaker(schema).of("#", schema, value)


class _Breaker:
    """Walks a schema beside a value that fits it."""

    def __init__(self, root: Schema) -> None:
        self.root = root

    def of(self, place: str, schema: Schema, value: Any) -> Iterator[Break]:
        if "$ref" in schema:
            name = schema["$ref"].removeprefix("#/$defs/")
            yield from self.of(f"#/$defs/{name}", self.root["$defs"][name], value)
            return
        for keyword in ("oneOf", "anyOf"):
            yield from self._of_choice(f"{place}/{keyword}", schema.get(keyword, []), value)
        for keyword in _BROKEN:
            if keyword in schema:
                for broken in _broken(keyword, schema[keyword], value):
                    yield f"{place}/{keyword}", broken
        for key, where, inner in _parts(schema, value):
            for label, broken in self.of(f"{place}/{where}", inner, value[key]):
                changed = copy.copy(value)
                changed[key] = broken
                yield label, changed

    def _of_choice(self, place: str, branches: list[Schema], value: Any) -> Iterator[Break]:
        for index, branch in enumerate(branches):
            if self._names(branch, value):
                for label, broken in self.of(f"{place}/{index}", branch, value):
                    if not any(self._names(other, broken) for other in branches if other is not branch):
                        yield label, broken

    def _names(self, branch: Schema, value: Any) -> bool:
        """Return True if a value has the type and the operation of a branch."""
        if "$ref" in branch:
            branch = self.root["$defs"][branch["$ref"].removeprefix("#/$defs/")]
        if not _is_of(branch.get("type", "object"), value) or (
            "enum" in branch and value not in branch["enum"]
        ):
            return False
        operation = branch.get("properties", {}).get("op", {}).get("const")
        return operation is None or value.get("op") == operation


def _is_of(kind: str, value: Any) -> bool:
    if isinstance(value, bool) or value is None:
        return kind == ("boolean" if value is not None else "null")
    if isinstance(value, int | float):
        return kind == "number" or (kind == "integer" and value == int(value))
    return (kind, type(value)) in {("string", str), ("array", list), ("object", dict)}


def _parts(schema: Schema, value: Any) -> Iterator[tuple[Any, str, Schema]]:
    """Each part of a value: its key or index, and where in the schema which schema is for it."""
    if isinstance(value, list):
        yield from ((index, "items", schema.get("items", {})) for index in range(len(value)))
    elif isinstance(value, dict):
        known = schema.get("properties", {})
        for key in value:
            if key in known:
                yield key, f"properties/{key}", known[key]
            else:
                yield key, "additionalProperties", schema.get("additionalProperties") or {}


def _broken(keyword: str, limit: Any, value: Any) -> list[Any]:
    """Values that break one keyword of a schema."""
    if keyword == "additionalProperties" and limit is not False:
        return []
    return _BROKEN[keyword](limit, value)


def _other_types(kind: str, value: Any) -> list[Any]:
    others = [copy.deepcopy(other) for other in _OF_TYPE.values() if not _is_of(kind, other)]
    return [*others, value + 0.5] if kind == "integer" else others


_BROKEN: dict[str, Callable[[Any, Any], list[Any]]] = {
    "type": _other_types,
    "const": lambda _, value: ["", f"{value}x"],
    "enum": lambda _, value: ["", f"{value}x"],
    "pattern": lambda _, __: ["-a", "é", "a b", "a\n", "a/b", ".a", "aé", "a\u0000"],
    "minLength": lambda least, _: ["x" * length for length in range(least)],
    "maxLength": lambda most, _: ["x" * (most + 1), "é" * (most + 1)],
    "minimum": lambda least, _: [least - 1, least - 1e-9],
    "exclusiveMinimum": lambda least, _: [least, least - 1],
    "maximum": lambda most, _: [most + 1, most * 1.5, 1e300],
    "minItems": lambda least, value: [value[:length] for length in range(least)],
    "maxItems": lambda most, value: [[*value, *[copy.deepcopy(value[-1])] * most]],
    "maxProperties": lambda most, value: [
        {**value, **{f"k{index}": next(iter(value.values())) for index in range(most)}},
    ],
    "required": lambda keys, value: [
        {key: item for key, item in value.items() if key != missing} for missing in keys
    ],
    "additionalProperties": lambda _, value: [{**value, key: None} for key in ("zz", "", "id ")],
}


# A container, and the key or index of a number in it.
_Place = tuple[Any, Any]

_FACTORS = (-1, 0, 0.1, 0.3, 0.5, 0.8, 1.25, 2, 3, 10, 1_000)
_WEIGHTS = (*([0.05, 0.15, 0.3] * 10), 0.31)
_LEAST_RATES = (0.01, 1, 0, 1.5)
_WIDTHS = (0.04, 0.1, 0.2, 0.4)
_DRIFTS = (0, 0.01, 0.2, 1)
_HORIZONS = (1, 2, 5, 10, 30, 100, 0)


def with_spoiled_numbers(random: Random, document: bytes) -> bytes:
    """Return a copy in which some numbers differ; the result may be just as good."""
    spec = json.loads(document)
    for change in random.choices(_NUMBER_CHANGES, k=random.choice((1, 2, 2, 3, 5))):
        change(random, spec)
    return json.dumps(spec).encode()


def _any_number(random: Random, spec: Any) -> None:
    container, key = random.choice(list(_numbers(spec)))
    container[key] = _tidy(container[key] * random.choice(_FACTORS))


def _all_of_a_section(random: Random, spec: Any) -> None:
    """As if an author had misjudged a whole kind of rule."""
    factor = random.choice(_FACTORS)
    section = random.choice(["state", "actions", "random_events", "loss_conditions"])
    for container, key in list(_numbers(spec[section])):
        if key != "weight":
            container[key] = _tidy(container[key] * factor)


def _weights(random: Random, spec: Any) -> None:
    for event in spec["random_events"]:
        event["weight"] = random.choice(_WEIGHTS)


def _decay(random: Random, spec: Any) -> None:
    decay = spec["negativity_budget"].setdefault("decay_per_turn", {})
    factor = random.choice(_FACTORS)
    for path in decay:
        decay[path] = _tidy(decay[path] * factor)


def _band(random: Random, spec: Any) -> None:
    least = round(random.random(), 2) if random.random() < 0.8 else random.choice(_LEAST_RATES)
    spec["negativity_budget"]["min_fail_rate"] = least
    if random.random() < 0.6:
        spec["negativity_budget"]["max_fail_rate"] = _tidy(least + random.choice(_WIDTHS))


def _drift(random: Random, spec: Any) -> None:
    spec["negativity_budget"]["max_positive_drift"] = random.choice(_DRIFTS)


def _other_horizon(random: Random, spec: Any) -> None:
    spec["horizon"] = random.choice(_HORIZONS)


_NUMBER_CHANGES: tuple[Callable[[Random, Any], None], ...] = (
    _any_number,
    _any_number,
    _all_of_a_section,
    _all_of_a_section,
    _weights,
    _decay,
    _band,
    _band,
    _drift,
    _other_horizon,
)


def _numbers(value: Any) -> Iterator[_Place]:
    for key in value if isinstance(value, dict) else range(len(value)):
        item = value[key]
        if isinstance(item, dict | list):
            yield from _numbers(item)
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield value, key


def _tidy(number: float) -> float:
    rounded = round(number, 4)
    return int(rounded) if rounded == int(rounded) else rounded


# A container, and the key or index of something in it.
Place = tuple[Any, Any]

_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    0.5,
    1e9,
    1e300,
    -1e300,
    2**53 - 1,
    "",
    "x",
    "state",
    "state.n0",
    "a0",
    "e0",
    "turn",
    "1h",
    "0h",
    "P1D",
    "set",
    "inc",
    "pop",
    "schedule",
    "{{x}}",
    "${x}",
    [],
    [1],
    {},
    {"a": 1},
    {"+": [1, 2]},
    {"var": "state.n0"},
    {"missing": [""]},
    "é" * 70,
    "x" * 300,
    "x" * 11_000,
)
_KEYS = (
    "id",
    "name",
    "op",
    "path",
    "value",
    "effects",
    "at",
    "after",
    "when",
    "derives",
    "params",
    "private",
    "enum",
    "minimum",
    "maximum",
    "maxLength",
    "duration",
    "message",
    "description",
    "max_fail_rate",
    "horizon",
    "zz",
    "",
    "__proto__",
    "constructor",
    "var",
    "+",
    "map",
    "é",
    "\ufb33",
    "😀",
    "x" * 300,
)
_PATHS = (
    "state",
    "state.n0",
    "state.n1",
    "state.zz",
    "state.zz.y",
    "state.items[0]",
    "state.items[7]",
    "state.items[7].x",
    "state.items",
    "state.words.0",
    "state.tree",
    "state.tree.n",
    'state.tree["odd key"]',
    'state["n0"]',
    "state.n0.x",
    "params.m",
    "params.zz",
    "params[0]",
    "derives.d0",
    "derives.zz",
    "entities.0",
    "turn",
    "state.",
    "state[",
    "",
    "x.y",
    "state.made",
    "state.tree.made",
    "state.__proto__",
    'state["prototype"]',
    "state.items.007",
    "[0]",
    'state["\\u0061"]',
    "state." + "x" * 257,
    "state" + ".x" * 260,
    "state.items[12345678901]",
    "state.rows[0].n",
)
_TYPOS = (
    "+",
    "-",
    "<",
    "==",
    "and",
    "if",
    "var",
    "missing",
    "missing_some",
    "map",
    "reduce",
    "none",
    "substr",
    "xor",
)


def spoiled(random: Random, spec: Any) -> Any:
    """A copy with a few changes, which need not do harm."""
    changed = copy.deepcopy(spec)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = list(_places(changed))
        random.choice(_SPEC_CHANGES)(random, random.choice(places))
    return changed


def spoiled_bytes(random: Random, document: bytes) -> bytes:
    """A document with a byte or a stretch of it changed, or spelled in another way."""
    at, end = sorted(random.randrange(len(document) + 1) for _ in range(2))
    stray = random.choice((b" ", b"\n\t", b"0", b",", b'"', b"\xed\xa0\x80", bytes([random.randrange(256)])))
    number = random.choice((b"1.0", b"1e0", b"10e-1", b"01", b"-0", b"1.5", b"1e400"))
    changed: tuple[Callable[[], bytes], ...] = (
        lambda: document[:at],
        lambda: document[:at] + document[at + 1 :],
        lambda: document[:at] + stray + document[at + 1 :],
        lambda: document[:at] + stray + document[at:],
        lambda: document[:at] + document[at : min(end, at + 40)] * 2 + document[end:],
        lambda: document.replace(b":", b" : ").replace(b'"id"', b'"\\u0069d"'),
        lambda: document.replace(b"1", number, 3),
        lambda: json.dumps(json.loads(document), indent=1, sort_keys=True).encode(),
        lambda: document + stray,
    )
    return random.choice(changed)()


def _places(value: Any) -> Iterator[Place]:
    pending = [value]
    while pending:
        container = pending.pop()
        for key in container if isinstance(container, dict) else range(len(container)):
            yield container, key
            if isinstance(container[key], dict | list):
                pending.append(container[key])


def _remove(_random: Random, place: Place) -> None:
    container, key = place
    del container[key]


def _rename(random: Random, place: Place) -> None:
    container, key = place
    if isinstance(container, dict):
        container[random.choice((*_KEYS, *_TYPOS, f"{key}x"))] = container.pop(key)


def _replace(random: Random, place: Place) -> None:
    container, key = place
    container[key] = copy.deepcopy(random.choice(_VALUES))


def _vary(random: Random, place: Place) -> None:
    """Another value of the same kind."""
    container, key = place
    value = container[key]
    if isinstance(value, bool) or value is None:
        container[key] = not value
    elif isinstance(value, int | float):
        container[key] = random.choice(
            (-value, value + 1, value * 1000, value / 7, 0, 1, 0.3, 0.31, 1_000_001),
        )
    elif isinstance(value, str):
        container[key] = random.choice(_PATHS)
    elif isinstance(value, list):
        value.extend(copy.deepcopy(value[:1]) * random.choice((1, 2, 300)))
    else:
        value[random.choice(_KEYS)] = copy.deepcopy(random.choice(_VALUES))


def _think(random: Random, place: Place) -> None:
    container, key = place
    container[key] = random_logic(random, 3)


def _nest(random: Random, place: Place) -> None:
    container, key = place
    for _ in range(random.choice((1, 4, 30, 60, 70))):
        container[key] = random.choice((lambda v: [v], lambda v: {"!": [v]}, lambda v: {"a": v}))(
            container[key],
        )


def _copy(random: Random, place: Place) -> None:
    """Something from elsewhere in the same container."""
    container, key = place
    others = list(container) if isinstance(container, dict) else range(len(container))
    container[key] = copy.deepcopy(container[random.choice(list(others))])


_SPEC_CHANGES: tuple[Callable[[Random, Place], None], ...] = (
    _remove,
    _rename,
    _replace,
    _vary,
    _vary,
    _think,
    _nest,
    _copy,
)
