"""Followers of a run hear of failures that are theirs; others are found in the log by the id of the run."""

from __future__ import annotations

import logging

import pytest

from peripety.core.runs.types import public_error
from peripety.errors import InternalError, UnavailableError


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
