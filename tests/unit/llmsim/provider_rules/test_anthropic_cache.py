"""Anthropic's prompt cache, rule by rule."""

from __future__ import annotations

import pytest

from peripety.llmsim.types import Api, ApiError, ApiErrorKind, CacheSection, SimBlock
from support.gateway.requests import Client, block, prompt

OPUS = "claude-opus-5-5"  # caches from 512 tokens on


def client(model: str = OPUS) -> Client:
    return Client(Api.ANTHROPIC, model)


def system(tokens: int = 600, ttl: str | None = "5m", text: str = "rules ") -> SimBlock:
    return block(text, tokens, ttl=ttl, section=CacheSection.SYSTEM)


def test_what_is_marked_is_written_and_the_rest_is_fresh() -> None:
    visit = client().ask(prompt(system(600), block("hello", 40)))
    assert (visit.read, visit.written, visit.fresh) == (0, {"5m": 600}, 40)


def test_without_a_marker_nothing_is_cached() -> None:
    somebody = client()
    for _ in range(2):
        visit = somebody.ask(prompt(system(600, ttl=None), block("hello", 40)))
        assert (visit.read, visit.written, visit.fresh) == (0, {}, 640)


def test_the_same_prefix_is_read_the_second_time() -> None:
    somebody = client()
    somebody.ask(prompt(system(600), block("hello", 40)))
    visit = somebody.ask(prompt(system(600), block("other", 30)))
    assert (visit.read, visit.written, visit.fresh) == (600, {}, 30)


def test_tokens_between_a_hit_and_the_last_marker_are_written() -> None:
    somebody = client()
    first = [system(600), block("one", 100, ttl="5m")]
    somebody.ask(prompt(*first))
    visit = somebody.ask(prompt(*first, block("two", 50, message=1, ttl="5m"), block("three", 7, message=2)))
    assert (visit.read, visit.written, visit.fresh) == (700, {"5m": 50}, 7)


def test_each_segment_is_written_with_the_ttl_of_its_marker() -> None:
    visit = client().ask(prompt(system(600, ttl="1h"), block("one", 100, ttl="5m"), block("two", 9)))
    assert visit.written == {"1h": 600, "5m": 100}


@pytest.mark.parametrize(("markers", "automatic"), [(5, False), (4, True)])
def test_five_markers_are_one_too_many(markers: int, automatic: bool) -> None:
    blocks = [block(f"{number}", 600, ttl="5m") for number in range(markers + automatic)]
    with pytest.raises(ApiError) as error:
        client().look(prompt(*blocks))
    assert error.value.kind is ApiErrorKind.INVALID_REQUEST
    assert error.value.message == "A maximum of 4 blocks with cache_control may be provided. Found 5."


def test_four_markers_are_taken_wherever_they_stand() -> None:
    tool = block("tool", 600, ttl="5m", kind="tool", section=CacheSection.TOOLS)
    visit = client().ask(prompt(tool, system(), block("one", 1, ttl="5m"), block("two", 2, ttl="5m")))
    assert visit.written == {"5m": 1203}


def test_a_longer_ttl_after_a_shorter_one_is_refused() -> None:
    blocks = [system(600, ttl="5m"), block("one", 10, message=0), block("two", 10, message=0, ttl="1h")]
    with pytest.raises(ApiError) as error:
        client().look(prompt(*blocks))
    assert error.value.param == "messages.0.content.1.cache_control.ttl"
    assert error.value.message == (
        "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a "
        "ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, "
        "`system`, `messages`."
    )


def test_the_place_of_a_ttl_outside_the_messages_is_named_too() -> None:
    tool = block("tool", 600, ttl="5m", kind="tool", section=CacheSection.TOOLS)
    with pytest.raises(ApiError) as error:
        client().look(prompt(tool, system(600, ttl="1h")))
    assert error.value.param == "system.0.cache_control.ttl"


