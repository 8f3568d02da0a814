"""JSONLogic on its own: rules over data parsed once, or given as Python objects."""

from __future__ import annotations

import gc
import json
import math
import time
from collections import OrderedDict
from contextlib import suppress
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.engine._reference.jsonlogic import FUEL, Evaluation
from peripety.engine.backend_protocol import EngineError
from peripety.errors import InvalidArgumentError, ResourceExhaustedError

if TYPE_CHECKING:
    from peripety.engine.backend_protocol import Backend, CompiledRule


def run(core: Backend, logic: Any, data: Any = None) -> Any:
    return json.loads(core.evaluate(json.dumps(logic).encode(), json.dumps(data).encode()))


@pytest.mark.parametrize(
    ("logic", "data", "value"),
    [
        ({"if": [{}, "yes", "no"]}, None, "yes"),
        ({"!!": [{}]}, None, True),
        ({"!!": [[]]}, None, False),
        ({"and": []}, None, False),
        ({"or": []}, None, False),
        ({"+": ["1", 2, True, None, ""]}, None, 4),
        ({"-": [0]}, None, 0),
        ({"*": []}, None, 1),
        ({"%": [-7, 3]}, None, -1),
        ({"/": [2]}, None, 0.5),
        ({"max": {"merge": [[1, 4], 2]}}, None, 4),
        ({"cat": [1.0, "|", 1e21, "|", None, "|", True, "|", [1, [2]]]}, None, "1|1e+21||true|1,2"),
        ({"substr": ["a😀b", 1, 1]}, None, "😀"),
        ({"substr": ["abcdef", -3, -1]}, None, "de"),
        ({"<": ["\ufb33", "\U0001f600"]}, None, True),
        ({"===": [{"var": "a"}, {"var": "b"}]}, {"a": [1, {"k": 2}], "b": [1, {"k": 2}]}, True),
        ({"in": [[1], [[1], 2]]}, None, True),
        ({"in": [1, "12"]}, None, False),
        ({"var": "a.1.b"}, {"a": [0, {"b": 5}]}, 5),
        ({"var": "a[1].b"}, {"a": [0, {"b": 5}]}, 5),
        ({"var": 'a["odd key"]'}, {"a": {"odd key": 6}}, 6),
        ({"var": "a[x"}, {"a[x": 7}, 7),
        ({"var": ["a", 9]}, {"a": None}, None),
        ({"var": ["b", 9]}, {"a": None}, 9),
        ({"missing": ["a", "b"]}, {"a": "", "b": 0}, ["a"]),
        ({"missing_some": [1, ["a", "b"]]}, {"a": 1}, []),
        ({"reduce": [[1, 2, 3], {"+": [{"var": "current"}, {"var": "accumulator"}]}]}, None, 6),
        ({"map": [{"var": "none"}, 1]}, {}, []),
    ],
)
def test_decisions_of_the_dialect(core: Backend, logic: Any, data: Any, value: Any) -> None:
    assert run(core, logic, data) == value


@pytest.mark.parametrize(
    ("logic", "code"),
    [
        ({"nope": 1}, "UNKNOWN_OPERATOR"),
        ({"+": [1], "-": [1]}, "UNKNOWN_OPERATOR"),
        ({"/": [1, 0]}, "DIVISION_BY_ZERO"),
        ({"%": [1, 0]}, "DIVISION_BY_ZERO"),
        ({"*": [1e308, 10]}, "NUMERIC_RANGE"),
        ({"<": [1, "A"]}, "NOT_A_NUMBER"),
        ({"==": [[1], 1]}, "NOT_A_NUMBER"),
        ({"+": ["1abc"]}, "NOT_A_NUMBER"),
        ({"max": []}, "INVALID_ARGUMENTS"),
        ({"min": ["a"]}, "INVALID_ARGUMENTS"),
        ({"all": [None, True]}, "INVALID_ARGUMENTS"),
        ({"cat": [{}]}, "INVALID_ARGUMENTS"),
        ({"if": 5}, "INVALID_ARGUMENTS"),
    ],
)
def test_errors_have_stable_codes(core: Backend, logic: Any, code: str) -> None:
    with pytest.raises(EngineError) as caught:
        run(core, logic)
    assert caught.value.code == code


