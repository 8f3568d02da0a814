"""DeepSeek's cache on disk, rule by rule."""

from __future__ import annotations

import pytest

from peripety.llmsim.types import Api
from support.gateway.requests import Client, block, prompt

LONG = block("the report ", 640, message=0)


def client(model: str = "deepseek-flash") -> Client:
    return Client(Api.DEEPSEEK, model)


def test_the_end_of_the_input_is_a_unit() -> None:
    somebody = client()
    assert somebody.ask(prompt(LONG)).fresh == 640
    visit = somebody.ask(prompt(LONG, block("and then?", 10, message=1)))
    assert (visit.read, visit.written, visit.fresh) == (640, {}, 10)


def test_the_end_of_the_answer_is_a_unit() -> None:
    somebody = client()
    answer = block("because", 30, message=1)
    somebody.ask(prompt(LONG), answer=[answer])
    visit = somebody.ask(prompt(LONG, answer, block("and then?", 10, message=2)))
    assert (visit.read, visit.fresh) == (670, 10)


def test_another_answer_is_no_part_of_the_unit() -> None:
    somebody = client()
    somebody.ask(prompt(LONG), answer=[block("because", 30, message=1)])
    visit = somebody.ask(prompt(LONG, block("edited", 30, message=1), block("and then?", 10, message=2)))
    assert visit.read == 640


def test_a_common_prefix_is_a_unit_once_two_prompts_have_shown_it() -> None:
    somebody = client()
    reads = [somebody.ask(prompt(LONG, block(tail, 50, message=1))).read for tail in ("one", "two", "three")]
    assert reads == [0, 0, 640]


def test_a_common_prefix_within_a_block_is_found_in_steps_of_64() -> None:
    somebody = client()
    head = "x" * 4 * 200
    reads = [somebody.ask(prompt(block(head + tail * 400, 300))).read for tail in "abc"]
    # The block's JSON begins with nine characters of its own: its text parts within the fourth step.
    assert reads == [0, 0, 192]


def test_long_prompts_are_kept_at_intervals() -> None:
    somebody = client()
    somebody.ask(prompt(block("book ", 20_000), block("one", 50, message=1)))
    assert somebody.ask(prompt(block("book ", 17_000), block("two", 50, message=1))).read == 16_384


@pytest.mark.parametrize(("one", "two", "read"), [("a", "a", 640), ("a", "b", 0), ("a", None, 0)])
def test_users_of_one_key_share_nothing(one: str, two: str | None, read: int) -> None:
    somebody = client()
    somebody.ask(prompt(LONG, user_id=one))
    assert somebody.look(prompt(LONG, user_id=two)).read == read


def test_keys_and_models_share_nothing() -> None:
    somebody = client()
    somebody.ask(prompt(LONG))
    assert somebody.other(scope="another").look(prompt(LONG)).read == 0
    assert somebody.other(model="deepseek-v4-pro").look(prompt(LONG)).read == 0


def test_an_unused_unit_is_forgotten_after_three_hours() -> None:
    somebody = client()
    somebody.ask(prompt(LONG))
    somebody.now += 10_799
    assert somebody.ask(prompt(LONG)).read == 640
    somebody.now += 10_800
    assert somebody.look(prompt(LONG)).read == 0


def test_units_are_found_once_the_answer_has_ended() -> None:
    somebody = client()
    first = somebody.look(prompt(LONG))
    first.on_accepted()
    first.on_started()
    assert somebody.look(prompt(LONG)).read == 0
    first.on_finished(somebody.now)
    assert somebody.look(prompt(LONG)).read == 640
