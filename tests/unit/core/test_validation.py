from __future__ import annotations

import uuid

import pytest

from peripety.core.validation import check_request_id, normalize_uuid
from peripety.errors import InvalidArgumentError, field_error

ID = "0b5f1a9e-6c2d-4e7f-8a3b-1c2d3e4f5a6b"


def test_a_canonical_uuid_names_a_request() -> None:
    check_request_id(ID)
    check_request_id(str(uuid.uuid4()))


@pytest.mark.parametrize(
    "spelling",
    [
        "",
        ID.upper(),
        uuid.UUID(ID).hex,
        f"{{{ID}}}",
        f"urn:uuid:{ID}",
        f"{ID}\n",
        ID.replace("0", "\u0660"),
    ],
)
def test_another_spelling_of_a_uuid_is_refused_so_that_one_request_has_one_name(spelling: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check_request_id(spelling)
    assert [violation.field for violation in caught.value.violations] == ["request_id"]


def test_a_uuid_in_upper_case_is_normalized() -> None:
    assert normalize_uuid(ID.upper()) == normalize_uuid(ID.title()) == normalize_uuid(ID) == ID


@pytest.mark.parametrize("text", ["", "ABC", ID.upper()[:-1], f"{ID.upper()}\n", uuid.UUID(ID).hex.upper()])
def test_other_text_is_not_normalized(text: str) -> None:
    assert normalize_uuid(text) == text


def test_a_field_path_has_no_leading_dot() -> None:
    error = field_error(".seats[0].seat_id", "is required")
    assert error.message == "seats[0].seat_id is required"
    assert error.violations[0].field == "seats[0].seat_id"