def doubling(items: int) -> Any:
    accumulator = {"var": "accumulator"}
    return {"reduce": [list(range(items)), {"cat": [accumulator, accumulator]}, "aa"]}


@pytest.mark.parametrize(
    "logic",
    [
        doubling(24),
        {"reduce": [list(range(64)), [{"var": "accumulator"}, {"var": "accumulator"}], 1]},
        {"reduce": [list(range(40)), {"merge": [{"var": "accumulator"}, {"var": "accumulator"}]}, [1]]},
        {"map": [list(range(200)), {"map": [list(range(200)), {"+": [1, 1]}]}]},
        {"merge": [{"var": "big"}] * 9000},
        {"max": {"var": "big"}},
        {"missing": {"var": "big"}},
        {"cat": [{"substr": ["a" * 60_000, 0]}, {"substr": ["b" * 60_000, 0]}]},
    ],
)
def test_no_rule_costs_more_than_its_budget(core: Backend, logic: Any) -> None:
    with pytest.raises(EngineError) as caught:
        run(core, logic, {"big": [1] * 10_001})
    assert caught.value.code == "FUEL_EXHAUSTED"


@pytest.mark.parametrize(
    ("logic", "steps"),
    [
        ({"+": {"var": "a"}}, 5),
        ({"+": [1, "x"]}, 3),
        ({"map": [{"var": "a"}, {"nope": []}]}, 4),
        ({"map": [list(range(200)), {"map": [list(range(200)), 1]}]}, FUEL + 612),
    ],
)
def test_the_steps_of_an_evaluation_are_known_whether_it_succeeds_or_fails(logic: Any, steps: int) -> None:
    evaluation = Evaluation()
    with suppress(EngineError):
        evaluation.evaluate_whole(logic, {"a": [1.0, 2.0]})
    assert evaluation.total_cost == steps


def test_values_nested_by_a_rule_are_bounded_and_never_overflow_the_stack(core: Backend) -> None:
    nest = {"reduce": [list(range(3000)), {"var": ""}, 1]}
    for logic in ({"===": [nest, nest]}, nest, {"in": [nest, [nest]]}):
        with pytest.raises(EngineError) as caught:
            run(core, logic)
        assert caught.value.code in {"FUEL_EXHAUSTED", "TOO_DEEP"}


def test_a_long_path_costs_an_iterator_no_more_than_a_short_one(core: Backend) -> None:
    # If the path were parsed and followed to its end for each element, this would take a minute.
    logic = {"map": [{"var": "list"}, {"var": "a[0]" + ".aa" * 20_000}]}
    started = time.process_time()
    assert run(core, logic, {"list": [0] * 4_000}) == [None] * 4_000
    assert time.process_time() - started < 10


EVERYTHING = {"var": ""}


def rule(core: Backend, logic: Any) -> CompiledRule:
    return core.compile_rule(logic, EngineError)


def refusal(core: Backend, value: Any) -> EngineError:
    with pytest.raises(EngineError) as caught:
        core.parse_data(value, EngineError)
    with pytest.raises(EngineError) as of_rule:
        core.compile_rule(value, EngineError)
    with pytest.raises(EngineError) as of_call:
        rule(core, EVERYTHING).evaluate(value)
    assert caught.value.args == of_rule.value.args == of_call.value.args
    return caught.value


