from __future__ import annotations

import json

from peripety.core.runs.types import decode_error, encode_error
from peripety.errors import FieldViolation, InvalidArgumentError


def test_a_stored_error_is_read_as_it_was() -> None:
    violation = FieldViolation("seed", "is negative")
    error = InvalidArgumentError("a", code="B", details={"c": "d"}, violations=[violation], retry_after=1.5)
    read = decode_error(encode_error(error))
    assert isinstance(read, InvalidArgumentError)
    assert vars(read) == vars(error)


def test_an_error_that_an_earlier_version_stored_has_the_present_reason_and_paths() -> None:
    written = json.loads(encode_error(InvalidArgumentError("a", code="TURN_TAKEN_BACK")) or "")
    written["violations"] = [[".request_id", "was used"]]
    read = decode_error(json.dumps(written))
    assert read is not None
    assert (read.code, read.violations) == ("TURN_REWOUND", (FieldViolation("request_id", "was used"),))
