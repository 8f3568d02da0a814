"""Hypothesis strategies of scenario specifications; for many specifications fast, see `seeded_specs`."""

from __future__ import annotations

import functools
from functools import cache
from typing import Any

from hypothesis import strategies as st

from support.engine.specs import action, event, spec

Json = dict[str, Any]
Strategy = st.SearchStrategy[Any]

STATE = {
    "n0": 8,
    "n1": 3,
    "tree": {"n2": 0.5, "deep": [{"n3": -2}, {"n3": 4}]},
    "limit": 5,
    "flag": False,
    "mode": "x",
    "marks": [2, 1],
    "bag": ["x"],
    "empty": [],
    "none": None,
}
STABLE_NUMBERS = ("state.n0", "state.n1", "state.tree.n2", "state.tree.deep[0].n3", "state.tree.deep[1].n3")
STABLE_TEXTS = ("x", "y", "é", "12")

_stable_small = st.sampled_from([0, 1, 2, 3, -1, 0.5, 2.5, 10, -7])
_stable_literals = st.sampled_from(STABLE_TEXTS)
_read_number = st.sampled_from([*STABLE_NUMBERS, "state.tree.deep.1.n3", "state.limit", "turn"]).map(
    lambda path: {"var": path},
)
_read_text = st.just({"var": "state.mode"})
_read_flag = st.sampled_from([{"var": "state.flag"}, {"var": "state.tree.made"}])
_marks = st.sampled_from([{"var": "state.marks"}, {"var": "state.empty"}, [1, 2]])


def _stable_call(name: str, *arguments: Strategy) -> Strategy:
    return st.tuples(*arguments).map(lambda values: {name: list(values)})


def _stable_numbers(inner: Strategy, drawn: Strategy) -> Strategy:
    lists = st.one_of(
        _marks,
        _stable_call("filter", _marks, st.just({">": [{"var": ""}, 1]})),
        _stable_call("map", _marks, st.sampled_from([{"*": [{"var": ""}, 2]}, {"-": [3, {"var": ""}]}])),
    )
    fold = st.sampled_from(
        [
            {"+": [{"var": "current"}, {"var": "accumulator"}]},
            {"if": [{">": [{"var": "current"}, 1]}, {"var": "accumulator"}, {"var": "current"}]},
        ],
    )
    flag = st.one_of(_read_flag, _stable_call("<", inner, inner))
    return st.one_of(
        st.sampled_from(["+", "-", "*", "min", "max"]).flatmap(
            lambda name: st.lists(inner, min_size=1, max_size=3).map(lambda values: {name: values}),
        ),
        st.sampled_from(["/", "%"]).flatmap(
            lambda name: _stable_call(name, inner, st.one_of(inner, _stable_small))
        ),
        _stable_call("if", flag, inner, inner),
        _stable_call("+", drawn, _read_flag),
        _stable_call("reduce", lists, fold, _stable_small),
        lists.filter(lambda value: isinstance(value, dict)).map(lambda value: {"+": value}),
        _stable_call("merge", lists, inner).map(lambda value: {"max": value}),
        _stable_call("+", inner, st.just({"substr": ["12", 0, 1]})),
        st.just({"max": {"var": "state.marks"}}),
        st.just({"var": "state.marks.0"}),
        st.just({"var": ["state.tree.nothing", 3]}),
        st.sampled_from([{"var": "state.none"}, {"var": ["state.new", 3]}, {"var": "state.new"}]),
    )


def _drawn(params: tuple[str, ...]) -> Strategy:
    """Something that is drawn for the action, if anything is."""
    return st.sampled_from([1, *({"var": f"params.{name}"} for name in params if name in "ino")])


@cache  # made once: to make strategies is slower than to draw from them
def stable_numbers(params: tuple[str, ...] = ()) -> Strategy:
    """Expressions that are numbers, or fail."""
    drawn = _drawn(params)
    return st.recursive(
        st.one_of(_stable_small, _read_number, drawn),
        lambda inner: _stable_numbers(inner, drawn),
        max_leaves=6,
    )


