from __future__ import annotations

import pytest

from peripety.simulator.failures import KINDS, Place, embedded, refusal
from peripety.simulator.model import ErrorKind, RetryForm, RetryHint
from peripety.simulator.scenario.model import Failure


def failure(kind: str, **settings: object) -> Failure:
    return Failure(kind, {**KINDS[kind].defaults, **settings})


@pytest.mark.parametrize("name", KINDS)
def test_exactly_the_kinds_that_are_errors_refuse_a_request(name: str) -> None:
    refused = refusal(failure(name), stream=True) is not None
    assert refused == (KINDS[name].place is Place.ERROR)


def test_each_error_is_one_of_its_own() -> None:
    errors = [refusal(failure(name), stream=True) for name in KINDS]
    kinds = [error.kind for error in errors if error]
    assert len(kinds) == len(set(kinds)) == 12


def test_an_error_says_what_the_scenario_says() -> None:
    error = refusal(failure("invalid_request", message="no such field", param="top_k"), stream=False)
    assert error is not None
    assert (error.message, error.param) == ("no such field", "top_k")


@pytest.mark.parametrize("form", RetryForm)
def test_a_rate_limit_says_when_to_come_back_in_the_wanted_form(form: RetryForm) -> None:
    error = refusal(failure("rate_limit", retry_after=2.5, form=form.value), stream=False)
    assert error is not None
    assert error.retry == RetryHint(2.5, form)


def test_an_overloaded_provider_need_not_say_when_to_come_back() -> None:
    error = refusal(failure("overloaded"), stream=False)
    assert error is not None
    assert error.retry is None


def test_a_server_error_has_the_wanted_status() -> None:
    error = refusal(failure("server_error", status=599), stream=False)
    assert error is not None
    assert error.status == 599


def test_an_error_in_a_stream_refuses_what_is_not_streamed() -> None:
    error = refusal(failure("error_in_stream", error="timeout"), stream=False)
    assert error is not None
    assert error.kind is ErrorKind.TIMEOUT


def test_an_error_inside_an_answer_has_its_own_words_unless_told_otherwise() -> None:
    assert embedded(failure("error_in_200", error="rate_limit")).message == "Rate limit exceeded"
    assert embedded(failure("error_in_200", error="rate_limit", message="slow down")).message == "slow down"
