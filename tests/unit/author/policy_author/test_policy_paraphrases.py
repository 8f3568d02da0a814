"""Generated sentences, and sentences with a word less: nothing is allowed against its meaning."""

from __future__ import annotations

import pytest

from peripety.author.policy_author.rules import build_rules
from support.policy_paraphrases import CALLS, TOOLS, decide_paraphrase, iter_paraphrases
from support.policy_sentences import SentenceCase, decide_calls, load_cases, read_case, read_without_word

_PINNED = 1_000
_BLOCKS = 20
_LEAST_FOLLOWED = 0.5


@pytest.mark.slow_after(1, reason="reads 1,000 sentences")
@pytest.mark.parametrize("block", range(_BLOCKS))
def test_a_generated_sentence_decides_as_it_means(block: int) -> None:
    size = _PINNED // _BLOCKS
    plain = followed = 0
    for made in iter_paraphrases(size, seed=block):
        decided, is_followed = decide_paraphrase(made)
        pairs = zip(decided, made.meaning, strict=True)
        assert not [1 for actual, meant in pairs if actual == "allow" != meant], made.text
        if is_followed and not made.is_strange:
            assert decided == [*made.meaning], made.text
        plain += not made.is_strange
        followed += is_followed and not made.is_strange
    assert followed >= _LEAST_FOLLOWED * plain


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            (
                "If their priority is not high, notes are permitted to be sent if by callers with the role"
                " `manager`."
            ),
            "if by callers with the role `manager`",
        ),
        ("Notes may be sent if with a priority of low.", "if with a priority of low"),
        ("If for `ann@firm.example`, notes may be sent.", "If for `ann@firm.example`"),
    ],
)
def test_a_condition_without_a_verb_is_not_followed(text: str, part: str) -> None:
    derived = build_rules(text, TOOLS)
    assert [one.part for one in derived.unfollowed] == [part]
    assert "allow" not in decide_calls(derived, TOOLS, CALLS, is_open=False)


_NEGATING = frozenset(
    {
        *("no", "not", "never", "cannot", "nobody", "nothing", "neither", "nor"),
        *("without", "unless", "except", "outside", "only", "but"),
    }
)
"""Words without which a sentence is another whole sentence, with another meaning."""


@pytest.mark.slow(reason="reads each restriction once for each of its words")
@pytest.mark.parametrize("part", ["development", "sealed", "fresh", "composed"])
def test_a_word_less_in_a_restriction_allows_no_more_without_a_finding(part: str) -> None:
    newly = [
        (case.text, word, calls)
        for case in load_cases(part)
        if case.is_open
        for word, calls in _loosened(case)
        if word.casefold().strip(".,;") not in _NEGATING
    ]
    assert not newly


def _loosened(case: SentenceCase) -> list[tuple[str, tuple[str, ...]]]:
    """Return the words without which more calls are allowed, and no sentence is named, with these calls."""
    whole = read_case(case)
    found = []
    for word, read in read_without_word(case):
        newly = tuple(
            name
            for name, decision in read.decisions.items()
            if decision == "allow" != whole.decisions[name]
            and case.calls[name].expected not in {"allow", "any"}
        )
        if newly and read.is_followed:
            found.append((word, newly))
    return found
