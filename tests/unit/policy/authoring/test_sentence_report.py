"""Report about the sentences of a written policy: enforced, in part, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.errors import Severity
from peripety.policy.authoring.sentence_report import (
    UnexpressedPart,
    report_sentences,
    summarize_sentences,
)
from peripety.policy.types import AnnotatedTool

TEXT = "# Rules\n\nAlpha may be read. Beta must not be. \nBe careful!\n- Gamma is free.\n"


def unnamed(*principles: str) -> list[str]:
    found = report_sentences(
        TEXT,
        [{"id": str(n), "principle": text} for n, text in enumerate(principles)],
    )
    assert all(one.severity is Severity.WARNING and one.remedy for one in found)
    return [one.message.removeprefix("no rule implements: ") for one in found]


def test_every_sentence_without_a_rule_is_named_in_order() -> None:
    assert unnamed() == ["Alpha may be read.", "Beta must not be.", "Be careful!", "Gamma is free."]
    assert unnamed("Beta must not be.", "Be careful!") == ["Alpha may be read.", "Gamma is free."]


def test_a_sentence_is_known_by_its_words_alone_or_among_others() -> None:
    assert unnamed("alpha may be **read**", "Beta must not be. Be careful!", "Gamma is free") == []


def test_a_rule_without_a_principle_follows_nothing() -> None:
    assert len(report_sentences(TEXT, [{"id": "a"}])) == 4


def test_a_long_sentence_is_cut_and_one_that_stands_twice_named_once() -> None:
    (found,) = report_sentences(f"{'long ' * 100}\n\n{'long ' * 100}", [])
    assert found.message.endswith("…")


CLOSING: dict[str, Any] = {"id": "a", "when": {"servers": ["alpha"], "tools": ["read"]}, "then": "escalate"}


def test_a_sentence_with_a_part_that_no_rule_expresses_is_in_part_and_names_the_closed_tools() -> None:
    part = UnexpressedPart("Alpha may be read at most 5 times per hour.", "per hour", ("a",))
    (found,) = report_sentences(part.sentence, [CLOSING], [part])
    assert found.code == "SENTENCE_IN_PART"
    assert found.message.startswith('"per hour" cannot be expressed in: ')
    assert "closed: alpha/read; write instead: " in found.message


def test_a_sentence_that_another_author_enforces_is_enforced() -> None:
    text = "Alpha may be read."
    rules = [{"id": "b", "principle": text}]
    assert report_sentences(text, rules, [UnexpressedPart(text, "Alpha")]) == ()
    (found,) = report_sentences(text, [*rules, CLOSING], [UnexpressedPart(text, "Alpha", ("a",))])
    assert found.code == "SENTENCE_IN_PART"


def test_a_sentence_of_which_nothing_is_expressed_is_unread() -> None:
    (found,) = report_sentences("Be careful.", [], [UnexpressedPart("Be careful.", "Be careful")])
    assert found.code == "SENTENCE_UNFOLLOWED"


@pytest.mark.parametrize(
    ("part", "advice"),
    [
        ("from @unheard_of", "define @unheard_of under `lists` in foundation.json"),
        ("per hour", "not time, rate or history"),
        ("their own", "name the role of the caller"),
        ("glimmering", "put values in quotes"),
    ],
)
def test_each_part_has_an_advice(part: str, advice: str) -> None:
    text = "Alpha may be read."
    (found,) = report_sentences(text, [CLOSING], [UnexpressedPart(text, part, ("a",))], Severity.ERROR)
    assert (found.severity, advice in found.message) == (Severity.ERROR, True)


TOOLS = (
    AnnotatedTool("alpha", "read", input_schema={"type": "object"}),
    AnnotatedTool("alpha", "move_crate", input_schema={"properties": {"crate": {}, "shelf": {}}}),
)


@pytest.mark.parametrize(
    ("text", "part", "rule_ids", "advice"),
    [
        (
            "Crates may go to a shelf.",
            "go",
            (),
            "its server (here perhaps `move_crate` with crate, shelf), and",
        ),
        ("Alpha may be read freely.", "freely", ("a",), "its server (here perhaps `read`), and"),
        ("Gamma is blue.", "blue", (), "its server, and"),
        ("Alpha may be read hourly.", "hourly", ("a",), 'calls: "`read` must be approved by a person."'),
    ],
)
def test_the_advice_names_the_tool_that_a_sentence_may_mean(
    text: str, part: str, rule_ids: tuple[str, ...], advice: str
) -> None:
    (found,) = report_sentences(text, [CLOSING], [UnexpressedPart(text, part, rule_ids)], tools=TOOLS)
    assert advice in found.message


def test_the_line_counts_all_sentences_and_names_the_parts() -> None:
    parts = [UnexpressedPart("Alpha may be read.", "may", ("a",))]
    rules: list[dict[str, Any]] = [CLOSING, {"id": "b", "principle": "Beta must not be. Gamma is free."}]
    found = report_sentences(TEXT, rules, parts)
    assert summarize_sentences(TEXT, found) == (
        "2 of 4 sentences followed: 2 enforced, 1 in part (may), 1 unread"
    )
    assert summarize_sentences(TEXT, ()) == "4 of 4 sentences followed"


def test_without_the_text_the_line_counts_the_findings() -> None:
    found = report_sentences("Alpha may be read.", [], [])
    assert summarize_sentences("", found) == "1 not followed: 0 in part, 1 unread"
    assert summarize_sentences("", ()) == "all sentences followed"
