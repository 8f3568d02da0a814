"""Random scenarios of which every value keeps its kind: what generated source plays to the end."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

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
NUMBERS = ("state.n0", "state.n1", "state.tree.n2", "state.tree.deep[0].n3", "state.tree.deep[1].n3")
TEXTS = ("x", "y", "é", "12")

_small = st.sampled_from([0, 1, 2, 3, -1, 0.5, 2.5, 10, -7])
_texts = st.sampled_from(TEXTS)
_read_number = st.sampled_from([*NUMBERS, "state.tree.deep.1.n3", "state.limit", "turn"]).map(
    lambda path: {"var": path},
)
_read_text = st.just({"var": "state.mode"})
_read_flag = st.sampled_from([{"var": "state.flag"}, {"var": "state.tree.made"}])
_marks = st.sampled_from([{"var": "state.marks"}, {"var": "state.empty"}, [1, 2]])


def _call(name: str, *arguments: Strategy) -> Strategy:
    return st.tuples(*arguments).map(lambda values: {name: list(values)})


def _numbers(inner: Strategy, drawn: Strategy) -> Strategy:
    lists = st.one_of(
        _marks,
        _call("filter", _marks, st.just({">": [{"var": ""}, 1]})),
        _call("map", _marks, st.sampled_from([{"*": [{"var": ""}, 2]}, {"-": [3, {"var": ""}]}])),
    )
    fold = st.sampled_from(
        [
            {"+": [{"var": "current"}, {"var": "accumulator"}]},
            {"if": [{">": [{"var": "current"}, 1]}, {"var": "accumulator"}, {"var": "current"}]},
        ],
    )
    flag = st.one_of(_read_flag, _call("<", inner, inner))
    return st.one_of(
        st.sampled_from(["+", "-", "*", "min", "max"]).flatmap(
            lambda name: st.lists(inner, min_size=1, max_size=3).map(lambda values: {name: values}),
        ),
        st.sampled_from(["/", "%"]).flatmap(lambda name: _call(name, inner, st.one_of(inner, _small))),
        _call("if", flag, inner, inner),
        _call("+", drawn, _read_flag),
        _call("reduce", lists, fold, _small),
        lists.filter(lambda value: isinstance(value, dict)).map(lambda value: {"+": value}),
        _call("merge", lists, inner).map(lambda value: {"max": value}),
        _call("+", inner, st.just({"substr": ["12", 0, 1]})),
        st.just({"max": {"var": "state.marks"}}),
        st.just({"var": "state.marks.0"}),
        st.just({"var": ["state.tree.nothing", 3]}),
        st.sampled_from([{"var": "state.none"}, {"var": ["state.new", 3]}, {"var": "state.new"}]),
    )


def _drawn(params: tuple[str, ...]) -> Strategy:
    """Something that is drawn for the action, if anything is."""
    return st.sampled_from([1, *({"var": f"params.{name}"} for name in params if name in "ino")])


@cache  # made once: to make strategies is slower than to draw from them
def numbers(params: tuple[str, ...] = ()) -> Strategy:
    """Expressions that are numbers, or fail."""
    drawn = _drawn(params)
    return st.recursive(
        st.one_of(_small, _read_number, drawn),
        lambda inner: _numbers(inner, drawn),
        max_leaves=6,
    )


@cache
def texts(params: tuple[str, ...] = ()) -> Strategy:
    """Expressions that are texts."""
    number = numbers(params)
    return st.one_of(
        _read_text,
        _call("cat", _texts, number, _read_flag),
        _call("cat", _read_text, st.just({"var": "state.none"}), _marks),
        _call("substr", _read_text, number),
        st.tuples(_texts, st.sampled_from([0, 1, -1, 5]), st.sampled_from([1, -1, 9])).map(
            lambda values: {"substr": list(values)},
        ),
        _call("cat", _call("if", _read_flag, _texts)),
    )


@cache
def truths(params: tuple[str, ...] = ()) -> Strategy:
    """Expressions that are booleans, or fail."""
    number = numbers(params)
    order = st.sampled_from(["<", "<=", ">", ">=", "==", "!=", "===", "!=="])
    element = st.sampled_from([{">": [{"var": ""}, 1]}, {"%": [{"var": ""}, 2]}, {"==": [{"var": ""}, 2]}])
    leaf = st.one_of(
        order.flatmap(lambda name: _call(name, number, number)),
        _call("<", number, number, number),
        st.sampled_from(["==", "!==", "<"]).flatmap(lambda name: _call(name, _read_text, _texts)),
        _call("==", _read_flag, st.sampled_from([0, 1, True])),
        st.sampled_from(["==", "!=", "<"]).flatmap(lambda name: _call(name, texts(params), _texts)),
        _call("<", _call("cat", number), number),
        st.sampled_from(
            [
                {"missing": ["state.mode", "state.none", "state.new", "state.nothing"]},
                {"missing_some": [1, ["state.none", "state.new"]]},
                {"missing": "state.mode"},
            ],
        ),
        _call("==", number, st.sampled_from(["3", " 2 ", None, True])),
        st.just({"in": [{"var": "state.mode"}, {"var": "state.bag"}]}),
        st.just({"in": [{"var": "state.mode"}, "xyz"]}),
        st.sampled_from([{"===": [{"var": "state.none"}, None]}, {"!": [{"var": "state.new"}]}]),
        _call("in", number, st.one_of(_marks, st.just([{"var": "state.n0"}, 3]))),
        st.sampled_from(["all", "some", "none"]).flatmap(lambda name: _call(name, _marks, element)),
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.sampled_from(["and", "or"]).flatmap(
                lambda name: st.lists(st.one_of(inner, _read_flag), min_size=1, max_size=3).map(
                    lambda values: {name: values},
                ),
            ),
            st.sampled_from(["!", "!!"]).flatmap(lambda name: _call(name, inner)),
            _call("if", inner, inner, inner),
        ),
        max_leaves=4,
    )


@cache
def effects(derived: tuple[str, ...], depth: int = 0) -> Strategy:
    """Lists of effects that change no kind; `derived` names numbers."""
    names = st.sampled_from(derived) if derived else st.nothing()
    number = st.sampled_from(NUMBERS)
    kinds: list[Strategy] = [
        st.fixed_dictionaries(
            {"op": st.sampled_from(["inc", "dec", "mul"]), "path": number, "value": st.one_of(_small, names)},
        ),
        st.fixed_dictionaries({"op": st.just("set"), "path": number, "value": st.one_of(_small, names)}),
        st.fixed_dictionaries({"op": st.just("set"), "path": st.just("state.flag"), "value": st.booleans()}),
        st.fixed_dictionaries({"op": st.just("set"), "path": st.just("state.mode"), "value": _texts}),
        st.fixed_dictionaries(
            {
                "op": st.sampled_from(["set", "set", "set", "inc"]),
                "path": st.sampled_from(["state.none", "state.new"]),
                "value": st.one_of(_small, names),
            },
        ),
        st.sampled_from(
            [
                {"op": "set", "path": "state.none", "value": None},
                {"op": "set", "path": "state.tree.made", "value": True},
            ],
        ),
        st.fixed_dictionaries(
            {"op": st.just("set"), "path": st.just("state.marks"), "value": st.lists(_small, max_size=3)},
        ),
        st.fixed_dictionaries(
            {"op": st.just("inc"), "path": st.just("state.marks[1]"), "value": st.one_of(_small, names)},
        ),
        st.fixed_dictionaries(
            {
                "op": st.just("push"),
                "path": st.sampled_from(["state.marks", "state.empty"]),
                "value": st.one_of(_small, names),
            },
        ),
        st.fixed_dictionaries({"op": st.just("push"), "path": st.just("state.bag"), "value": _texts}),
        st.fixed_dictionaries({"op": st.just("pop"), "path": st.sampled_from(["state.marks", "state.bag"])}),
        st.fixed_dictionaries(
            {
                "op": st.just("patch"),
                "path": st.just("state"),
                "value": st.fixed_dictionaries(
                    {},
                    optional={"n1": _small, "flag": st.booleans(), "mode": _texts},
                ),
            },
        ),
        st.fixed_dictionaries({"op": st.just("addlog"), "message": _texts}),
    ]
    if depth < 2:
        when = st.sampled_from([{"after": 1}, {"after": "2h"}, {"at": 4}, {"at": 1}])
        inner = st.deferred(lambda: effects(derived, depth + 1)).filter(bool)
        entry = st.fixed_dictionaries(
            {"op": st.just("schedule"), "id": st.sampled_from(["s", "t", "u"]), "effects": inner},
        )
        kinds.append(st.tuples(entry, when).map(_merged))
    return st.lists(st.one_of(kinds), max_size=3)


def _merged(parts: tuple[Json, Json]) -> Json:
    return {**parts[0], **parts[1]}


_PARAMS = {
    "i": {"type": "integer", "minimum": -2, "maximum": 3},
    "n": {"type": "number", "minimum": 0, "maximum": 1.5},
    "o": {"type": "number", "enum": [1, 2.5, 4]},
    "s": {"type": "string", "enum": ["x", "é"]},
    "t": {"type": "string", "maxLength": 4},
    "b": {"type": "boolean"},
}
_NAMES = [(), (), ("i",), ("n", "s"), ("o", "t"), ("b", "i", "n"), ("s",)]


@st.composite
def _rule(draw: st.DrawFn, params: tuple[str, ...] = ()) -> Json:
    derives = draw(st.dictionaries(st.sampled_from(["d1", "d2"]), numbers(params), max_size=2))
    if "d1" in derives and draw(st.booleans()):
        derives["d3"] = {"-": [{"var": "derives.d1"}, 1]}
    rule: Json = {"effects": draw(effects(tuple(sorted(derives))))}
    if draw(st.integers(0, 3)) == 3:
        derives["d4"] = draw(texts(params))
        operation, path = draw(st.sampled_from([("set", "state.mode"), ("push", "state.bag")]))
        rule["effects"] = [*rule["effects"], {"op": operation, "path": path, "value": "d4"}]
    return {**rule, "derives": derives} if derives else rule


@st.composite
def _action(draw: st.DrawFn, number: int) -> Json:
    names = draw(st.sampled_from(_NAMES))
    preconditions: Json = draw(st.one_of(st.just({}), truths(names), truths()))
    suited = [name for name in names if name in {"s", "b"}]
    if draw(st.booleans()) and suited:
        name = suited[0]
        preconditions = {"==": [{"var": f"params.{name}"}, "x" if name == "s" else {"var": "state.flag"}]}
    return {
        "id": f"a{number}",
        "params": {name: _PARAMS[name] for name in names},
        "preconditions": preconditions,
        **draw(_rule(names)),
    }


@st.composite
def steady_specs(draw: st.DrawFn) -> Json:
    """A scenario whose values keep their kinds; its rules may still fail when they run."""
    events = [
        {
            "id": f"e{n}",
            "weight": draw(st.sampled_from([0.05, 0.1, 0.25, 0.3])),
            "when": draw(st.one_of(st.just({}), truths())),
            **draw(_rule()),
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
        "actions": [draw(_action(n)) for n in range(draw(st.integers(1, 5)))],
        "random_events": events,
        "loss_conditions": [
            {"id": "l1", "when": draw(truths())},
            {"id": "l2", "when": {"<": [{"var": "state.n0"}, -20]}},
        ],
        "win_conditions": [{"id": "w1", "when": {">": [{"var": "state.n1"}, 40]}}],
        "negativity_budget": {
            "min_fail_rate": 0.25,
            "decay_per_turn": draw(st.sampled_from([{}, {"state.n0": 0.5}, {"state.tree.deep[0].n3": 1}])),
        },
        "clock": {"turn": draw(st.sampled_from(["1h", "1d"]))},
    }
