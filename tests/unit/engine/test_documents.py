"""Documents that have to be in canonical form already, and where two of them differ."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from peripety import engine
from peripety.engine import ABSENT
from peripety.engine.json_values import find_differences, format_part
from peripety.errors import InvalidArgumentError, SpecError
from support.engine.specs import action, document, event, full_spec, spec


@pytest.mark.parametrize("value", [{"a": 1e17, "é": [None, True, 0.5, "x"]}, {"": {}}, [], "text", 2**53 - 1])
def test_what_is_in_canonical_form_is_read_as_it_was_written(value: Any) -> None:
    assert engine.parse_canonical(engine.canonicalize(value)) == value


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b'{"b":1,"a":2}', "NOT_CANONICAL"),
        (b'{"a": 1}', "NOT_CANONICAL"),
        (b'{"a":1.0}', "NOT_CANONICAL"),
        (b'{"a":1,"a":1}', "NOT_CANONICAL"),
        (b'"\\u00e9"', "NOT_CANONICAL"),
        (b"1e2", "NOT_CANONICAL"),
        (b"\xef\xbb\xbf1", "INVALID_JSON"),
        (b"1 2", "INVALID_JSON"),
        (b"", "INVALID_JSON"),
        (b"[" * 100_000, "INVALID_JSON"),
        (b"[" * 90 + b"]" * 90, "TOO_DEEP"),
        (b"NaN", "NUMBER_RANGE"),
        (b"Infinity", "NUMBER_RANGE"),
        (b"1" + b"0" * 400, "NUMBER_RANGE"),
        (b'"\xff"', "INVALID_UTF8"),
        ("1".encode("utf-16"), "INVALID_UTF8"),
    ],
)
def test_what_is_not_is_refused(text: bytes, code: str) -> None:
    with pytest.raises(SpecError) as caught:
        engine.parse_canonical(text)
    assert caught.value.code == code


def test_a_canonical_specification_is_compiled_and_checked_like_any() -> None:
    canonical = engine.compile(document(state={"a": 10, "b": 2e17})).document
    assert (
        engine.compile_canonical(canonical).spec_hash
        == engine.compile(document(state={"a": 10, "b": 2e17})).spec_hash
    )
    with pytest.raises(SpecError) as caught:
        engine.compile_canonical(document())
    assert caught.value.code == "NOT_CANONICAL"
    with pytest.raises(SpecError) as caught:
        engine.compile_canonical(b'{"a":1}')
    assert {finding.code for finding in caught.value.findings} == {"MISSING_KEY", "UNKNOWN_KEY"}


def test_the_least_parts_that_differ_are_told() -> None:
    one = {"a": 1, "b": [1, {"c": 1}], "d": [1], "e": 0, "g": 1}
    other = {"a": True, "b": [1, {"c": 2}], "d": [1, 2], "f": 0, "g": 1.0}
    assert list(find_differences(one, other)) == [
        (("a",), 1, True),
        (("b", 1, "c"), 1, 2),
        (("d",), [1], [1, 2]),
        (("e",), 0, ABSENT),
        (("f",), ABSENT, 0),
    ]
    assert [format_part(value) for value in (ABSENT, [1, 2], "x", {"a": "y" * 100})][:3] == [
        "nothing",
        "a list of 2",
        '"x"',
    ]
    assert len(format_part("y" * 100)) == 61


_VALID = document()
_INVALID = document(actions=[action("a"), action("a")])


def test_each_document_is_checked_on_its_own_and_in_order() -> None:
    documents = [_VALID, b"{", _INVALID, _VALID, b"\xff", document(seed=-1), document(id="beta")]
    checked = engine.validate_many(documents)
    assert [list(one.findings) for one in checked] == [engine.validate(given) for given in documents]
    assert [one.program is None for one in checked] == [False, True, True, False, True, True, False]


def test_a_document_has_a_content_address_unless_it_is_no_json() -> None:
    good, bad, none = engine.validate_many([_VALID, _INVALID, b"{"])
    assert good.spec_hash == engine.compile(_VALID).spec_hash
    assert bad.spec_hash == hashlib.sha256(engine.canonicalize(engine.parse(_INVALID))).hexdigest()
    assert none.spec_hash == ""


def test_the_program_is_the_one_that_compiling_makes() -> None:
    (checked,) = engine.validate_many([_VALID])
    compiled = engine.compile(_VALID)
    assert checked.program is not None
    assert (checked.program.document, checked.program.spec) == (compiled.document, compiled.spec)
    assert checked.program.spec_hash == compiled.spec_hash
    assert checked.program.dry_run(runs=20, digest=True) == compiled.dry_run(runs=20, digest=True)


def test_nothing_is_nothing() -> None:
    assert engine.validate_many([]) == []


@pytest.mark.parametrize("threads", [0, 257])
def test_the_number_of_threads_has_bounds(threads: int) -> None:
    with pytest.raises(InvalidArgumentError):
        engine.validate_many([_VALID], threads=threads)


def original_spelling() -> dict[str, Any]:
    document = full_spec()
    for section, key in (
        ("actions", "preconditions"),
        ("random_events", "when"),
        ("loss_conditions", "when"),
        ("win_conditions", "when"),
    ):
        for rule in document[section]:
            rule[key] = {"jsonlogic": rule[key]}
            if "derives" in rule:
                rule["derives"] = {"jsonlogic": rule["derives"]}
    patch = {"op": "patch", "path": "state", "valueObject": {"b": 3}}
    later = {"op": "schedule", "id": "later", "after": 1, "effects": [dict(patch)]}
    document["actions"][0]["effects"] += [patch, later]
    return document


def canonical_spelling() -> dict[str, Any]:
    document = full_spec()
    patch = {"op": "patch", "path": "state", "value": {"b": 3}}
    later = {"op": "schedule", "id": "later", "after": 1, "effects": [dict(patch)]}
    document["actions"][0]["effects"] += [patch, later]
    return document


def test_both_spellings_are_one_document() -> None:
    one, other = json.dumps(original_spelling()).encode(), json.dumps(canonical_spelling()).encode()
    assert engine.validate(one) == engine.validate(other) == []
    assert engine.compile(one).document == engine.compile(other).document
    first, second = engine.validate_many([one, other])
    assert first.spec_hash == second.spec_hash == engine.compile(one).spec_hash


def test_a_derived_value_may_have_the_name_of_the_wrapper() -> None:
    named = action("act", [{"op": "inc", "path": "state.a", "value": "jsonlogic"}])
    named["derives"] = {"jsonlogic": {"+": [1, 2]}}
    document = json.dumps(spec(actions=[named]))
    assert engine.validate(document) == []
    assert engine.compile(document).spec["actions"][0]["derives"] == named["derives"]


def test_static_findings_appear_beside_violations_of_the_schema() -> None:
    """An unknown operation in one action hides no unknown path in another."""
    wrong = action("one", [{"op": "assign", "path": "state.new", "value": 1}])
    reading = action("two", [{"op": "inc", "path": "state.zz", "value": 1}])
    using = action("three", [{"op": "inc", "path": "state.new", "value": 1}])
    keyed = {**action("four", [{"op": "inc", "path": "state.yy", "value": 1}]), "cost": 3}
    broken = event("five", when={"<": [{"var": "state.xx"}, 1]})
    found = engine.validate(document(actions=[wrong, reading, using, keyed], random_events=[broken]))
    assert [(finding.code, finding.path) for finding in found] == [
        ("UNKNOWN_OP", "/actions/0/effects/0"),
        ("UNKNOWN_KEY", "/actions/3/cost"),
        ("UNKNOWN_PATH", "/actions/1/effects/0"),
        ("UNKNOWN_PATH", "/random_events/0/when/</0/var"),
    ]


@pytest.mark.parametrize(
    "parts",
    [
        {"state": 1},
        {"actions": 1},
        {"entities": [1]},
        {"id": ""},
    ],
)
def test_a_document_without_a_sound_rest_has_only_the_findings_of_its_schema(parts: dict[str, Any]) -> None:
    reading = action("two", [{"op": "inc", "path": "state.zz", "value": 1}])
    found = engine.validate(document(**{"actions": [reading], **parts}))
    assert found
    assert "UNKNOWN_PATH" not in {finding.code for finding in found}


@pytest.mark.parametrize(
    "parts",
    [
        {"negativity_budget": {}},
        {"horizon": "x"},
        {"loss_conditions": [{"id": "a", "when": 1}, {"id": "b"}]},
        {"random_events": [{"id": "a", "weight": 9, "when": {}, "effects": [{"op": "inc"}]}]},
        {"win_conditions": [{"when": {}}, 7]},
    ],
)
def test_other_parts_are_checked_whatever_is_wrong_with_one(parts: dict[str, Any]) -> None:
    reading = action("two", [{"op": "inc", "path": "state.zz", "value": 1}])
    found = engine.validate(document(**{"actions": [reading], **parts}))
    assert found[-1].path == "/actions/0/effects/0"
    assert len(found) > 1