@pytest.mark.parametrize(
    ("model", "minimum"),
    [
        ("claude-opus-5-5", 512),
        ("claude-haiku-5-5", 512),
        ("claude-sonnet-5", 1024),
        ("claude-sonnet-4-6", 1024),
        ("claude-opus-4-7", 2048),
        ("claude-haiku-4-5-20251001", 4096),
    ],
)
def test_below_the_minimum_a_marker_is_silently_ignored(model: str, minimum: int) -> None:
    short, enough = prompt(system(minimum - 1)), prompt(system(minimum))
    assert client(model).ask(short).written == {}
    assert client(model).ask(short).fresh == minimum - 1
    assert client(model).ask(enough).written == {"5m": minimum}


def test_an_early_marker_below_the_minimum_leaves_its_tokens_to_the_next() -> None:
    somebody = client()
    visit = somebody.ask(prompt(system(100, ttl="1h"), block("one", 900, ttl="5m")))
    assert visit.written == {"5m": 1000}


def grown(added: int, kind: str = "text") -> list[SimBlock]:
    return [block(f"added {number}", 5, kind=kind, message=1) for number in range(added)]


@pytest.mark.parametrize(("added", "read"), [(1, 600), (18, 600), (19, 600), (20, 0), (40, 0)])
def test_a_marker_looks_back_over_twenty_positions_its_own_included(added: int, read: int) -> None:
    somebody = client()
    somebody.ask(prompt(system(600)))
    *between, last = grown(added)
    visit = somebody.ask(prompt(system(600, ttl=None), *between, block("end", last.tokens, ttl="5m")))
    assert visit.read == read
    assert visit.read + visit.written["5m"] == 600 + 5 * added


def test_each_marker_looks_back_by_itself() -> None:
    somebody = client()
    somebody.ask(prompt(system(600)))
    far = grown(30)
    visit = somebody.ask(prompt(system(600, ttl="5m"), *far, block("end", 5, ttl="5m")))
    assert (visit.read, visit.written) == (600, {"5m": 155})


@pytest.mark.parametrize("kind", ["tool_use", "tool_result"])
def test_a_run_of_tool_blocks_is_one_position(kind: str) -> None:
    somebody = client()
    somebody.ask(prompt(system(600)))
    run = grown(50, kind)
    visit = somebody.ask(prompt(system(600, ttl=None), *run, *grown(17), block("end", 5, ttl="5m")))
    assert visit.read == 600
    visit = somebody.ask(prompt(system(600, ttl=None), *run, *grown(19), block("end", 6, ttl="5m")))
    assert visit.read == 0


def test_runs_of_calls_and_of_results_are_two_positions() -> None:
    somebody = client()
    somebody.ask(prompt(system(600)))
    pairs = [each for _ in range(10) for each in (*grown(3, "tool_use"), *grown(3, "tool_result"))]
    visit = somebody.ask(prompt(system(600, ttl=None), *pairs[:-6], block("end", 5, ttl="5m")))
    assert visit.read == 600  # 18 runs and the end
    visit = somebody.ask(prompt(system(600, ttl=None), *pairs, block("end", 6, ttl="5m")))
    assert visit.read == 0  # 20 runs and the end


def test_a_moved_marker_changes_no_key() -> None:
    somebody = client()
    somebody.ask(prompt(system(600), block("one", 10, ttl="5m")))
    visit = somebody.ask(
        prompt(system(600, ttl=None), block("one", 10), block("two", 10, message=1, ttl="5m")),
    )
    assert (visit.read, visit.written) == (610, {"5m": 10})


def test_an_entry_is_found_once_the_first_answer_starts() -> None:
    somebody = client()
    asked = prompt(system(600))
    first = somebody.look(asked)
    first.on_accepted()
    assert somebody.look(asked).written == {"5m": 600}
    first.on_started()
    assert somebody.look(asked).read == 600


def test_an_answer_that_never_starts_leaves_nothing() -> None:
    somebody = client()
    somebody.look(prompt(system(600))).on_accepted()
    assert somebody.look(prompt(system(600))).read == 0


