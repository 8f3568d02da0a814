"""Followers of a run hear of failures that are theirs; others are found in the log by the id of the run."""

from __future__ import annotations

import json
import logging

import pytest

from peripety.core.runs.types import decode_error, encode_error, public_error
from peripety.errors import FieldViolation, InternalError, InvalidArgumentError, UnavailableError


def test_what_concerns_a_follower_is_told_as_it_is() -> None:
    error = UnavailableError("try again")
    assert public_error(error, "run_1") is error


@pytest.mark.parametrize("error", [RuntimeError("a secret"), InternalError("a secret")])
def test_a_defect_is_logged_under_the_id_that_is_to_be_quoted(
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    with caplog.at_level(logging.ERROR):
        told = public_error(error, "run_1")
    assert isinstance(told, InternalError)
    assert "quote the id of the run" in told.message
    assert "secret" not in told.message
    assert [getattr(record, "run_id", None) for record in caplog.records] == ["run_1"]


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