@cache
def stable_texts(params: tuple[str, ...] = ()) -> Strategy:
    """Expressions that are texts."""
    number = stable_numbers(params)
    return st.one_of(
        _read_text,
        _stable_call("cat", _stable_literals, number, _read_flag),
        _stable_call("cat", _read_text, st.just({"var": "state.none"}), _marks),
        _stable_call("substr", _read_text, number),
        st.tuples(_stable_literals, st.sampled_from([0, 1, -1, 5]), st.sampled_from([1, -1, 9])).map(
            lambda values: {"substr": list(values)},
        ),
        _stable_call("cat", _stable_call("if", _read_flag, _stable_literals)),
    )


@cache
def stable_truths(params: tuple[str, ...] = ()) -> Strategy:
    """Expressions that are booleans, or fail."""
    number = stable_numbers(params)
    order = st.sampled_from(["<", "<=", ">", ">=", "==", "!=", "===", "!=="])
    element = st.sampled_from([{">": [{"var": ""}, 1]}, {"%": [{"var": ""}, 2]}, {"==": [{"var": ""}, 2]}])
    leaf = st.one_of(
        order.flatmap(lambda name: _stable_call(name, number, number)),
        _stable_call("<", number, number, number),
        st.sampled_from(["==", "!==", "<"]).flatmap(
            lambda name: _stable_call(name, _read_text, _stable_literals)
        ),
        _stable_call("==", _read_flag, st.sampled_from([0, 1, True])),
        st.sampled_from(["==", "!=", "<"]).flatmap(
            lambda name: _stable_call(name, stable_texts(params), _stable_literals)
        ),
        _stable_call("<", _stable_call("cat", number), number),
        st.sampled_from(
            [
                {"missing": ["state.mode", "state.none", "state.new", "state.nothing"]},
                {"missing_some": [1, ["state.none", "state.new"]]},
                {"missing": "state.mode"},
            ],
        ),
        _stable_call("==", number, st.sampled_from(["3", " 2 ", None, True])),
        st.just({"in": [{"var": "state.mode"}, {"var": "state.bag"}]}),
        st.just({"in": [{"var": "state.mode"}, "xyz"]}),
        st.sampled_from([{"===": [{"var": "state.none"}, None]}, {"!": [{"var": "state.new"}]}]),
        _stable_call("in", number, st.one_of(_marks, st.just([{"var": "state.n0"}, 3]))),
        st.sampled_from(["all", "some", "none"]).flatmap(lambda name: _stable_call(name, _marks, element)),
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.sampled_from(["and", "or"]).flatmap(
                lambda name: st.lists(st.one_of(inner, _read_flag), min_size=1, max_size=3).map(
                    lambda values: {name: values},
                ),
            ),
            st.sampled_from(["!", "!!"]).flatmap(lambda name: _stable_call(name, inner)),
            _stable_call("if", inner, inner, inner),
        ),
        max_leaves=4,
    )