def test_a_rule_reads_parsed_data_and_plain_objects_alike(core: Backend) -> None:
    total = rule(core, {"+": [{"var": "a"}, {"var": "b.0"}]})
    plain = {"a": 1, "b": [2.5]}
    assert total.evaluate(core.parse_data(plain, EngineError)) == 3.5
    assert total.evaluate(core.parse_data(b'{"a": 1, "b": [2.5]}', EngineError)) == 3.5
    assert total.evaluate(plain) == total.evaluate(b'{"a": 1, "b": [2.5]}') == 3.5
    assert total.evaluate(None) == 0


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (7.0, 7),
        (-0.0, 0),
        (0.5, 0.5),
        (2**53 - 1, 2**53 - 1),
        (2.0**53, 2.0**53),
        (1e300, 1e300),
        ("é😀", "é😀"),
        ((1, [2, ()]), [1, [2, []]]),
        ({"b": 1, "a": {"é": None}}, {"a": {"é": None}, "b": 1}),
        (OrderedDict(z=1), {"z": 1}),
        ({str(n): n for n in range(40)}, {str(n): n for n in range(40)}),
        (b' "x" ', "x"),
    ],
)
def test_values_come_back_as_plain_objects(core: Backend, value: Any, read: Any) -> None:
    result = rule(core, EVERYTHING).evaluate(core.parse_data(value, EngineError))
    assert repr(result) == repr({key: read[key] for key in sorted(read)} if isinstance(read, dict) else read)


def test_a_subclass_counts_as_what_it_extends(core: Backend) -> None:
    class Number(IntEnum):
        ONE = 1

    class Word(StrEnum):
        A = "a"

    class Shouting(str):
        __slots__ = ()

        def __str__(self) -> str:
            return self.upper()

    class Half(float):
        __slots__ = ()

    result = rule(core, EVERYTHING).evaluate({Word.A: [Number.ONE, Shouting("b"), Half(0.5)]})
    assert repr(result) == "{'a': [1, 'b', 0.5]}"


def test_a_key_may_run_code_of_its_own_when_it_is_let_go(core: Backend) -> None:
    whole = rule(core, EVERYTHING)

    class Key(str):
        __slots__ = ()

        def __del__(self) -> None:
            whole.evaluate({"k": 1})

    for n in range(2000):
        assert whole.evaluate({Key(n): 1}) == {str(n): 1}


def test_garbage_that_is_collected_while_a_key_is_refused_may_run_code_of_its_own(core: Backend) -> None:
    whole, found, ignored = rule(core, EVERYTHING), [], suppress(EngineError)

    class Garbage:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            try:
                found.append(whole.evaluate({"k": 1}))
            except BaseException as error:  # noqa: BLE001 - a panic is no Exception
                found.append(error)

    thresholds = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for n in range(100):
            refused = {f"\ud800{n}": 1}
            with ignored:
                Garbage()
                core.parse_data(refused, EngineError)
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert found == [{"k": 1}] * 100


def test_a_subclass_counts_as_what_it_extends_whatever_it_says_of_itself(core: Backend) -> None:
    class Longer(list[Any]):
        def __iter__(self) -> Any:
            return iter([1, 2])

    class Pair(tuple[Any, ...]):
        __slots__ = ()

        def __iter__(self) -> Any:
            return iter([1, 2])

    class Short(str):
        __slots__ = ()

        def encode(self, *_: Any) -> bytes:
            return b""

    assert rule(core, EVERYTHING).evaluate([Longer(), Pair("a")]) == [[], ["a"]]
    assert refusal(core, Short("x" * 70_000)).code == "STRING_TOO_LONG"


def test_a_text_that_stands_in_many_places_is_not_read_for_all_of_them(core: Backend) -> None:
    text = "x" * 60_000
    error = refusal(core, [text] * 90_000)
    assert (error.code, error.path) == ("DOCUMENT_TOO_LARGE", "")
    assert error.message == "the texts have more than 67108864 bytes together"
    assert refusal(core, [{f"{n:0255}": 1} for n in range(400)] + [text] * 1200).message == error.message
    assert rule(core, {"var": "0"}).evaluate([text] * 1000) == text


