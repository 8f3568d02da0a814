"""Sentences of a written policy that no rule follows."""

from __future__ import annotations

from peripety.errors import Severity
from peripety.policy.authoring.scenario_suite import uncovered_sentences

TEXT = "# Rules\n\nAlpha may be read. Beta must not be. \nBe careful!\n- Gamma is free.\n"


def unnamed(*principles: str) -> list[str]:
    found = uncovered_sentences(
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
    assert len(uncovered_sentences(TEXT, [{"id": "a"}])) == 4


def test_a_long_sentence_is_cut_and_one_that_stands_twice_named_once() -> None:
    (found,) = uncovered_sentences(f"{'long ' * 100}\n\n{'long ' * 100}", [])
    assert found.message.endswith("…")
