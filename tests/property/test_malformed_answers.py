"""Answers as models spoil them: whatever was done to one, there is a valid value or a reason."""

from __future__ import annotations

import itertools
from random import Random
from typing import TYPE_CHECKING

import jsonschema
import pytest

from peripety.errors import InvalidArgumentError
from peripety.gateway.structured_output.incremental_json import GrowingValue
from peripety.gateway.structured_output.validator import parse_json_with_schema
from support.gateway.corruptions import (
    ANYTHING,
    BEYOND_REPAIR,
    MANNERS,
    SCHEMA,
    WHOLE,
    answer,
    begins,
    corpus,
    cut_off,
    in_a_fence,
    in_prose,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Callable


ORACLE = jsonschema.Draft202012Validator(SCHEMA)
SEEDS = range(400)


def refusal(text: str) -> InvalidArgumentError:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_json_with_schema(text, SCHEMA)
    assert caught.value.code in {"NOT_JSON", "SCHEMA_MISMATCH"}
    assert all(violation.field.startswith("/") for violation in caught.value.violations)
    assert caught.value.violations
    return caught.value


@pytest.mark.parametrize("spoil", [*WHOLE, *MANNERS], ids=lambda spoil: spoil.__name__)
def test_what_is_only_wrapped_or_badly_mannered_comes_back_equal(
    spoil: Callable[[Random, str], str],
) -> None:
    for seed in SEEDS:
        random = Random(seed)
        value = answer(random)
        text = spoil(random, written(random, value))
        assert parse_json_with_schema(text, SCHEMA) == value, text
        wrapped = in_prose(random, in_a_fence(random, text))
        assert parse_json_with_schema(wrapped, SCHEMA) == value, wrapped


@pytest.mark.slow_after(2, reason="spoils many answers")
@pytest.mark.parametrize("spoil", BEYOND_REPAIR, ids=lambda spoil: spoil.__name__)
def test_what_no_reading_makes_valid_is_refused_with_the_reason(spoil: Callable[[Random, str], str]) -> None:
    for seed in SEEDS:
        random = Random(seed)
        text = written(random, answer(random))
        refusal(spoil(random, text))


@pytest.mark.parametrize("manners", MANNERS, ids=lambda spoil: spoil.__name__)
def test_an_answer_that_was_cut_off_is_never_completed(manners: Callable[[Random, str], str]) -> None:
    for seed in SEEDS:
        random = Random(seed)
        text = manners(random, written(random, answer(random))).rstrip()
        refusal(cut_off(random, text))


@pytest.mark.parametrize("spoil", ANYTHING, ids=lambda spoil: spoil.__name__)
def test_whatever_else_was_done_there_is_a_valid_value_or_a_reason(
    spoil: Callable[[Random, str], str],
) -> None:
    for seed in SEEDS:
        random = Random(seed)
        text = spoil(random, random.choice(MANNERS)(random, written(random, answer(random))))
        try:
            value = parse_json_with_schema(text, SCHEMA)
        except InvalidArgumentError:
            refusal(text)
        else:
            ORACLE.validate(value)


@pytest.mark.slow(reason="parses thousands of broken answers")
def test_each_of_many_spoilt_answers_is_a_valid_value_or_a_reason() -> None:
    valid = refused = 0
    for _, text in corpus(300):
        try:
            value = parse_json_with_schema(text, SCHEMA)
        except InvalidArgumentError:
            refusal(text)
            refused += 1
        else:
            ORACLE.validate(value)
            valid += 1
    assert (valid + refused, valid) == (6_900, 3_103)


@pytest.mark.slow(reason="parses thousands of broken answers")
def test_what_is_shown_of_a_spoilt_answer_while_it_grows_is_what_comes_of_it() -> None:
    shown = 0
    for name, text in corpus(50):
        growing = GrowingValue(SCHEMA)
        looks = [look for piece in text if (look := growing.feed(piece)) is not None]
        for earlier, later in itertools.pairwise(looks):
            assert begins(earlier, later), name
        try:
            value = parse_json_with_schema(text, SCHEMA)
        except InvalidArgumentError:
            continue
        if "as_two_documents" not in name:
            assert all(begins(look, value) for look in looks), (name, text, looks, value)
            shown += bool(looks)
    assert shown > 300
