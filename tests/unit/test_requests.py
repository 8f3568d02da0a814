from __future__ import annotations

import uuid

import pytest

from peripety.errors import InvalidArgumentError
from peripety.requests import check_request_id

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
    assert [violation.field for violation in caught.value.violations] == [".request_id"]
