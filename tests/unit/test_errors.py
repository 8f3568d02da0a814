"""The tree of errors: complete, documented, and kind by kind."""

from __future__ import annotations

import pytest

from peripety import errors
from peripety.errors import (
    ErrorKind,
    FieldViolation,
    Finding,
    InvalidArgumentError,
    PeripetyError,
    Severity,
    SpecError,
)
from support.repo.repository import ALL_ERRORS, example


@pytest.mark.parametrize("kind", ErrorKind)
def test_every_kind_has_a_class_that_is_the_first_of_its_kind(kind: ErrorKind) -> None:
    direct = [c for c in PeripetyError.__subclasses__() if c.kind is kind]
    assert len(direct) == 1


@pytest.mark.parametrize("error", ALL_ERRORS)
def test_every_class_is_exported_and_drawn_in_the_docstring(error: type[PeripetyError]) -> None:
    assert error.__name__ in errors.__all__
    assert f"{error.__name__} " in (errors.__doc__ or "")


@pytest.mark.parametrize("error", ALL_ERRORS)
def test_a_class_brings_its_own_code_unless_one_is_given(error: type[PeripetyError]) -> None:
    assert example(error, code=None).code == error.default_code
    assert example(error, code="OTHER").code == "OTHER"


def test_the_text_of_an_error_is_its_message_alone() -> None:
    error = InvalidArgumentError("a is required", details={"key": "value"})
    assert str(error) == "a is required"


def test_a_spec_error_shows_each_finding_as_a_violation_and_keeps_the_findings() -> None:
    findings = [Finding("A", "/b/0", "must be smaller"), Finding("C", "", "is empty", Severity.WARNING)]
    error = SpecError("refused", findings)
    assert [(v.field, v.reason) for v in error.violations] == [
        ("/b/0", "A: must be smaller"),
        ("/", "C: is empty"),
    ]
    assert error.findings == tuple(findings)
    assert isinstance(error, InvalidArgumentError)


@pytest.mark.parametrize(
    ("path", "field"),
    [(".seats[0].seat_id", "seats[0].seat_id"), ("seed", "seed"), ("/a/0", "/a/0"), ("", "")],
)
def test_a_field_path_never_has_a_leading_dot(path: str, field: str) -> None:
    assert FieldViolation(path, "is required").field == field
