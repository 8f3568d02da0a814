"""Prefixes of prompts: where they end, and which are the same."""

from __future__ import annotations

import pytest

from peripety.llmsim.provider_rules.cache_entries import PromptPrefixes
from peripety.llmsim.types import CacheSection, SimBlock, SimPrompt
from support.gateway.requests import block, prompt

TOOL = block("tool", 10, section=CacheSection.TOOLS, kind="tool")
RULES = block("rules", 20, section=CacheSection.SYSTEM)
HELLO = block("hello", 30)


def keys(asked: SimPrompt, *scope: str, whole: bool = False) -> list[str]:
    return [cut.key for cut in PromptPrefixes(scope, asked, whole=whole).block_ends()]


def test_every_block_ends_a_prefix() -> None:
    cuts = PromptPrefixes((), prompt(TOOL, RULES, HELLO)).block_ends()
    assert [(cut.tokens, cut.block) for cut in cuts] == [(10, 0), (30, 1), (60, 2)]
    assert len({cut.key for cut in cuts}) == 3


def test_an_empty_prompt_has_none() -> None:
    assert PromptPrefixes((), prompt()).block_ends() == []
    assert list(PromptPrefixes((), prompt()).at_steps(10)) == []


def test_steps_end_within_blocks_and_with_them() -> None:
    found = list(PromptPrefixes((), prompt(TOOL, RULES, HELLO)).at_steps(15))
    assert [(cut.tokens, cut.block) for cut in found] == [(15, 1), (30, 1), (45, 2), (60, 2)]


def test_all_prefixes_come_from_the_shortest_on() -> None:
    found = PromptPrefixes((), prompt(TOOL, RULES, HELLO)).all_prefixes(15)
    assert [cut.tokens for cut in found] == [10, 15, 30, 45, 60]


def test_a_prefix_does_not_depend_on_what_follows() -> None:
    assert keys(prompt(TOOL, RULES)) == keys(prompt(TOOL, RULES, HELLO))[:2]


def test_a_prefix_within_a_block_depends_on_the_bytes_before_its_end() -> None:
    one, two = (
        {cut.tokens: cut.key for cut in PromptPrefixes((), prompt(block("same " * 8 + tail, 20))).at_steps(5)}
        for tail in ("a" * 40, "b" * 40)
    )
    assert [tokens for tokens in one if one[tokens] == two[tokens]] == [5, 10]


def test_blocks_that_are_cut_elsewhere_are_other_prefixes() -> None:
    def cut(*contents: bytes) -> str:
        blocks = (SimBlock(CacheSection.MESSAGES, "text", content, 1, message=0) for content in contents)
        return keys(SimPrompt(tuple(blocks)))[-1]

    assert len({cut(b"ab", b"c"), cut(b"a", b"bc"), cut(b"abc"), cut(b"ab", b"c", b"")}) == 4


def test_the_same_block_in_another_section_is_another_prefix() -> None:
    assert keys(prompt(block("x", 5, section=CacheSection.SYSTEM))) != keys(prompt(block("x", 5)))


@pytest.mark.parametrize(
    ("section", "same"),
    [(CacheSection.TOOLS, 0), (CacheSection.SYSTEM, 1), (CacheSection.MESSAGES, 2)],
)
def test_settings_are_part_of_their_section_and_what_follows(section: CacheSection, same: int) -> None:
    plain = keys(prompt(TOOL, RULES, HELLO))
    other = keys(prompt(TOOL, RULES, HELLO, settings={section: b"set"}))
    assert [one == two for one, two in zip(plain, other, strict=True)] == [True] * same + [False] * (3 - same)


@pytest.mark.parametrize("section", list(CacheSection))
def test_settings_of_the_whole_are_part_of_every_prefix(section: CacheSection) -> None:
    plain = keys(prompt(TOOL, RULES, HELLO), whole=True)
    other = keys(prompt(TOOL, RULES, HELLO, settings={section: b"set"}), whole=True)
    assert not set(plain) & set(other)


def test_settings_of_a_section_without_blocks_count_too() -> None:
    assert keys(prompt(HELLO)) != keys(prompt(HELLO, settings={CacheSection.TOOLS: b"set"}))


def test_scopes_share_nothing_however_they_are_divided() -> None:
    found = [keys(prompt(HELLO), *scope)[0] for scope in (("a", "bc"), ("ab", "c"), ("abc",), ())]
    assert len(set(found)) == 4


def test_a_longer_prompt_begins_with_the_shorter_one_and_what_was_added() -> None:
    shorter = PromptPrefixes(("a",), prompt(TOOL, RULES, settings={CacheSection.MESSAGES: b"set"}))
    longer = PromptPrefixes(("a",), prompt(TOOL, RULES, HELLO, settings={CacheSection.MESSAGES: b"set"}))
    assert shorter.key_with_blocks([HELLO]) == longer.block_ends()[-1].key
