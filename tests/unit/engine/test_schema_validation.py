from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peripety.engine.schema_validation import MAX_FINDINGS, format_pointer, validate_against_schema
from peripety.engine.schemas import OUTCOME, SCENARIO_SPEC, schema_document
from peripety.engine.schemas.__main__ import main as generate
from support.engine.specs import action, event, spec

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("schema", "value", "code", "message"),
    [
        ({"type": "integer"}, "x", "WRONG_TYPE", '"x" is not of type integer'),
        ({"minimum": 2}, 1, "OUT_OF_RANGE", "1 must be at least 2"),
        ({"exclusiveMaximum": 2}, 2, "OUT_OF_RANGE", "2 must be less than 2"),
        ({"minItems": 1}, [], "TOO_SHORT", "needs at least 1 items"),
        ({"maxLength": 1}, "xx", "TOO_LONG", "may have at most 1 characters"),
        ({"enum": ["a", 1]}, "b", "WRONG_VALUE", '"b" is not one of "a", 1'),
        ({"const": "a"}, "b", "WRONG_VALUE", '"b" must be "a"'),
        ({"pattern": "^a$"}, "b", "WRONG_FORMAT", '"b" does not match ^a$'),
        ({"required": ["a"]}, {}, "MISSING_KEY", "the key 'a' is missing"),
        ({"multipleOf": 2}, 3, "WRONG_VALUE", "3 breaks the schema's rule 'multipleOf'"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "WRONG_VALUE",
         "1 is not allowed; expected null or string"),
    ],
)  # fmt: skip
def test_a_finding_names_the_problem(schema: dict[str, Any], value: Any, code: str, message: str) -> None:
    (finding,) = validate_against_schema(schema, value)
    assert (finding.code, finding.message) == (code, message)


def test_a_finding_of_one_shape_among_several_speaks_of_the_shape_that_was_meant() -> None:
    broken = spec(actions=[action(effects=[{"op": "inc", "path": "state.a", "value": 1, "valeu": 2}])])
    (finding,) = validate_against_schema(schema_document(SCENARIO_SPEC), broken)
    assert (finding.code, finding.path) == ("UNKNOWN_KEY", "/actions/0/effects/0/valeu")
    assert "did you mean 'value'?" in finding.message


def test_all_findings_are_given_in_document_order_up_to_the_cap() -> None:
    broken = {"a": 1, "b": 1, "c": list(range(100))}
    schema = {
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"items": {"type": "string"}}},
    }
    findings = validate_against_schema(schema, broken)
    assert [finding.path for finding in findings[:2]] == ["/a", "/b"]
    assert len(findings) == MAX_FINDINGS


def test_the_tenth_item_comes_after_the_second() -> None:
    findings = validate_against_schema({"items": {"type": "string"}}, list(range(11)))
    assert [finding.path for finding in findings] == [f"/{n}" for n in range(11)]


def test_a_pointer_escapes_what_pointers_must() -> None:
    assert format_pointer(["a/b", "c~d", 0]) == "/a~1b/c~0d/0"


def test_nothing_is_read_or_fetched_for_a_schema(tmp_path: Path) -> None:
    secret = tmp_path / "schema.json"
    secret.write_text('{"type": "string"}')
    with pytest.raises(ValueError, match="must not refer outside itself"):
        validate_against_schema({"$ref": secret.as_uri()}, 1)


def test_the_committed_schemas_are_what_the_models_say() -> None:
    assert generate(["--check"]) == 0


@pytest.mark.parametrize("name", [SCENARIO_SPEC, OUTCOME])
def test_the_committed_schemas_are_schemas(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema_document(name))


keys = st.sampled_from(
    ["id", "name", "state", "seed", "op", "effects", "when", "extra", "path", "value", "weight"],
)
values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 3),
        st.floats(0, 1),
        st.sampled_from(["a", "set", "state.a", ""]),
    ),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=200, deadline=None)
@given(
    section=st.sampled_from(["actions", "random_events", "loss_conditions", "state", "extra"]),
    value=values,
)
def test_the_verdict_is_that_of_an_independent_validator(section: str, value: Any) -> None:
    document = spec(actions=[action()], random_events=[event()]) | {section: value}
    schema = schema_document(SCENARIO_SPEC)
    independent = jsonschema.Draft202012Validator(schema).is_valid(document)
    assert (validate_against_schema(schema, document) == []) == independent
