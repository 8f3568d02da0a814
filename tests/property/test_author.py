"""Any text becomes a valid scenario, and its turns can be narrated."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peripety import engine
from peripety.author.narration import narrate
from peripety.author.spec_author import author_from_text

RUNS = 1024
"""Enough runs for the shares of losses and wins to depend on the rules, not on chance."""
SAFE_ID = re.compile(r"[a-z0-9_]{1,64}")
STEERS = {"Cc", "Cf", "Cs", "Co", "Cn"}
JOINERS = "\u200c\u200d"

anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
words = st.text(st.characters(categories=["L", "M", "So"]), min_size=1, max_size=12)
right_to_left = st.text(st.characters(min_codepoint=0x590, max_codepoint=0x6FF), max_size=200)
unspaced = st.text(st.characters(min_codepoint=0x3000, max_codepoint=0x9FFF), max_size=200)
emoji = st.text(
    st.sampled_from("\U0001f469\u200d\U0001f692\U0001f1eb\U0001f1f7\U0001f44d\U0001f3fd\u2764\ufe0f "),
)
texts = anything | st.lists(words).map(" ".join) | right_to_left | unspaced | emoji
seeds = st.none() | st.integers(0, 2**53 - 1)


def identifiers(spec: dict[str, Any]) -> list[str]:
    sections = ("actions", "random_events", "loss_conditions", "win_conditions", "entities")
    return [spec["id"], *(rule["id"] for section in sections for rule in spec[section])]


@pytest.mark.slow(reason="writes many scenarios")
@settings(max_examples=60, deadline=None)
@given(text=texts, seed=seeds, variation=st.integers(0, 3))
def test_any_text_becomes_a_valid_scenario(text: str, seed: int | None, variation: int) -> None:
    spec = author_from_text(text, seed, variation)
    document = json.dumps(spec, ensure_ascii=False)
    assert engine.validate(document) == []
    # The mark is in the language of the text.
    assert re.search(r"\Woffline\W", spec["name"])
    found = identifiers(spec)
    assert len(set(found)) == len(found)
    assert all(SAFE_ID.fullmatch(name) for name in found)
    assert not [char for char in document if unicodedata.category(char) in STEERS and char not in JOINERS]


@pytest.mark.slow(reason="writes each document twice")
@settings(max_examples=30, deadline=None)
@given(text=texts, seed=seeds)
def test_the_same_text_and_seed_give_the_same_document(text: str, seed: int | None) -> None:
    assert json.dumps(author_from_text(text, seed)) == json.dumps(author_from_text(text, seed))


@settings(max_examples=10, deadline=None)
@given(text=texts, seed=seeds)
def test_luck_alone_neither_always_nor_hardly_ever_loses(text: str, seed: int | None) -> None:
    spec = author_from_text(text, seed)
    report = engine.compile(json.dumps(spec, ensure_ascii=False)).dry_run(runs=RUNS)
    assert report.errors == ()
    assert spec["negativity_budget"]["min_fail_rate"] < report.fail_rate
    assert report.won


@given(
    name=texts,
    message=texts,
    value=st.none() | st.booleans() | st.floats() | texts,
    history=st.lists(texts, max_size=2),
)
def test_any_facts_can_be_told(name: str, message: str, value: Any, history: list[str]) -> None:
    told = narrate(
        {
            "turn": 1,
            "actions": [{"id": "act", "name": name, "params": {"with": value}}],
            "changes": [{"path": f"state[{json.dumps(name)}]", "before": None, "after": value}],
            "log": [message],
            "status": {"kind": "lost", "message": message},
        },
        history,
    )
    assert 0 < len(told["narrative"]) <= 8000
    assert not [
        char for char in told["narrative"] if unicodedata.category(char) in STEERS and char not in JOINERS
    ]
