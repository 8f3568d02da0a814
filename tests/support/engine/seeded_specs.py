"""Random scenario specifications and JSONLogic from a seed: fast, without shrinking."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

from peripety.engine._reference.jsonlogic_operators import OPERATORS
from peripety.engine.paths import format_path, lookup, parse_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


NAMES = ("", "a", "b", "1", "é", "😀", "\ufb33", "odd key")
PATHS = (
    *NAMES,
    *(
        "a.b",
        "a.0",
        "a[0]",
        'a["odd key"]',
        "a[",
        "[0]",
        ".",
        "a..b",
        "00",
        "current",
        "accumulator",
        "accumulator.a",
    ),
)
NUMBER_LIKE = (
    "0",
    " 2 ",
    "-0",
    ".5",
    "5.",
    "1e3",
    "1e999",
    "0x1",
    "inf",
    "1_0",
    "\xa01",
    "٣",
    "12",
    "+1",
    "1e-7",
)
_NUMBERS = (0, -0.0, 1, 2, 3, -1, 0.5, 0.1, 1e21, 1e-7, 1.7e308, 5e-324, 2.0**53 - 1, 100, -2.5, 1 / 3)
_SCALARS = (None, True, False, *_NUMBERS, *_NUMBERS, *PATHS, *NUMBER_LIKE)
_OPERATORS = tuple(sorted(OPERATORS))
_FOLDS: tuple[Any, ...] = (
    {"+": [{"var": "current"}, {"var": "accumulator"}]},
    {"cat": [{"var": "accumulator"}, {"var": "accumulator"}, "é"]},
    {"merge": [{"var": "accumulator"}, {"var": "accumulator"}]},
    [{"var": "accumulator"}],
    {"var": ""},
    {"max": [{"var": "current"}, {"var": "accumulator"}]},
)
_LONG = ("y" * 1500, [0] * 70, [[1, 2]] * 40, "é" * 400)


def random_data(random: Random, depth: int = 3) -> Any:
    """A JSON value."""
    kind = random.random()
    if depth == 0 or kind < 0.4:
        return random.choice(_SCALARS)
    if kind < 0.45:
        return random.choice(_LONG)
    if kind < 0.7:
        return [random_data(random, depth - 1) for _ in range(random.randint(0, 4))]
    return {random.choice(NAMES): random_data(random, depth - 1) for _ in range(random.randint(0, 4))}


def random_logic(random: Random, depth: int = 4) -> Any:
    """Return an expression, or sometimes a value that is not one."""
    kind = random.random()
    if depth == 0 or kind < 0.12:
        return random.choice(_SCALARS)
    if kind < 0.27:
        return {"var": random.choice(PATHS)}
    if kind < 0.32:
        return [random_logic(random, depth - 1) for _ in range(random.randint(0, 3))]
    if kind < 0.35:
        return {
            random.choice(("nope", "+", "var", "x" * 50)): random_data(random, 1)
            for _ in range(random.randint(0, 2))
        }
    if kind < 0.40:
        return {
            "reduce": [
                random_logic(random, depth - 1),
                random.choice(_FOLDS),
                random.choice((0, "", [], None)),
            ],
        }
    return {random.choice(_OPERATORS): _operand(random, depth - 1)}


def _operand(random: Random, depth: int) -> Any:
    if random.random() < 0.15:
        return random_logic(random, depth)
    count = random.choice((0, 1, 2, 2, 2, 3, 3, 4))
    return [random_logic(random, depth) for _ in range(count)]


Json = dict[str, Any]


@dataclass(frozen=True)
class _Shape:
    """Contents of a scenario. A range is (fewest, most); a number is a probability."""

    numbers: tuple[int, int] = (2, 6)
    flags: tuple[int, int] = (0, 0)
    texts: tuple[int, int] = (0, 0)
    arrays: bool = False
    objects: bool = False
    actions: tuple[int, int] = (1, 5)
    events: tuple[int, int] = (0, 5)
    params: float = 0.2
    derives: float = 0.3
    schedules: float = 0.0
    lasting: float = 0.1
    slips: float = 0.0
    growth: float = 0.0
    habits: float = 0.12
    horizons: Sequence[int] = (1, 3, 12, 50)
    ends_at_once: float = 0.0


SHAPES: dict[str, _Shape] = {
    "numeric": _Shape(),
    "wide": _Shape(numbers=(40, 200), actions=(4, 60), events=(2, 20)),
    "words": _Shape(flags=(1, 3), texts=(1, 3), habits=0.3),
    "arrays": _Shape(flags=(0, 1), texts=(0, 1), arrays=True),
    "objects": _Shape(flags=(0, 1), texts=(0, 1), objects=True, derives=0.5, habits=0.3),
    "params": _Shape(flags=(0, 2), texts=(0, 2), params=0.9),
    "derives": _Shape(flags=(0, 2), texts=(0, 1), arrays=True, params=0.5, derives=1.0),
    "schedules": _Shape(flags=(0, 1), arrays=True, schedules=0.5),
    "lasting": _Shape(events=(3, 9), lasting=0.8),
    "failing": _Shape(
        flags=(0, 1),
        texts=(0, 2),
        arrays=True,
        objects=True,
        params=0.4,
        slips=0.25,
        habits=0.3,
    ),
    "many": _Shape(flags=(0, 2), texts=(0, 1), actions=(20, 60), events=(0, 20)),
    "long": _Shape(flags=(0, 1), horizons=(200, 1000)),
    "short": _Shape(horizons=(1, 2), ends_at_once=0.6),
    "growing": _Shape(
        texts=(1, 2),
        arrays=True,
        objects=True,
        schedules=0.2,
        growth=0.5,
        derives=0.7,
        horizons=(30, 60),
    ),
    "mixed": _Shape(
        flags=(0, 3),
        texts=(0, 3),
        arrays=True,
        objects=True,
        params=0.4,
        derives=0.4,
        schedules=0.2,
        lasting=0.4,
        slips=0.05,
        growth=0.02,
        habits=0.3,
        ends_at_once=0.02,
    ),
}
_NAMES = tuple(SHAPES)

# Features that fast executors may leave to slow ones. A scenario has each of them throughout or not at all:
# spread over all scenarios they would leave nothing for the fast executors.
_HABITS = ("creating", "retyping", "mixing", "defaulting", "missing", "cat", "substr", "merge", "listing")

_SMALL = (0, 1, 2, 3, 4, 5, 7, 10, -1, -2, -5, 0.5, 0.1, 2.5, 0.25, 1 / 3)
_EXTREME = (1e16, 1e-7, 1e155, -1e155, 1.7e308, -1.7e308, 5e-324, 2**53 - 1, 0.1 + 0.2)
_TEXTS = ("", "x", "low", "high", "é😀", "0", "12", " 3 ", "1e3", "d0", "\ufb33", "a,b")
_KEYS = ("p", "q", "n", "é", "odd key", "0")
_DURATIONS = ("1h", "2h", "3h", "5h", "12h", "P1D", "PT90M", "1d12h", "7d/12h", "30m", "P1W")
_CLOCKS = ("1h", "1h", "1h", "12h", "1d", "P1W", "45m")
_ITERATORS = ("map", "filter", "all", "some", "none")
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=", "===", "!==")


@dataclass(frozen=True)
class _Scope:
    """The paths that an expression may read, by the kind of their initial value."""

    paths: dict[str, list[str]]
    inside: bool = False

    def adding(self, kind: str, path: str) -> _Scope:
        return replace(self, paths={**self.paths, kind: [*self.paths.get(kind, []), path]})


def random_spec(
    seed: int | Random,
    *,
    shape: str | None = None,
    later: bool = False,
    story: float = 0.4,
) -> Json:
    """The scenario of a seed or generator; of a shape of `SHAPES`, or of one that it chooses.

    With `later` it is of version 1.1, half of them with solutions, with lowered keys in a share of `story`.
    """
    random = seed if isinstance(seed, Random) else Random(seed)
    name = random.choice(_NAMES) if shape is None else shape
    spec = _Author(random, SHAPES[name]).spec()
    if not later:
        return spec
    spec = later_version(random, spec)
    if random.random() < story:
        spec = _Story(random, spec).spec()
    if random.random() < 0.5:
        deals = spec.get("deal", [])
        spec["solutions"] = [
            {"id": f"s{number}", **_some_when(random, deals), "steps": _steps(random, spec)}
            for number in range(random.randint(1, 3))
        ]
    return spec


def later_version(random: Random, spec: Json) -> Json:
    """Return a scenario as one of version 1.1, with some of its keys; the parts are shared."""
    writes = [*_iter_writes([*spec["actions"], *spec["random_events"]])]
    numbers = [path for path, value in _iter_members(spec["state"]) if _is_number(value)]
    bounds = {path: _limits(random, _value_at(spec["state"], path)) for path in _some(random, numbers, 4)}
    bounds = {path: limit for path, limit in bounds.items() if not _conflicts(path, writes)}
    places = [path for path, _ in _iter_members(spec["state"])]
    deals: list[Json] = []
    for path in _some(random, places, 3):
        value = _value_at(spec["state"], path)
        apart = not any(_overlap(path, deal["path"]) for deal in deals)
        if apart and not any(_overlap(path, bounded) and path != bounded for bounded in bounds):
            values = [_like(random, value, mixes=path not in bounds) for _ in range(random.randint(2, 5))]
            deals.append({"id": f"d{len(deals)}", "path": path, "values": values})
    later = {**spec, "spec_version": "1.1", "bounds": bounds, "deal": deals}
    if random.random() < 0.5:
        later["actions"] = [
            action if random.random() < 0.6 else _by_param(random, spec["state"], action)
            for action in spec["actions"]
        ]
    if random.random() < 0.5:
        later["premise"] = random.choice(("x", {"text": "x" * 2000, "tense": "past"}))
        later["epilogues"] = {spec["loss_conditions"][0]["id"]: "low"}
        later["labels"] = {path: {"name": "high", "bands": [{"word": "low"}]} for path in places[:1]}
        later["entities"] = [{**entity, "secret": "low"} for entity in spec.get("entities", [])]
    return {key: value for key, value in later.items() if value or key not in {"bounds", "deal"}}


def _some_when(random: Random, deals: list[Json]) -> Json:
    """Return the condition of a solution: none, or one about a scalar of a deal."""
    scalars = [
        (deal["path"], value)
        for deal in deals
        for value in deal["values"]
        if not isinstance(value, dict | list)
    ]
    if not scalars or random.random() < 0.5:
        return {}
    path, value = random.choice(scalars)
    return {"when": {"==": [{"var": ".".join(str(part) for part in parse_path(path))}, value]}}


def _steps(random: Random, spec: Json) -> list[Json]:
    """Return random steps; the parameters are legal, but the actions need not be."""
    steps: list[Json] = []
    actions = spec["actions"]
    conditions = [end["when"] for end in (*spec["loss_conditions"], *spec.get("win_conditions", ()))]
    conditions += [{"!": [condition]} for condition in conditions]
    for _ in range(random.randint(1, 5)):
        otherwise = random.choice((None, "wait", "skip", _move(random, actions)))
        when = {"when": random.choice(conditions)} if random.random() < 0.3 else {}
        steps.append({**when, **_move(random, actions), **({"otherwise": otherwise} if otherwise else {})})
    return steps


def _move(random: Random, actions: list[Json]) -> Json:
    action = random.choice(actions)
    params = {name: _legal_value(random, schema) for name, schema in action["params"].items()}
    return {"action": action["id"], **({"params": params} if params else {})}


def _legal_value(random: Random, schema: Json) -> Any:
    if "enum" in schema:
        return random.choice(schema["enum"])
    match schema["type"]:
        case "boolean":
            return random.random() < 0.5
        case "string":
            return ""
        case _:
            return random.choice((schema["minimum"], schema["maximum"]))


class _Story:
    """Adds lowered keys to a scenario of version 1.1; the parts are shared."""

    def __init__(self, random: Random, spec: Json) -> None:
        self.random = random
        self.base = spec
        self.entities = ["e0", "e1", "e2"][: random.randint(1, 3)]
        self.places = ["p0", "p1", "p2", "odd key"][: random.randint(2, 4)]
        self.clues = ["c0", "c1", "odd key"][: random.randint(1, 3)]
        self.promises = ["q0", "q1"][: random.randint(1, 2)]
        # Apart, so that the other parts of the scenario of a seed stay the same.
        self.apart = Random(len(repr(spec)))
        self.conditional = Random(len(repr(spec)) + 1)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def spec(self) -> Json:
        random, base = self.random, self.base
        effects = [
            effect for rule in [*base["actions"], *base["random_events"]] for effect in rule["effects"]
        ]
        if any(isinstance(effect.get("value"), str) and effect["op"] == "patch" for effect in effects):
            return base  # a derived patch of the state could write lowered values
        here = {entity: {"place": random.choice(self.places)} for entity in self.entities}
        known = {entity["id"]: entity for entity in base.get("entities", [])}
        entities = [{"id": entity, **known.get(entity, {}), **here[entity]} for entity in self.entities]
        others = [entity for entity in base.get("entities", []) if entity["id"] not in here]
        return {
            **base,
            "entities": [*others, *entities],
            "places": {
                name: {"exits": random.sample(self.places, random.randint(0, 3) % len(self.places))}
                for name in self.places
            },
            "clues": {name: {"text": self.text(), "about": "x"} for name in self.clues},
            "statements": {
                "s0": {
                    "by": self.entities[0],
                    "text": "said" if self.apart.random() < 0.5 else self.text(self.apart),
                    "true": random.choice((True, False, {"known": self.clues[-1]})),
                    "broken_by": self.clues[0],
                },
            },
            "promises": {name: self.promise() for name in self.promises},
            "actions": [self.rule(action, "preconditions") for action in base["actions"]],
            "random_events": [self.rule(event, "when") for event in base["random_events"]],
            "loss_conditions": [
                {**end, "when": self.condition(end["when"])} for end in base["loss_conditions"]
            ],
        }

    def text(self, random: Random | None = None) -> Any:
        random = random or self.random
        deals = [
            deal
            for deal in self.base.get("deal", [])
            if all(isinstance(value, str) and value not in {"", "__proto__"} for value in deal["values"])
        ]
        if not deals or random.random() < 0.5:
            return random.choice(("found", "é😀", "low"))
        deal = random.choice(deals)
        return {"deal": deal["id"], "texts": {value: f"found {value}" for value in deal["values"]}}

    def promise(self) -> Json:
        random = self.random
        hearers = random.sample(self.entities, random.randint(0, len(self.entities)))
        return {
            "to": random.choice(self.entities),
            "terms": "terms",
            "due": random.choice((1, 2, 5, "3h")),
            "hears": [{"entity": entity, "after": random.choice((1, 3, "2h"))} for entity in hearers],
        }

    def rule(self, rule: Json, condition: str) -> Json:
        random = self.random
        if self.chance(0.4):
            return rule
        params = dict(rule.get("params", {}))
        effects = [self.once(effect) for effect in rule["effects"]]
        # Steps of solutions give only the parameters that the actions have.
        may_ask = condition != "when" and "solutions" not in self.base
        for _ in range(random.randint(0, 2)):
            effects.insert(random.randint(0, len(effects)), self.effect(params, may_ask=may_ask))
        changed = {**rule, "effects": effects, condition: self.condition(rule[condition])}
        if condition != "when":
            changed["params"] = params
        return {**changed, "once": self.chance(0.7)} if self.chance(0.3) else changed

    def once(self, effect: Json) -> Json:
        is_once = effect["op"] == "schedule" and self.chance(0.3)
        return {**effect, "once": True} if is_once else effect

    def effect(self, params: Json, *, may_ask: bool) -> Json:
        random = self.random
        reveal = {"op": "reveal", "clue": random.choice(self.clues)}
        match random.randrange(5):
            case 0:
                return self.perhaps(self.chosen(params, reveal, "clue", self.clues, may_ask=may_ask))
            case 1:
                return {"op": "schedule", "id": "s0", "after": random.randint(1, 3), "effects": [reveal]}
            case 2:
                said = {"op": "say", "statement": "s0"}
                return self.perhaps(self.chosen(params, said, "statement", ["s0"], may_ask=may_ask))
            case 3:
                operation = random.choice(("promise", "promise", "keep", "break"))
                return {"op": operation, "promise": random.choice(self.promises)}
        move: Json = {
            "op": "move",
            "entity": random.choice(self.entities),
            "to": random.choice(self.places),
        }
        if may_ask and self.chance(0.6):
            params["to"] = {"type": "string", "enum": self.places}
            move["to"] = {"param": "to"}
        if may_ask and self.chance(0.4):
            params["moved"] = {"type": "string", "enum": self.entities}
            move["entity"] = {"param": "moved"}
        return move

    def perhaps(self, effect: Json) -> Json:
        """Return an effect on a clue or statement that half of the time has a condition."""
        random = self.conditional
        match random.randrange(6):
            case 0:
                return {**effect, "when": {"known": random.choice(self.clues)}}
            case 1:
                return {**effect, "when": {"!": [{"broken": "s0"}]}}
            case 2:
                return {**effect, "when": {"<": [{"%": [{"var": "turn"}, 3]}, 2]}}
        return effect

    def chosen(self, params: Json, effect: Json, key: str, ids: list[str], *, may_ask: bool) -> Json:
        """Return an effect whose subject half of the time is a new parameter of the rule."""
        if not may_ask or self.apart.random() < 0.5:
            return effect
        params[key] = {"type": "string", "enum": ids}
        return {**effect, key: {"param": key}}

    def condition(self, logic: Json) -> Json:
        if self.chance(0.7):
            return logic
        known = self.random.choice(({"known": self.random.choice(self.clues)}, {"broken": "s0"}))
        return {self.random.choice(("and", "or")): self.random.choice(([known, logic], [logic, known]))}


def _by_param(random: Random, state: Json, action: Json) -> Json:
    """Return an action whose paths depend on a new parameter, if there are paths for it."""
    schema = {"type": "string", "enum": []}
    groups: dict[str, list[str]] = {}
    for path, value in _iter_members(state):
        holder, key = parse_path(path)[:-1], parse_path(path)[-1]
        groups.setdefault(f"{type(value).__name__} {format_path(holder)}", []).append(str(key))
    usable = [group for group in groups if len(groups[group]) > 1 and group.split()[0] in {"int", "float"}]
    if not usable:
        return action
    group = random.choice(usable)
    keys = random.sample(groups[group], min(len(groups[group]), random.randint(2, 4)))
    path = f"{group.split(maxsplit=1)[1]}[params.who]"
    schema["enum"] = [*keys, *keys[: random.random() < 0.1]]
    effects: list[Json] = [{"op": random.choice(("inc", "dec", "mul", "set")), "path": path, "value": 1}]
    if random.random() < 0.4:
        effects[0]["value"] = "w"
    if random.random() < 0.3:
        effects.append({"op": "schedule", "id": "who", "after": 2, "effects": [effects[0]]})
    if random.random() < 0.3:
        message = {"param": "who", "texts": {key: f"x{key}" for key in keys}}
        effects.append({"op": "addlog", "message": message})
    changed = {
        **action,
        "params": {**action["params"], "who": schema},
        "derives": {**action.get("derives", {}), "w": {"+": [{"var": path}, 0.5]}},
        "effects": [*action["effects"], *effects],
    }
    if random.random() < 0.4:
        changed["preconditions"] = {
            "or": [{"<": [{"var": path}, random.choice(_SMALL)]}, action["preconditions"]]
        }
    return changed


def _some(random: Random, items: list[str], most: int) -> list[str]:
    return random.sample(items, min(len(items), random.randint(0, most)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _iter_members(value: Json, path: str = "state") -> Iterator[tuple[str, Any]]:
    """Yield the paths of all members of objects that are not below an array."""
    for key, item in value.items():
        below = f"{path}.{key}" if key.isidentifier() and key.isascii() else f"{path}[{json.dumps(key)}]"
        yield below, item
        if isinstance(item, dict):
            yield from _iter_members(item, below)


def _value_at(state: Json, path: str) -> Any:
    return lookup(state, parse_path(path)[1:])


def _iter_writes(rules: list[Json]) -> Iterator[tuple[str, Any]]:
    """Yield the path and value of each `set`, and of each member of a `patch`."""
    pending = [effect for rule in rules for effect in rule["effects"]]
    while pending:
        effect = pending.pop()
        pending.extend(effect.get("effects", []))
        if effect["op"] == "set":
            yield effect["path"], effect["value"]
        elif effect["op"] == "patch" and isinstance(effect["value"], dict):
            path = parse_path(effect["path"])
            yield from ((format_path((*path, key)), item) for key, item in effect["value"].items())


def _overlap(one: str, other: str) -> bool:
    a, b = parse_path(one), parse_path(other)
    return all(x == y for x, y in zip(a, b, strict=False))


def _conflicts(path: str, writes: list[tuple[str, Any]]) -> bool:
    """Return True if a write would replace what holds a bounded number, or put something else there."""
    return any(
        (len(parse_path(written)) < len(parse_path(path)) and _overlap(written, path))
        or (written == path and not _is_number(value))
        for written, value in writes
    )


def _limits(random: Random, value: float) -> Json:
    limits = {"min": value - random.choice((0, 1, 2.5, 10)), "max": value + random.choice((0, 0.5, 3, 20))}
    return {side: limits[side] for side in random.choice((["min"], ["max"], ["min", "max"]))}


def _like(random: Random, value: Any, *, mixes: bool) -> Any:
    """Return a value of the same kind, or rarely another."""
    if mixes and random.random() < 0.04:
        return random.choice((None, 1, "x", [], {"p": 1}))
    if isinstance(value, bool):
        return random.random() < 0.5
    if _is_number(value):
        return random.choice((*_SMALL, value))
    if isinstance(value, str):
        return random.choice(_TEXTS)
    return random.choice((value, {}, {"p": 1})) if isinstance(value, dict) else value


def random_params(random: Random, action: Json) -> Json:
    """Parameters for an action: mostly legal, sometimes not."""
    params = {name: _argument(random, schema) for name, schema in action["params"].items()}
    if random.random() < 0.08:
        name = random.choice(["m", "n", "zz", "é"])
        if name in params and random.random() < 0.5:
            del params[name]
        else:
            params[name] = random.choice([None, True, "x", "", 0.5, 1e6, -1e6, [], {}, "y" * 70])
    return params


def _argument(random: Random, schema: Json) -> Any:
    if "enum" in schema:
        return random.choice(schema["enum"])
    match schema["type"]:
        case "boolean":
            return random.random() < 0.5
        case "string":
            return random.choice(["", "é", "x" * schema["maxLength"], "low"])
        case "integer":
            return random.choice(
                [schema["minimum"], schema["maximum"], random.randint(schema["minimum"], schema["maximum"])],
            )
        case _:
            return random.choice(
                [schema["minimum"], schema["maximum"], random.uniform(schema["minimum"], schema["maximum"])],
            )


def random_calls(random: Random, spec: Json, legal: Sequence[str]) -> list[Json]:
    """Return the calls of one turn, its step included, in the form of golden vectors.

    Args:
        random: the source of the choices.
        spec: the scenario.
        legal: the ids of the actions that are legal now; most of the calls use them.
    """
    calls: list[Json] = []
    by_id = {action["id"]: action for action in spec["actions"]}
    for _ in range(random.choice((0, 1, 1, 1, 1, 2))):
        if random.random() < 0.02:
            calls.append({"act": "zz", "params": {}})
            continue
        action = by_id[random.choice(legal) if legal and random.random() < 0.7 else random.choice([*by_id])]
        calls.append({"act": action["id"], "params": random_params(random, action)})
    if random.random() < 0.1:
        calls.append({"narrate": random_changes(random, spec)})
    if random.random() < 0.05:
        kind, difficulty = random.choice(("low", "", "é")), random.choice((1, 11, 30, 0.5))
        calls.append({"roll": {"kind": kind, "difficulty": difficulty}})
    return [*calls, {"step": True}]


def random_changes(random: Random, spec: Json) -> list[Json]:
    """Return changes that a narrator might make: like those of a rule of the scenario, or slightly beyond."""
    rules = [*spec["actions"], *spec["random_events"]]
    effects = [effect for rule in rules for effect in rule["effects"] if "path" in effect]
    changes = []
    for effect in random.choices(effects, k=random.randint(0, 3)) if effects else ():
        change = dict(effect)
        if isinstance(change.get("value"), int | float):
            change["value"] *= random.choice((1, 1, 0.5, -1, 2))
        elif random.random() < 0.1:
            change["value"] = random.choice((1, "x", None))
        changes.append(change)
    return changes


@dataclass
class _Author:
    """Writes one scenario."""

    random: Random
    shape: _Shape
    state: Json = field(default_factory=dict)
    paths: dict[str, list[str]] = field(default_factory=dict)
    objects: list[str] = field(default_factory=list)
    habits: set[str] = field(default_factory=set)

    def spec(self) -> Json:
        random = self.random
        self.habits = {habit for habit in _HABITS if self.chance(self.shape.habits)}
        self.world()
        scope = _Scope(self.paths)
        spec: Json = {
            "spec_version": "1.0",
            "id": "alpha",
            "name": "Alpha",
            "seed": random.getrandbits(53),
            "state": self.state,
            "entities": [{"id": "x", "kind": "low"}, {"id": "y", "playable": True}],
            "actions": [self.action(f"a{n}", scope) for n in range(self.count(self.shape.actions))],
            "random_events": [self.event(f"e{n}", scope) for n in range(self.count(self.shape.events))],
            "loss_conditions": self.losses(scope),
            "win_conditions": self.wins(scope),
            "negativity_budget": {"min_fail_rate": 0.25, "decay_per_turn": self.decay()},
            "clock": {"turn": random.choice(_CLOCKS)},
            "horizon": random.choice(self.shape.horizons),
            "narrator_scope": self.narrator_scope(),
        }
        for optional in ("entities", "win_conditions", "clock", "horizon", "narrator_scope"):
            if random.random() < (0.8 if optional == "narrator_scope" else 0.1):
                del spec[optional]
        return spec

    def count(self, limits: tuple[int, int]) -> int:
        return self.random.randint(*limits)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # --- the state ---

    def world(self) -> None:
        random, shape = self.random, self.shape
        for n in range(self.count(shape.numbers)):
            self.put("number", f"n{n}", random.choice((*_SMALL, 20, 50, 100)))
        for n in range(self.count(shape.flags)):
            self.put("flag", f"f{n}", self.chance(0.5))
        for n in range(self.count(shape.texts)):
            self.put("text", f"t{n}", random.choice(_TEXTS))
        if shape.arrays:
            self.put("array", "items", random.choices(_SMALL, k=random.randint(0, 4)))
            self.put("texts", "words", random.choices(_TEXTS, k=random.randint(0, 3)))
            if "mixing" in self.habits:
                rows = [{"n": random.choice(_SMALL), "ok": self.chance(0.5)}] * random.randint(0, 3)
                self.put("array", "rows", rows)
            if self.state["items"]:
                self.know("number", random.choice(["state.items[0]", "state.items[1]"]))
        if shape.objects:
            tree: Json = {"n": random.choice(_SMALL), "inner": {"m": random.choice(_SMALL)}, "odd key": 1}
            self.state["tree"] = tree
            for path in ("state.tree.n", "state.tree.inner.m", 'state.tree["odd key"]'):
                self.know("number", path)
            self.objects += ["state.tree", "state.tree.inner", "state"]
            if "retyping" in self.habits:
                self.know("object", "state.tree")

    def put(self, kind: str, key: str, value: Any) -> None:
        self.state[key] = value
        self.know(kind, f"state.{key}")

    def know(self, kind: str, path: str) -> None:
        self.paths.setdefault(kind, []).append(path)

    # --- rules ---

    def action(self, name: str, scope: _Scope) -> Json:
        params = self.params()
        for param, schema in params.items():
            kinds = {"integer": "number", "number": "number", "boolean": "flag", "string": "text"}
            scope = scope.adding(kinds[schema["type"]], f"params.{param}")
        preconditions = {} if self.chance(0.3) else self.condition(scope, 2)
        return {"id": name, "params": params, "preconditions": preconditions, **self.rule(scope)}

    def params(self) -> Json:
        if not self.chance(self.shape.params):
            return {}
        return {name: self.param() for name in self.random.sample(["m", "n", "é"], self.random.randint(1, 3))}

    def param(self) -> Json:
        random = self.random
        low = random.choice((-3, 0, 1))
        return random.choice(
            (
                {"type": "integer", "minimum": low, "maximum": low + random.choice((0, 1, 5, 1000))},
                {"type": "integer", "enum": random.sample([0, 1, 2, 5, -7], random.randint(1, 3))},
                {"type": "number", "minimum": low, "maximum": low + random.choice((0, 0.5, 3))},
                {"type": "number", "enum": random.sample([0.1, 1, 2.5, -4], random.randint(1, 3))},
                {"type": "boolean"},
                {"type": "boolean", "enum": [True]},
                {"type": "string", "enum": random.sample([*_TEXTS], random.randint(1, 3))},
                {"type": "string", "maxLength": random.choice((1, 4, 64))},
            ),
        )

    def event(self, name: str, scope: _Scope) -> Json:
        random = self.random
        when = {} if self.chance(0.4) else self.condition(scope, 2)
        event = {"id": name, "weight": random.choice((0.05, 0.1, 0.17, 0.25, 0.3)), "when": when}
        if self.chance(self.shape.lasting):
            event["duration"] = random.choice(_DURATIONS)
        return {**event, **self.rule(scope)}

    def rule(self, scope: _Scope) -> Json:
        """Derived values, which may read those before them, and the effects that use them."""
        derives: dict[str, Any] = {}
        kinds: dict[str, list[str]] = {}
        if self.chance(self.shape.derives):
            for name in self.random.sample(["d0", "d1", "d2"], self.random.randint(1, 3)):
                kind = self.random.choice([*self.paths])
                derives[name] = self.expression(kind, scope, 3)
                kinds.setdefault(kind, []).append(name)
                scope = scope.adding(kind, f"derives.{name}")
        rule: Json = {"effects": self.effects(kinds, 1)}
        return {**rule, "derives": derives} if derives else rule

    def losses(self, scope: _Scope) -> list[Json]:
        number = self.random.choice(self.paths["number"])
        losses: list[Json] = [
            {"id": "l0", "when": {"<=": [{"var": number}, self.random.choice((-80, -30, -10, 0))]}},
        ]
        losses += [
            {"id": f"l{n}", "when": self.condition(scope, 2)} for n in range(1, self.random.randint(2, 4))
        ]
        if self.chance(0.7):  # most runs should last a while
            losses[1:] = [
                {
                    "id": loss["id"],
                    "when": {
                        "and": [{">": [{"var": "turn"}, self.random.choice((3, 10, 25))]}, loss["when"]],
                    },
                }
                for loss in losses[1:]
            ]
        if self.chance(self.shape.ends_at_once):
            losses[0]["when"] = self.random.choice(({}, {"!": [False]}, {"==": [{"var": "turn"}, 1]}))
        if self.chance(0.3):
            losses[0]["message"] = "over"
        return losses

    def wins(self, scope: _Scope) -> list[Json]:
        number = self.random.choice(self.paths["number"])
        wins: list[Json] = [
            {"id": "w0", "when": {">": [{"var": number}, self.random.choice((40, 200, 1e6))]}},
        ]
        if self.chance(0.3):
            wins.append(
                {"id": "w1", "when": {"and": [{">": [{"var": "turn"}, 15]}, self.condition(scope, 2)]}},
            )
        return wins

    def decay(self) -> Json:
        paths = self.paths["number"]
        chosen = self.random.sample(paths, min(len(paths), self.random.choice((0, 1, 1, 3))))
        return {path: self.random.choice((0.1, 0.5, 1, 0, -1, 1e-9)) for path in chosen}

    def narrator_scope(self) -> list[Json]:
        path = self.random.choice(self.paths["number"])
        return [{"path": path, "ops": ["inc", "set"], "max_magnitude": self.random.choice((1, 2.5))}]

    # --- effects ---

    def effects(self, derived: dict[str, list[str]], depth: int) -> list[Json]:
        fewest = 1 if depth > 1 else 0
        return [self.effect(derived, depth) for _ in range(self.random.randint(fewest, 4))]

    def effect(self, derived: dict[str, list[str]], depth: int) -> Json:
        random, shape = self.random, self.shape
        if depth < 4 and self.chance(shape.schedules):
            return self.schedule(derived, depth)
        if self.chance(shape.growth):
            return self.growing(derived)
        kinds: list[Callable[[dict[str, list[str]]], Json]] = [
            self.arithmetic,
            self.arithmetic,
            self.assignment,
        ]
        if shape.arrays:
            kinds += [self.push, self.push, self.pop]
        if shape.objects:
            kinds += [self.patch, self.replacement] if "creating" in self.habits else [self.patch]
        if self.chance(0.05):
            return {"op": "addlog", "message": random.choice(["x", "é", "l" * 300])}
        return random.choice(kinds)(derived)

    def arithmetic(self, derived: dict[str, list[str]]) -> Json:
        op = self.random.choice(("inc", "inc", "dec", "dec", "mul"))
        path = self.path("number")
        return {"op": op, "path": path, "value": self.value("number", derived, self.amount(op))}

    def amount(self, op: str) -> float:
        if self.chance(self.shape.slips):
            return self.random.choice(_EXTREME)
        return self.random.choice((0, 0.5, 0.9, 1.1, 2, -1)) if op == "mul" else self.random.choice(_SMALL)

    def assignment(self, derived: dict[str, list[str]]) -> Json:
        random = self.random
        kind = random.choice([kind for kind in self.paths if kind != "object"])
        path = self.path(kind)
        if "retyping" in self.habits and self.chance(0.3):
            kind = random.choice([*self.paths])
        elif kind == "array" and self.chance(0.5):
            kind, path = "number", f"{path}[{random.choice((0, 1, 5))}]"
        elif "creating" in self.habits and self.chance(0.2):
            path = random.choice(["state.made", 'state["odd key"]', *(f"{o}.made" for o in self.objects)])
        return {"op": "set", "path": path, "value": self.value(kind, derived, self.literal(kind))}

    def push(self, derived: dict[str, list[str]]) -> Json:
        path = self.path(self.random.choice(("array", "texts")))
        kind = "text" if path.endswith("words") else "number"
        if "mixing" in self.habits:
            kind = self.random.choice(("number", "text", "array", "object"))
        return {"op": "push", "path": path, "value": self.value(kind, derived, self.literal(kind))}

    def pop(self, _derived: dict[str, list[str]]) -> Json:
        return {"op": "pop", "path": self.path(self.random.choice(("array", "texts")))}

    def patch(self, derived: dict[str, list[str]]) -> Json:
        random, path = self.random, self.random.choice(self.objects)
        if "creating" in self.habits:
            kinds = {key: random.choice(("number", "text", "flag", "array")) for key in _KEYS}
        else:
            kinds = dict.fromkeys(
                {"state.tree": ["n", "odd key"], "state.tree.inner": ["m"], "state": ["n0"]}[path],
                "number",
            )
        keys = random.sample([*kinds], random.randint(0, min(3, len(kinds))))
        literal = {key: self.literal(kinds[key]) for key in keys}
        return {"op": "patch", "path": path, "value": self.value("object", derived, literal)}

    def replacement(self, derived: dict[str, list[str]]) -> Json:
        """A new object in place of an old one: keys come and go."""
        tree: Json = {"inner": {"m": self.random.choice(_SMALL)}}
        if self.chance(0.7):
            tree["n"] = self.random.choice(_SMALL)
        if self.chance(self.shape.slips):
            tree["inner"] = self.literal("text")
        return {"op": "set", "path": "state.tree", "value": self.value("object", derived, tree)}

    def growing(self, derived: dict[str, list[str]]) -> Json:
        if derived.get("array") and self.chance(0.5):
            return {"op": "push", "path": "state.items", "value": self.random.choice(derived["array"])}
        long = self.random.choice(("é" * 1000, [[0] * 100] * 30, [[0] * 100] * 30, "x" * 9000))
        return {"op": "push", "path": self.random.choice(["state.items", "state.words"]), "value": long}

    def schedule(self, derived: dict[str, list[str]], depth: int) -> Json:
        random = self.random
        when = (
            {"after": random.choice((1, 1, 2, 3, 7, "3h", "P1D"))}
            if self.chance(0.7)
            else {"at": random.choice((1, 4, 9, "5h", "P2D"))}
        )
        name = random.choice(("s0", "s1", "s2"))
        return {"op": "schedule", "id": name, "effects": self.effects(derived, depth + 1), **when}

    def path(self, kind: str) -> str:
        return self.random.choice(self.paths[kind])

    def value(self, kind: str, derived: dict[str, list[str]], literal: Any) -> Any:
        """The name of a derived value, or a literal."""
        slips = self.chance(self.shape.slips / 2)
        names = [name for names in derived.values() for name in names] if slips else derived.get(kind, [])
        return self.random.choice(names) if names and self.chance(0.6) else literal

    def literal(self, kind: str) -> Any:
        match kind:
            case "number":
                return self.random.choice(_SMALL)
            case "flag":
                return self.chance(0.5)
            case "text":
                return self.random.choice(_TEXTS)
            case "array":
                items = (*_SMALL, *_TEXTS, None, True) if "mixing" in self.habits else _SMALL
                return self.random.choices(items, k=self.random.randint(0, 3))
            case "texts":
                return self.random.choices(_TEXTS, k=self.random.randint(0, 3))
            case _:
                return {"n": self.random.choice(_SMALL), "p": self.random.choice(_TEXTS)}

    # --- expressions ---

    def condition(self, scope: _Scope, depth: int) -> Json:
        """An expression that is an object, as conditions are."""
        logic = self.expression("flag", scope, depth)
        return logic if isinstance(logic, dict) else {"!!": [logic]}

    def expression(self, kind: str, scope: _Scope, depth: int) -> Any:
        if self.chance(self.shape.slips / 3):
            kind = self.random.choice(("number", "flag", "text", "array", "object", "nothing"))
        if depth <= 0 or self.chance(0.15):
            return self.leaf(kind, scope)
        match kind:
            case "number":
                return self.number(scope, depth - 1)
            case "flag":
                return self.truth(scope, depth - 1)
            case "text":
                return self.text(scope, depth - 1)
            case "array":
                return self.array(scope, depth - 1)
            case _:
                return self.leaf(kind, scope)

    def leaf(self, kind: str, scope: _Scope) -> Any:
        if kind == "nothing":
            return None
        if kind == "number" and self.chance(0.1):
            return {"var": "turn"}
        known = scope.paths.get(kind)
        if known and (kind == "object" or self.chance(0.7)):
            path = self.random.choice(known)
            if path.startswith("state.items[") and self.chance(0.3):
                path = path.replace("[", ".").replace("]", "")
            defaulted = kind != "object" and "defaulting" in self.habits and self.chance(0.3)
            return {"var": [path, self.literal(kind)] if defaulted else path}
        return {} if kind == "object" else self.literal(kind)

    def number(self, scope: _Scope, depth: int) -> Any:
        random = self.random

        def one() -> Any:
            return self.expression("number", scope, depth)

        operator = random.choice(("+", "-", "*", "/", "%", "min", "max", "if", "reduce", "+", "-", "*"))
        if operator == "reduce":
            if "array" not in scope.paths:
                return {"-": [one()]}
            return {"reduce": [self.elements(scope), self.folding(), random.choice((0, 1, one()))]}
        if operator == "if":
            return {random.choice(("if", "?:")): [self.expression("flag", scope, depth), one(), one()]}
        if operator in {"/", "%"}:
            divisor = one() if self.chance(0.3) else random.choice((2, 3, -4, 0.5, 7))
            return {operator: [one(), divisor]}
        return {operator: [one() for _ in range(random.choice((2, 2, 2, 3)))]}

    def folding(self) -> Any:
        current, total = {"var": "current"}, {"var": "accumulator"}
        if "mixing" in self.habits and self.chance(0.3):
            return {"+": [{"var": "current.n"}, total]}
        return self.random.choice(
            (
                {"+": [current, total]},
                {"+": [1, total]},
                {"max": [current, total]},
                {"if": [{">": [current, total]}, current, total]},
                {"-": [{"*": [total, 0.5]}, current]},
            ),
        )

    def truth(self, scope: _Scope, depth: int) -> Any:
        random = self.random

        def one() -> Any:
            return self.expression("flag", scope, depth)

        operator = random.choice(
            ("compare", "compare", "compare", "and", "or", "!", "!!", "in", "some", "missing"),
        )
        if operator == "compare":
            kind = random.choice(("number", "number", "number", "number", "text", "flag"))
            between = kind == "number" and self.chance(0.1)
            name = random.choice(("<", "<=")) if between else random.choice(_COMPARISONS)
            return {name: [self.expression(kind, scope, depth) for _ in range(3 if between else 2)]}
        if operator in {"and", "or"}:
            return {operator: [one() for _ in range(random.randint(1, 3))]}
        if operator in {"!", "!!"}:
            return {operator: [one()]}
        if operator == "missing" and "missing" in self.habits and not scope.inside:
            names = random.sample(self.paths["number"], min(2, len(self.paths["number"])))
            return {"!": [{"missing": names} if self.chance(0.5) else {"missing_some": [1, names]}]}
        return self.membership(operator, scope, depth)

    def membership(self, operator: str, scope: _Scope, depth: int) -> Any:
        """A condition on what an array or a text holds."""
        random = self.random
        if "array" in scope.paths and operator == "some":
            kind = random.choice(("array", "texts"))
            return {random.choice(("some", "all", "none")): [self.leaf(kind, scope), self.test(kind)]}
        if "array" in scope.paths and self.chance(0.5):
            sought, kind = random.choice((("number", "array"), ("text", "texts")))
            return {"in": [self.expression(sought, scope, depth), self.leaf(kind, scope)]}
        return {"in": [self.expression("text", scope, depth), self.expression("text", scope, depth)]}

    def test(self, kind: str) -> Any:
        """A condition on an element of an array of a kind."""
        random, element = self.random, {"var": ""}
        of_numbers = (
            {">": [element, random.choice(_SMALL)]},
            {"!!": [element]},
            {"==": [element, random.choice(_SMALL)]},
        )
        of_texts = (
            {"===": [element, random.choice(_TEXTS)]},
            {"!!": [element]},
            {"in": [element, "low high"]},
        )
        of_rows = ({"var": "ok"}, {"<": [{"var": "n"}, 3]})
        if "mixing" in self.habits:
            return random.choice((*of_numbers, *of_texts, *of_rows))
        return random.choice(of_texts if kind == "texts" else of_numbers)

    def text(self, scope: _Scope, depth: int) -> Any:
        random = self.random
        operator = random.choice(["if", *sorted({"cat", "substr"} & self.habits)])
        if operator == "cat":
            kinds = random.choices(("text", "number", "flag"), k=random.randint(1, 3))
            return {"cat": [self.expression(kind, scope, depth) for kind in kinds]}
        if operator == "substr":
            cut = random.choice(([0, 2], [-2], [1, -1], [1]))
            return {"substr": [self.expression("text", scope, depth), *cut]}
        one, other = (self.expression("text", scope, depth) for _ in range(2))
        return {"if": [self.expression("flag", scope, depth), one, other]}

    def array(self, scope: _Scope, depth: int) -> Any:
        random, element = self.random, {"var": ""}
        operator = random.choice(["map", "filter", "leaf", *sorted({"merge", "listing"} & self.habits)])
        if operator == "map":
            bodies = [{"+": [element, 1]}, {"*": [element, element]}, {"-": [element]}, element]
            if "mixing" in self.habits:
                bodies += [{"cat": [element, "x"]}, {"var": "n"}, [element]]
            return {"map": [self.elements(scope), random.choice(bodies)]}
        if operator == "filter":
            return {"filter": [self.elements(scope), self.test("array")]}
        if operator == "merge":
            return {"merge": [self.elements(scope), self.expression("number", scope, depth)]}
        if operator == "listing":
            return [self.expression("number", scope, depth) for _ in range(random.randint(0, 3))]
        return self.elements(scope)

    def elements(self, scope: _Scope) -> Any:
        return self.leaf("array", scope)