def test_what_a_rule_gives_shares_nothing_with_its_data(core: Backend) -> None:
    plain = {"a": [1, 2]}
    data = core.parse_data(plain, EngineError)
    plain["a"].append(3)
    first = rule(core, EVERYTHING).evaluate(data)
    first["a"].append(4)
    assert rule(core, EVERYTHING).evaluate(data) == {"a": [1, 2]}
    assert rule(core, {"var": ["b", [5]]}).evaluate(data) == [5]


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "code", "message"),
    [
        (2**53, "NUMBER_RANGE", "an integer must lie within ±9007199254740991"),
        (-(10**400), "NUMBER_RANGE", "an integer must lie within ±9007199254740991"),
        (math.nan, "NUMBER_RANGE", "the number does not fit binary64"),
        (-math.inf, "NUMBER_RANGE", "the number does not fit binary64"),
        ([{"a": {1}}], "NOT_JSON", "a set is not a JSON value"),
        (Decimal(1), "NOT_JSON", "a Decimal is not a JSON value"),
        ([b"1"], "NOT_JSON", "a bytes is not a JSON value"),
        ({1: 2}, "NOT_JSON", "the keys of an object are strings"),
        ("\ud800", "LONE_SURROGATE", "a lone surrogate is not a character"),
        ({"\udc00": 1}, "LONE_SURROGATE", "a lone surrogate is not a character"),
        ("é" * 32769, "STRING_TOO_LONG", "longer than 65536 bytes"),
        ({"k" * 257: 1}, "KEY_TOO_LONG", "longer than 256 bytes"),
        (nested(65), "TOO_DEEP", "nested deeper than 64 levels"),
        ([0] * 100_000, "TOO_MANY_NODES", "more than 100000 values"),
        (b"{", "INVALID_JSON", "expected a key in double quotes (line 1, column 2)"),
    ],
)
def test_what_json_or_the_border_cannot_hold_is_refused(
    core: Backend,
    value: Any,
    code: str,
    message: str,
) -> None:
    error = refusal(core, value)
    assert (error.code, error.message, error.path) == (code, message, "")


def test_what_just_fits_is_accepted(core: Backend) -> None:
    for value in ([0] * 99_999, nested(64), {"k" * 256: "é" * 32768}):
        core.parse_data(value, EngineError)
        core.compile_rule(value, EngineError)


def test_an_object_that_holds_itself_is_refused(core: Backend) -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert refusal(core, loop).code == "TOO_DEEP"
    wide: list[Any] = []
    for _ in range(40):
        wide = [wide, wide]
    assert refusal(core, wide).code == "TOO_MANY_NODES"


def test_an_expression_is_wrong_only_where_it_is_evaluated(core: Backend) -> None:
    guarded = rule(core, {"if": [{"var": "a"}, {"/": [1, 0]}, {"nope": 1}]})
    for a, code in ((1, "DIVISION_BY_ZERO"), (0, "UNKNOWN_OPERATOR")):
        with pytest.raises(EngineError) as caught:
            guarded.evaluate({"a": a})
        assert caught.value.code == code


def test_what_does_not_depend_on_the_data_costs_what_it_always_did(core: Backend) -> None:
    constant = {"map": [[1, 2, 3], {"*": [{"var": ""}, 2]}]}  # 17 steps
    counted = rule(core, {"all": [{"var": "items"}, {"!!": [{"!!": [constant]}]}]})
    assert counted.evaluate({"items": [0] * 526}) is True
    with pytest.raises(EngineError) as caught:
        counted.evaluate({"items": [0] * 527})
    assert caught.value.message == "the expression needs more than 10000 steps"


def test_the_public_functions_raise_the_errors_of_the_package() -> None:
    assert engine.compile_rule({"+": [{"var": "a"}, 1]}).evaluate(engine.parse_data({"a": 1})) == 2
    assert engine.evaluate({"var": "a"}, {"a": [1.0, 0.5]}) == [1, 0.5]
    with pytest.raises(InvalidArgumentError) as caught:
        engine.compile_rule({"/": [1, {"var": ""}]}).evaluate(0)
    assert caught.value.code == "DIVISION_BY_ZERO"
    with pytest.raises(ResourceExhaustedError):
        engine.evaluate({"max": {"var": ""}}, [1] * 10_000)
    for call in (engine.compile_rule, engine.parse_data, engine.evaluate):
        with pytest.raises(InvalidArgumentError) as caught:
            call({1: 2})
        assert caught.value.code == "NOT_JSON"