@cache
def stable_effects(derived: tuple[str, ...], depth: int = 0) -> Strategy:
    """Lists of effects that change no kind; `derived` names numbers."""
    names = st.sampled_from(derived) if derived else st.nothing()
    number = st.sampled_from(STABLE_NUMBERS)
    kinds: list[Strategy] = [
        st.fixed_dictionaries(
            {
                "op": st.sampled_from(["inc", "dec", "mul"]),
                "path": number,
                "value": st.one_of(_stable_small, names),
            },
        ),
        st.fixed_dictionaries(
            {"op": st.just("set"), "path": number, "value": st.one_of(_stable_small, names)}
        ),
        st.fixed_dictionaries({"op": st.just("set"), "path": st.just("state.flag"), "value": st.booleans()}),
        st.fixed_dictionaries(
            {"op": st.just("set"), "path": st.just("state.mode"), "value": _stable_literals}
        ),
        st.fixed_dictionaries(
            {
                "op": st.sampled_from(["set", "set", "set", "inc"]),
                "path": st.sampled_from(["state.none", "state.new"]),
                "value": st.one_of(_stable_small, names),
            },
        ),
        st.sampled_from(
            [
                {"op": "set", "path": "state.none", "value": None},
                {"op": "set", "path": "state.tree.made", "value": True},
            ],
        ),
        st.fixed_dictionaries(
            {
                "op": st.just("set"),
                "path": st.just("state.marks"),
                "value": st.lists(_stable_small, max_size=3),
            },
        ),
        st.fixed_dictionaries(
            {
                "op": st.just("inc"),
                "path": st.just("state.marks[1]"),
                "value": st.one_of(_stable_small, names),
            },
        ),
        st.fixed_dictionaries(
            {
                "op": st.just("push"),
                "path": st.sampled_from(["state.marks", "state.empty"]),
                "value": st.one_of(_stable_small, names),
            },
        ),
        st.fixed_dictionaries(
            {"op": st.just("push"), "path": st.just("state.bag"), "value": _stable_literals}
        ),
        st.fixed_dictionaries({"op": st.just("pop"), "path": st.sampled_from(["state.marks", "state.bag"])}),
        st.fixed_dictionaries(
            {
                "op": st.just("patch"),
                "path": st.just("state"),
                "value": st.fixed_dictionaries(
                    {},
                    optional={"n1": _stable_small, "flag": st.booleans(), "mode": _stable_literals},
                ),
            },
        ),
        st.fixed_dictionaries({"op": st.just("addlog"), "message": _stable_literals}),
    ]
    if depth < 2:
        when = st.sampled_from([{"after": 1}, {"after": "2h"}, {"at": 4}, {"at": 1}])
        inner = st.deferred(lambda: stable_effects(derived, depth + 1)).filter(bool)
        entry = st.fixed_dictionaries(
            {"op": st.just("schedule"), "id": st.sampled_from(["s", "t", "u"]), "effects": inner},
        )
        kinds.append(st.tuples(entry, when).map(_stable_merged))
    return st.lists(st.one_of(kinds), max_size=3)


def _stable_merged(parts: tuple[Json, Json]) -> Json:
    return {**parts[0], **parts[1]}


_STABLE_PARAMS = {
    "i": {"type": "integer", "minimum": -2, "maximum": 3},
    "n": {"type": "number", "minimum": 0, "maximum": 1.5},
    "o": {"type": "number", "enum": [1, 2.5, 4]},
    "s": {"type": "string", "enum": ["x", "é"]},
    "t": {"type": "string", "maxLength": 4},
    "b": {"type": "boolean"},
}
_PARAM_NAMES = [(), (), ("i",), ("n", "s"), ("o", "t"), ("b", "i", "n"), ("s",)]


@st.composite
def _stable_rule(draw: st.DrawFn, params: tuple[str, ...] = ()) -> Json:
    derives = draw(st.dictionaries(st.sampled_from(["d1", "d2"]), stable_numbers(params), max_size=2))
    if "d1" in derives and draw(st.booleans()):
        derives["d3"] = {"-": [{"var": "derives.d1"}, 1]}
    rule: Json = {"effects": draw(stable_effects(tuple(sorted(derives))))}
    if draw(st.integers(0, 3)) == 3:
        derives["d4"] = draw(stable_texts(params))
        operation, path = draw(st.sampled_from([("set", "state.mode"), ("push", "state.bag")]))
        rule["effects"] = [*rule["effects"], {"op": operation, "path": path, "value": "d4"}]
    return {**rule, "derives": derives} if derives else rule


@st.composite
def _stable_action(draw: st.DrawFn, number: int) -> Json:
    names = draw(st.sampled_from(_PARAM_NAMES))
    preconditions: Json = draw(st.one_of(st.just({}), stable_truths(names), stable_truths()))
    suited = [name for name in names if name in {"s", "b"}]
    if draw(st.booleans()) and suited:
        name = suited[0]
        preconditions = {"==": [{"var": f"params.{name}"}, "x" if name == "s" else {"var": "state.flag"}]}
    return {
        "id": f"a{number}",
        "params": {name: _STABLE_PARAMS[name] for name in names},
        "preconditions": preconditions,
        **draw(_stable_rule(names)),
    }


