from __future__ import annotations

import pytest

from peripety.llmsim.faults.injection import embedded_error, fault_error
from peripety.llmsim.faults.kinds import KINDS, FaultStage
from peripety.llmsim.script.types import Fault
from peripety.llmsim.types import ApiErrorKind, RetryForm, RetryHint


def failure(kind: str, **settings: object) -> Fault:
    return Fault(kind, {**KINDS[kind].default_settings, **settings})


@pytest.mark.parametrize("name", KINDS)
def test_exactly_the_kinds_that_are_errors_refuse_a_request(name: str) -> None:
    refused = fault_error(failure(name), stream=True) is not None
    assert refused == (KINDS[name].stage is FaultStage.ERROR)


def test_each_error_is_one_of_its_own() -> None:
    errors = [fault_error(failure(name), stream=True) for name in KINDS]
    kinds = [error.kind for error in errors if error]
    assert len(kinds) == len(set(kinds)) == 12


def test_an_error_says_what_the_scenario_says() -> None:
    error = fault_error(failure("invalid_request", message="no such field", param="top_k"), stream=False)
    assert error is not None
    assert (error.message, error.param) == ("no such field", "top_k")


@pytest.mark.parametrize("form", RetryForm)
def test_a_rate_limit_says_when_to_come_back_in_the_wanted_form(form: RetryForm) -> None:
    error = fault_error(failure("rate_limit", retry_after=2.5, form=form.value), stream=False)
    assert error is not None
    assert error.retry == RetryHint(2.5, form)


def test_an_overloaded_provider_need_not_say_when_to_come_back() -> None:
    error = fault_error(failure("overloaded"), stream=False)
    assert error is not None
    assert error.retry is None


def test_a_server_error_has_the_wanted_status() -> None:
    error = fault_error(failure("server_error", status=599), stream=False)
    assert error is not None
    assert error.status == 599


def test_an_error_in_a_stream_refuses_what_is_not_streamed() -> None:
    error = fault_error(failure("error_in_stream", error="timeout"), stream=False)
    assert error is not None
    assert error.kind is ApiErrorKind.TIMEOUT


def test_an_error_inside_an_answer_has_its_own_words_unless_told_otherwise() -> None:
    assert embedded_error(failure("error_in_200", error="rate_limit")).message == "Rate limit exceeded"
    assert (
        embedded_error(failure("error_in_200", error="rate_limit", message="slow down")).message
        == "slow down"
    )
