"""Thoughts between tags in a model's text, however the network cuts it."""

from __future__ import annotations

import pytest

from peripety.gateway.providers.openai.response_stream import ThinkTagParser
from peripety.gateway.types.message import Reasoning, Text

TAGGED = [
    ("<think>hm</think>\n\nyes", "hm", "yes"),
    (" \n<think>\nhm\n</think> yes", "\nhm\n", "yes"),
    ("<thinking>hm</thinking>yes", "hm", "yes"),
    ("<mm:think>hm</mm:think>yes", "hm", "yes"),
    ("[THINK]hm[/THINK]yes", "hm", "yes"),
    ("<think></think>yes", "", "yes"),
    ("<think>a < b </ thin</think>yes", "a < b </ thin", "yes"),
    ("<think>hm</think>yes </think> <think>no</think>", "hm", "yes </think> <think>no</think>"),
]
PLAIN = [
    "yes",
    "<thin air",
    "<b>x</b>",
    "[1, 2]",
    "in code: `<think>`",
    " ",
    "<",
    "  yes",
]
UNOPENED = [
    ("hm</think>\n\nyes", "hm", "yes"),
    ("hm [/THINK]yes", "hm ", "yes"),
    ("</think>yes", "", "yes"),
]


def parted(pieces: list[str], *, thinks: bool, cut: bool = False) -> tuple[str, str]:
    inline = ThinkTagParser(is_reasoning_model=thinks)
    parts = [part for piece in pieces for part in inline.feed(piece)] + inline.finish(truncated=cut)
    order = [type(part) for part in parts]
    assert order == sorted(order, key=lambda kind: kind is Text), "a thought comes first"
    assert all(part.text for part in parts)
    return (
        "".join(part.text for part in parts if isinstance(part, Reasoning)),
        "".join(part.text for part in parts if isinstance(part, Text)),
    )


def cuts(text: str) -> list[list[str]]:
    """The text whole, in characters, and cut once at every place."""
    return [[text], list(text), *([text[:at], text[at:]] for at in range(1, len(text)))]


@pytest.mark.parametrize("thinks", [True, False])
@pytest.mark.parametrize(("whole", "thought", "answer"), TAGGED)
def test_a_thought_at_the_beginning_is_told_apart(
    whole: str,
    thought: str,
    answer: str,
    *,
    thinks: bool,
) -> None:
    for pieces in cuts(whole):
        assert parted(pieces, thinks=thinks) == (thought, answer)


@pytest.mark.parametrize("whole", PLAIN)
def test_an_answer_without_a_thought_is_all_text(whole: str) -> None:
    for pieces in cuts(whole):
        assert parted(pieces, thinks=True) == ("", whole)
        assert parted(pieces, thinks=False) == ("", whole)


def test_tags_further_on_are_part_of_the_answer() -> None:
    for pieces in cuts("a <think>b</think>"):
        assert parted(pieces, thinks=False) == ("", "a <think>b</think>")


@pytest.mark.parametrize(("whole", "thought", "answer"), UNOPENED)
def test_a_thought_that_the_template_began_is_told_apart_of_models_that_think(
    whole: str,
    thought: str,
    answer: str,
) -> None:
    for pieces in cuts(whole):
        assert parted(pieces, thinks=True) == (thought, answer)
        assert parted(pieces, thinks=False) == ("", whole)


@pytest.mark.parametrize("whole", ["<think>hm", "<think>hm</thi"])
def test_a_thought_that_does_not_end_is_a_thought(whole: str) -> None:
    for pieces in cuts(whole):
        assert parted(pieces, thinks=False) == (whole.removeprefix("<think>"), "")


def test_what_began_without_a_tag_is_a_thought_only_when_the_limit_ended_it() -> None:
    for pieces in cuts("hm, well"):
        assert parted(pieces, thinks=True, cut=True) == ("hm, well", "")
        assert parted(pieces, thinks=True) == ("", "hm, well")


def test_the_text_of_a_model_that_does_not_think_is_never_held_back() -> None:
    inline = ThinkTagParser(is_reasoning_model=False)
    assert [inline.feed(piece) for piece in ("a", "b</thi", "c")] == [
        [Text("a")],
        [Text("b</thi")],
        [Text("c")],
    ]


def test_thoughts_are_told_as_they_come() -> None:
    inline = ThinkTagParser(is_reasoning_model=True)
    assert [inline.feed(piece) for piece in ("<think>a", "b", "</think>c")] == [
        [Reasoning("a")],
        [Reasoning("b")],
        [Text("c")],
    ]


def test_a_server_that_tells_thoughts_apart_by_itself_is_believed() -> None:
    inline = ThinkTagParser(is_reasoning_model=True)
    assert inline.feed("a") == []
    inline.disable()
    assert inline.feed("</think>b") == [Text("a</think>b")]


def test_a_long_thought_that_is_held_back_takes_time_in_proportion_to_it() -> None:
    inline = ThinkTagParser(is_reasoning_model=True)
    for _ in range(50_000):
        assert inline.feed("hm ") == []
        assert len(inline._buffer) <= len("</thinking>")
    assert inline.feed("</think>yes") == [Reasoning("hm " * 50_000), Text("yes")]