@st.composite
def stable_specs(draw: st.DrawFn) -> Json:
    """Draw a scenario whose values never change their kinds; its rules may still fail when they run."""
    events = [
        {
            "id": f"e{n}",
            "weight": draw(st.sampled_from([0.05, 0.1, 0.25, 0.3])),
            "when": draw(st.one_of(st.just({}), stable_truths())),
            **draw(_stable_rule()),
            **draw(st.sampled_from([{}, {}, {"duration": "3h"}, {"duration": "P1D"}])),
        }
        for n in range(draw(st.integers(0, 6)))
    ]
    return {
        "spec_version": "1.0",
        "id": "alpha",
        "name": "Alpha",
        "seed": draw(st.integers(0, 2**53 - 1)),
        "state": STATE,
        "actions": [draw(_stable_action(n)) for n in range(draw(st.integers(1, 5)))],
        "random_events": events,
        "loss_conditions": [
            {"id": "l1", "when": draw(stable_truths())},
            {"id": "l2", "when": {"<": [{"var": "state.n0"}, -20]}},
        ],
        "win_conditions": [{"id": "w1", "when": {">": [{"var": "state.n1"}, 40]}}],
        "negativity_budget": {
            "min_fail_rate": 0.25,
            "decay_per_turn": draw(st.sampled_from([{}, {"state.n0": 0.5}, {"state.tree.deep[0].n3": 1}])),
        },
        "clock": {"turn": draw(st.sampled_from(["1h", "1d"]))},
    }


NUMBERS = ("state.a", "state.b", "state.tree.n", "state.list[0]")
LISTS = ("state.list", "state.words")
OBJECTS = ("state.tree", "state")

small = st.sampled_from([0, 1, 2, 3, -1, 0.5, 0.1, 2.5, 10, 1e16, 1e-7])
texts = st.sampled_from(["", "x", "é😀", "0", "12", " 3 ", "word"])
scalars = st.one_of(small, texts, st.booleans(), st.none())
literals = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["p", "q"]), inner, max_size=2)
    ),
)
variables = st.sampled_from(
    [*NUMBERS, *LISTS, "state.tree", "state.note", "state.flag", "turn", "state.list.1"],
)