@pytest.mark.parametrize(("ttl", "seconds"), [("5m", 300), ("1h", 3600)])
def test_an_entry_lives_for_its_ttl(ttl: str, seconds: int) -> None:
    somebody = client()
    asked = prompt(system(600, ttl=ttl))
    somebody.ask(asked)
    somebody.now += seconds - 1
    assert somebody.look(asked).read == 600
    somebody.now += 1
    assert somebody.look(asked).read == 0


def test_the_ttl_counts_from_the_start_of_the_request() -> None:
    somebody = client()
    somebody.ask(prompt(system(600)), seconds=200)
    somebody.now += 99
    assert somebody.look(prompt(system(600))).read == 600
    somebody.now += 1
    assert somebody.look(prompt(system(600))).read == 0


def test_a_read_makes_an_entry_live_on_at_no_cost() -> None:
    somebody = client()
    asked = prompt(system(600))
    somebody.ask(asked)
    for _ in range(5):
        somebody.now += 299
        visit = somebody.ask(asked)
        assert (visit.read, visit.written, visit.fresh) == (600, {}, 0)


def test_a_look_alone_makes_nothing_live_on() -> None:
    somebody = client()
    asked = prompt(system(600))
    somebody.ask(asked)
    somebody.now += 299
    somebody.look(asked)
    somebody.now += 1
    assert somebody.look(asked).read == 0


def test_a_read_by_a_shorter_marker_keeps_the_longer_life() -> None:
    somebody = client()
    somebody.ask(prompt(system(600, ttl="1h")))
    somebody.ask(prompt(system(600, ttl="5m")))
    somebody.now += 3599
    assert somebody.look(prompt(system(600))).read == 600


def test_a_read_by_a_longer_marker_writes_nothing_and_keeps_the_shorter_life() -> None:
    somebody = client()
    somebody.ask(prompt(system(600, ttl="5m")))
    assert somebody.ask(prompt(system(600, ttl="1h"))).written == {}
    somebody.now += 300
    assert somebody.look(prompt(system(600))).read == 0


def test_keys_share_nothing() -> None:
    somebody = client()
    somebody.ask(prompt(system(600)))
    assert somebody.other(scope="another").look(prompt(system(600))).read == 0


def test_models_share_nothing() -> None:
    somebody = client()
    somebody.ask(prompt(system(600)))
    assert somebody.other(model="claude-opus-5").look(prompt(system(600))).read == 0


CONVERSATION = (
    block("tool", 600, ttl="5m", kind="tool", section=CacheSection.TOOLS),
    block("rules", 200, ttl="5m", section=CacheSection.SYSTEM),
    block("hello", 100, ttl="5m"),
)


@pytest.mark.parametrize(
    ("section", "read"),
    [(CacheSection.TOOLS, 0), (CacheSection.SYSTEM, 600), (CacheSection.MESSAGES, 800)],
)
def test_a_changed_setting_spoils_its_section_and_what_follows(section: CacheSection, read: int) -> None:
    somebody = client()
    somebody.ask(prompt(*CONVERSATION))
    assert somebody.look(prompt(*CONVERSATION)).read == 900
    assert somebody.look(prompt(*CONVERSATION, settings={section: b"other"})).read == read


def test_a_changed_tool_spoils_everything() -> None:
    somebody = client()
    somebody.ask(prompt(*CONVERSATION))
    tool = block("tool2", 600, ttl="5m", kind="tool", section=CacheSection.TOOLS)
    assert somebody.look(prompt(tool, *CONVERSATION[1:])).read == 0


def test_a_changed_system_prompt_spoils_what_follows() -> None:
    somebody = client()
    somebody.ask(prompt(*CONVERSATION))
    changed = block("rules2", 200, ttl="5m", section=CacheSection.SYSTEM)
    visit = somebody.look(prompt(CONVERSATION[0], changed, CONVERSATION[2]))
    assert (visit.read, visit.written) == (600, {"5m": 300})


def test_what_is_read_under_a_marker_before_the_hit_is_not_written_again() -> None:
    somebody = client()
    somebody.ask(prompt(system(600, ttl=None), block("one", 10, ttl="5m")))
    visit = somebody.ask(prompt(system(600), block("one", 10, ttl="5m")))
    assert (visit.read, visit.written) == (610, {})
