"""OpenAI's prompt caches, before and from GPT-5.6 on, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.llmsim.types import Api, ApiError, CacheSection, SimBlock
from support.gateway.requests import Client, block, prompt


def old(model: str = "gpt-4o") -> Client:
    return Client(Api.OPENAI_CHAT, model)


def new(model: str = "gpt-6.1-sol") -> Client:
    return Client(Api.OPENAI_RESPONSES, model)


def messages(*tokens: int) -> list[SimBlock]:
    return [block(f"message {number} ", size, message=number) for number, size in enumerate(tokens)]


# ---- before GPT-5.6


@pytest.mark.parametrize(
    ("tokens", "read"),
    [(1023, 0), (1024, 1024), (1151, 1024), (1152, 1152), (2006, 1920)],
)
def test_prefixes_are_read_in_steps_of_128_from_1024_on(tokens: int, read: int) -> None:
    somebody = old()
    asked = prompt(*messages(tokens))
    assert somebody.ask(asked).read == 0
    visit = somebody.ask(asked)
    assert (visit.read, visit.written, visit.fresh) == (read, {}, tokens - read)


def test_a_prefix_may_end_within_a_block() -> None:
    somebody = old()
    head = "the same beginning, " * 256  # 1280 tokens
    one, two = (block(head + tail * 400, 1680) for tail in ("a", "b"))
    somebody.ask(prompt(one))
    assert somebody.ask(prompt(two)).read == 1280


def test_writing_costs_nothing() -> None:
    assert old().ask(prompt(*messages(5000))).written == {}


def test_a_routing_key_leads_to_a_cache_of_its_own() -> None:
    somebody = old()
    asked = messages(2000)
    somebody.ask(prompt(*asked, prompt_cache_key="one"))
    assert somebody.look(prompt(*asked, prompt_cache_key="two")).read == 0
    assert somebody.look(prompt(*asked, prompt_cache_key="one")).read == 1920


def test_more_than_fifteen_requests_a_minute_spill_over_to_another_machine() -> None:
    somebody = old()
    asked = prompt(*messages(2000))
    reads = [somebody.ask(asked).read for _ in range(32)]
    assert [number for number, read in enumerate(reads) if not read] == [0, 15, 30]
    somebody.now += 60
    assert somebody.ask(asked).read == 1920


def test_an_unused_prefix_is_forgotten_after_five_minutes() -> None:
    somebody = old()
    asked = prompt(*messages(2000))
    somebody.ask(asked)
    for _ in range(3):
        somebody.now += 299
        assert somebody.ask(asked).read == 1920
    somebody.now += 300
    assert somebody.look(asked).read == 0


def test_extended_retention_keeps_a_prefix_for_a_day() -> None:
    somebody = old("gpt-5.1")
    asked = prompt(*messages(2000), prompt_cache_retention="24h")
    somebody.ask(asked)
    somebody.now += 86_399
    assert somebody.look(asked).read == 1920
    somebody.now += 1
    assert somebody.look(asked).read == 0


def test_extended_retention_is_all_that_later_models_have() -> None:
    somebody = old("gpt-5.5")
    asked = prompt(*messages(2000))
    somebody.ask(asked)
    somebody.now += 86_399
    assert somebody.look(asked).read == 1920


@pytest.mark.parametrize("section", list(CacheSection))
@pytest.mark.parametrize("model", ["gpt-4o", "gpt-6.1-sol"])
def test_any_changed_setting_spoils_the_whole_prefix(model: str, section: CacheSection) -> None:
    somebody = old(model)
    asked = messages(2000)
    somebody.ask(prompt(*asked))
    assert somebody.look(prompt(*asked)).read > 0
    assert somebody.look(prompt(*asked, settings={section: b"other"})).read == 0


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-6.1-sol"])
def test_keys_and_models_share_nothing(model: str) -> None:
    somebody = old(model)
    asked = prompt(*messages(2000))
    somebody.ask(asked)
    assert somebody.other(scope="another").look(asked).read == 0
    assert somebody.other(model="gpt-6-sol" if model == "gpt-4o" else "gpt-4o").look(asked).read == 0


# ---- from GPT-5.6 on


def test_the_whole_prompt_is_written_by_itself() -> None:
    visit = new().ask(prompt(*messages(1500, 77)))
    assert (visit.read, visit.written, visit.fresh) == (0, {"30m": 1577}, 0)


def test_a_longer_conversation_reads_where_the_shorter_one_ended() -> None:
    somebody = new()
    somebody.ask(prompt(*messages(1500, 77)))
    visit = somebody.ask(prompt(*messages(1500, 77, 30, 20)))
    assert (visit.read, visit.written, visit.fresh) == (1577, {"30m": 50}, 0)


def test_a_prefix_is_found_exactly_where_one_was_written() -> None:
    somebody = new()
    somebody.ask(prompt(*messages(1500, 77)))
    asked = prompt(messages(1500)[0], block("another", 77, message=1))
    visit = somebody.ask(asked)
    assert (visit.read, visit.written) == (0, {"30m": 1577})


def test_an_explicit_breakpoint_is_found_after_a_change_behind_it() -> None:
    somebody = new()
    rules = block("rules", 1500, ttl="30m", message=0)
    somebody.ask(prompt(rules, block("one", 77, message=1)))
    visit = somebody.ask(prompt(rules, block("two", 50, message=1)))
    assert (visit.read, visit.written, visit.fresh) == (1500, {"30m": 50}, 0)


def explicit(*blocks: SimBlock, ttl: str | None = None) -> Any:
    options = {"mode": "explicit"} | ({"ttl": ttl} if ttl else {})
    return prompt(*blocks, prompt_cache_options=options)


def test_in_explicit_mode_only_breakpoints_are_written() -> None:
    rules = block("rules", 1500, ttl="30m", message=0)
    visit = new().ask(explicit(rules, block("one", 77, message=1)))
    assert (visit.read, visit.written, visit.fresh) == (0, {"30m": 1500}, 77)


def test_in_explicit_mode_without_breakpoints_nothing_is_cached() -> None:
    somebody = new()
    somebody.ask(prompt(*messages(1500)))
    visit = somebody.ask(explicit(*messages(1500)))
    assert (visit.read, visit.written, visit.fresh) == (0, {}, 1500)


@pytest.mark.parametrize(("mode", "written"), [("implicit", 3), ("explicit", 4)])
def test_the_latest_breakpoints_are_written(mode: str, written: int) -> None:
    somebody = new()
    marked = [block(f"part {number} ", 1100, ttl="30m", message=0) for number in range(6)]
    somebody.ask(prompt(*marked, block("end", 5, message=1), prompt_cache_options={"mode": mode}))
    found = [
        bool(somebody.look(explicit(*marked[:number], block("new", 9, message=1))).read)
        for number in range(1, 7)
    ]
    assert found == [False] * (6 - written) + [True] * written


def test_eighty_breakpoints_are_looked_up_and_no_more() -> None:
    somebody = new()
    somebody.ask(prompt(*messages(1500)))
    assert somebody.look(prompt(*messages(1500, *[1] * 79))).read == 1500
    assert somebody.look(prompt(*messages(1500, *[1] * 80))).read == 0


def test_prompts_below_1024_tokens_are_not_cached() -> None:
    somebody = new()
    visit = somebody.ask(prompt(*messages(1023)))
    assert (visit.written, visit.fresh) == ({}, 1023)
    assert somebody.ask(prompt(*messages(1024))).written == {"30m": 1024}


@pytest.mark.parametrize(("ttl", "seconds"), [("30m", 1800), ("12h", 43_200)])
def test_the_ttl_counts_from_the_last_use(ttl: str, seconds: int) -> None:
    somebody = new()
    asked = explicit(block("rules", 1500, ttl=ttl))
    assert somebody.ask(asked, seconds=100).written == {ttl: 1500}
    somebody.now += seconds - 1
    assert somebody.ask(asked).read == 1500
    somebody.now += seconds - 1
    assert somebody.look(asked).read == 1500
    somebody.now += 1
    assert somebody.look(asked).read == 0


def test_a_use_lasts_until_the_answer_has_ended() -> None:
    somebody = new()
    asked = explicit(block("rules", 1500, ttl="30m"))
    somebody.ask(asked)
    somebody.ask(asked, seconds=100)
    somebody.now += 1799
    assert somebody.look(asked).read == 1500


def test_the_ttl_of_the_request_holds_for_its_own_breakpoint() -> None:
    visit = new().ask(prompt(*messages(1500), prompt_cache_options={"ttl": "12h"}))
    assert visit.written == {"12h": 1500}


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-6.1-sol"])
def test_an_entry_is_found_once_the_answer_has_ended(model: str) -> None:
    somebody = old(model)
    asked = prompt(*messages(1536))
    first = somebody.look(asked)
    first.on_accepted()
    first.on_started()
    assert somebody.look(asked).read == 0
    first.on_finished(somebody.now)
    assert somebody.look(asked).read == 1536


@pytest.mark.parametrize("model", ["gpt-5.6-sol", "gpt-5.6-nova", "gpt-6", "gpt-6.2-terra"])
def test_models_from_5_6_on_are_cached_at_breakpoints(model: str) -> None:
    assert new(model).ask(prompt(*messages(1500))).written == {"30m": 1500}


def test_options_and_retention_exclude_each_other() -> None:
    asked = prompt(*messages(1500), prompt_cache_options={}, prompt_cache_retention="24h")
    with pytest.raises(ApiError) as error:
        new().look(asked)
    assert error.value.param == "prompt_cache_retention"


def test_an_unknown_ttl_is_refused() -> None:
    with pytest.raises(ApiError) as error:
        new().look(prompt(*messages(1500), prompt_cache_options={"ttl": "1h"}))
    assert (error.value.param, error.value.code) == ("prompt_cache_options.ttl", "invalid_value")
    assert "'30m', '12h'" in error.value.message