def _call(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.tuples(*arguments).map(lambda values: {name: list(values)})


def _extended(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    pair = ["==", "!=", "===", "!==", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "in"]
    many = ["+", "*", "min", "max", "and", "or", "cat", "merge"]
    element = st.one_of(
        st.just({"var": ""}),
        st.just({">": [{"var": ""}, 1]}),
        st.just({"+": [{"var": "current"}, {"var": "accumulator"}]}),
        st.just([{"var": "accumulator"}, {"var": ""}]),
    )
    iterators = ["map", "filter", "all", "some", "none"]
    return st.one_of(
        st.sampled_from(pair).flatmap(lambda name: _call(name, inner, inner)),
        st.sampled_from(many).flatmap(
            lambda name: st.lists(inner, min_size=1, max_size=3).map(lambda values: {name: values}),
        ),
        st.sampled_from(["!", "!!"]).flatmap(lambda name: _call(name, inner)),
        _call("if", inner, inner, inner),
        _call("substr", inner, small),
        st.sampled_from(iterators).flatmap(lambda name: _call(name, inner, element)),
        _call("reduce", inner, element, inner),
        st.lists(inner, max_size=3),
    )


expressions = st.recursive(
    st.one_of(scalars, variables.map(lambda path: {"var": path})),
    _extended,
    max_leaves=8,
)
conditions = expressions.map(lambda logic: logic if isinstance(logic, dict) else {"!!": [logic]})


@functools.cache
def effects(derived: tuple[str, ...], depth: int = 0) -> st.SearchStrategy[list[Json]]:
    """Lists of effects that pass the static checks; whether they can be applied shows when they run."""
    names = st.sampled_from(derived) if derived else st.nothing()
    numbers = st.sampled_from(NUMBERS)
    kinds = [
        st.fixed_dictionaries(
            {"op": st.sampled_from(["inc", "dec", "mul"]), "path": numbers, "value": st.one_of(small, names)},
        ),
        st.fixed_dictionaries(
            {
                "op": st.just("set"),
                "path": st.sampled_from(
                    [*NUMBERS, "state.note", "state.flag", "state.made", 'state.tree["odd key"]'],
                ),
                "value": st.one_of(literals, names).filter(lambda value: not isinstance(value, dict)),
            },
        ),
        st.fixed_dictionaries(
            {"op": st.just("push"), "path": st.sampled_from(LISTS), "value": st.one_of(scalars, names)},
        ),
        st.fixed_dictionaries({"op": st.just("pop"), "path": st.sampled_from(LISTS)}),
        st.fixed_dictionaries(
            {
                "op": st.just("patch"),
                "path": st.sampled_from(OBJECTS),
                "value": st.dictionaries(st.sampled_from(["p", "n", "é"]), scalars, max_size=2),
            },
        ),
        st.fixed_dictionaries({"op": st.just("addlog"), "message": texts.filter(bool)}),
    ]
    if depth < 2:
        when = st.one_of(
            st.fixed_dictionaries({"after": st.sampled_from([1, 2, "3h", "P1D"])}),
            st.fixed_dictionaries({"at": st.sampled_from([1, 4, "5h"])}),
        )
        inner = st.deferred(lambda: effects(derived, depth + 1)).filter(bool)
        entry = st.fixed_dictionaries(
            {"op": st.just("schedule"), "id": st.sampled_from(["s", "t"]), "effects": inner},
        )
        kinds.append(st.tuples(entry, when).map(lambda parts: {**parts[0], **parts[1]}))
    return st.lists(st.one_of(kinds), max_size=3)


@st.composite
def rules(draw: st.DrawFn) -> Json:
    """Derived values and the effects that use them."""
    derives = draw(st.dictionaries(st.sampled_from(["d1", "d2"]), expressions, max_size=2))
    rule: Json = {"effects": draw(effects(tuple(sorted(derives))))}
    return {**rule, "derives": derives} if derives else rule


PARAMS = st.dictionaries(
    st.sampled_from(["m", "n"]),
    st.sampled_from(
        [
            {"type": "integer", "minimum": -2, "maximum": 3},
            {"type": "number", "minimum": 0, "maximum": 1},
            {"type": "boolean"},
            {"type": "string", "enum": ["x", "é"]},
            {"type": "string", "maxLength": 4},
        ],
    ),
    max_size=2,
)


@st.composite
def specs(draw: st.DrawFn) -> Json:
    """A scenario whose paths exist and whose rules may still fail when they run."""
    actions = [
        {
            "id": f"a{n}",
            "params": draw(PARAMS),
            "preconditions": draw(st.one_of(st.just({}), conditions)),
            **draw(rules()),
        }
        for n in range(draw(st.integers(1, 3)))
    ]
    events = [
        {
            "id": f"e{n}",
            "weight": draw(st.sampled_from([0.05, 0.1, 0.25, 0.3])),
            "when": draw(st.one_of(st.just({}), conditions)),
            **draw(rules()),
            **draw(st.sampled_from([{}, {"duration": "3h"}, {"duration": "P1D"}])),
        }
        for n in range(draw(st.integers(0, 5)))
    ]
    return {
        "spec_version": "1.0",
        "id": "alpha",
        "name": "Alpha",
        "seed": draw(st.integers(0, 2**53 - 1)),
        "state": {
            "a": draw(small),
            "b": draw(small),
            "list": [1, 2],
            "words": [],
            "tree": {"n": 3},
            "flag": draw(st.booleans()),
            "note": draw(texts),
        },
        "actions": actions,
        "random_events": events,
        "loss_conditions": [
            {"id": "l1", "when": draw(conditions)},
            {"id": "l2", "when": {"<": [{"var": "state.a"}, -20]}},
        ],
        "win_conditions": [{"id": "w1", "when": {">": [{"var": "state.b"}, 40]}}],
        "negativity_budget": {
            "min_fail_rate": 0.25,
            "decay_per_turn": draw(st.sampled_from([{}, {"state.a": 0.5}])),
        },
        "clock": {"turn": draw(st.sampled_from(["1h", "1d", "P1W"]))},
    }


OPERATIONS = ("set", "inc", "dec", "mul", "patch", "push", "pop")

# Proposals of a narrator: mostly of the right shape, often out of scope, sometimes not a change at all.
_written = st.sampled_from(
    [
        *NUMBERS,
        *LISTS,
        *OBJECTS,
        "state.note",
        "state.flag",
        "state.made",
        'state.tree["odd key"]',
        "state.zz",
    ],
)
_likely: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {"op": st.sampled_from(OPERATIONS), "path": _written, "value": st.one_of(small, small, literals)},
)
_pops: st.SearchStrategy[Json] = st.fixed_dictionaries({"op": st.just("pop"), "path": st.sampled_from(LISTS)})
_strange: st.SearchStrategy[Any] = st.one_of(
    literals,
    st.fixed_dictionaries(
        {"op": st.sampled_from([*OPERATIONS, "addlog", 1]), "path": st.one_of(_written, texts, st.none())},
        optional={
            "value": st.one_of(literals, st.just({"var": "state.a"}), st.just("{{a}}")),
            "cause": scalars,
        },
    ),
)
changes = st.one_of(_likely, _likely, _pops, _strange)
narrations: st.SearchStrategy[list[Any]] = st.lists(changes, max_size=4)

rolls: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["k", "k", "m.n", "", " "]),
        "difficulty": st.one_of(st.integers(0, 31), scalars),
    },
    optional={"target": st.sampled_from(["x", "y", "", None]), "more": st.just(1)},
)

_grants: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {
        "path": st.sampled_from(["state", *NUMBERS, *LISTS, "state.tree", "state.note"]),
        "ops": st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=4),
    },
    optional={"max_magnitude": st.sampled_from([0, 1, 2.5, 1e16])},
)
scopes: st.SearchStrategy[Json] = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"narrator_scope": st.lists(_grants, max_size=3)}),
)

_amounts = st.one_of(small, st.just("d"))
_writes: st.SearchStrategy[Json] = st.one_of(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["inc", "dec", "mul"]), "path": st.sampled_from(NUMBERS), "value": _amounts},
    ),
    st.fixed_dictionaries(
        {"op": st.just("set"), "path": st.sampled_from(["state.note", "state.made"]), "value": scalars},
    ),
    st.fixed_dictionaries({"op": st.just("push"), "path": st.sampled_from(LISTS), "value": scalars}),
    st.fixed_dictionaries({"op": st.just("pop"), "path": st.sampled_from(LISTS)}),
    st.fixed_dictionaries(
        {
            "op": st.just("patch"),
            "path": st.sampled_from(OBJECTS),
            "value": st.dictionaries(st.sampled_from(["p", "n"]), scalars, max_size=2),
        },
    ),
)
_written_lists = st.lists(_writes, min_size=1, max_size=3)
# Scenarios without conditions, quick to make: what their rules write is mostly literal.
literal_specs = st.builds(
    lambda now, later, chance, scope: spec(
        state={"a": 1, "b": 2, "list": [1, 2], "words": [], "tree": {"n": 3}, "flag": True, "note": ""},
        actions=[
            action(
                "a0",
                [*now, {"op": "schedule", "id": "s", "after": 1, "effects": later}],
                derives={"d": 2},
            ),
        ],
        random_events=[event("e", chance, derives={"d": 2}, duration="3h")],
        **scope,
    ),
    _written_lists,
    _written_lists,
    _written_lists,
    st.one_of(st.just({}), scopes),
)


@st.composite
def damaged(draw: st.DrawFn, value: Any) -> Any:
    """A JSON value with one thing in it replaced, removed or added; or as it was."""
    kind = draw(st.sampled_from(["replace", "below", "below", "below", "below", "remove", "add", "keep"]))
    match kind, value:
        case (("below" | "remove"), dict() | list()) if value:
            keys = sorted(value) if isinstance(value, dict) else range(len(value))
            key = draw(st.sampled_from(keys))
            copy = value.copy()
            if kind == "remove":
                del copy[key]
            else:
                copy[key] = draw(damaged(value[key]))
            return copy
        case "add", dict():
            return {**value, draw(st.sampled_from(["id", "rolls", "effects", "more"])): draw(literals)}
        case "add", list():
            return [*value, draw(st.sampled_from([*value, None]))]
        case "replace", _:
            return draw(literals)
    return value
