"""Generated sentences with a reference meaning: modality, scope, exceptions and approval in many wordings."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peripety import engine
from peripety.author.policy_author.rules import build_rules
from peripety.engine import ToolRequest
from support.examples import example_count

TOOL = {
    "server_name": "alpha",
    "tool_name": "read_item",
    "argument_roles": [{"path": "/path", "role": "read_path"}],
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
Holds = Callable[[str], bool]
PATHS = ("/a/x", "/a/b/x", "/c")
MAY = ("may", "can", "are allowed to", "are permitted to")
MUST_NOT = ("must not", "may not", "cannot", "must never", "are not allowed to", "never may", "shall not")
SCOPES: dict[str, Holds] = {
    "": lambda _path: True,
    "below /a": lambda path: path.startswith("/a"),
    "in /a or in /c": lambda _path: True,
    "outside /a": lambda path: not path.startswith("/a"),
    "outside of /a/b": lambda path: not path.startswith("/a/b"),
}
EXCEPTIONS: dict[str, Holds] = {
    "": lambda _path: False,
    "unless they are below /a/b": lambda path: path.startswith("/a/b"),
    "except below /a/b": lambda path: path.startswith("/a/b"),
    "except for /c": lambda path: path.startswith("/c"),
    "unless they are in /c or they are in /a/b": lambda path: path.startswith(("/c", "/a/b")),
    "unless they are not in /a": lambda path: not path.startswith("/a"),
}
MEANING = {"not", "never", "No", "outside", "unless", "except", "or", "/a", "/c", "/a/b"}
"""Words without which a sentence is another whole sentence with another meaning."""
STRANGE = ("later", "own", "glimmering", "per hour", "their", "other", "twice", "used to be", "recent")


@dataclass(frozen=True)
class Case:
    """A text with the decision that it means for each path."""

    text: str
    meaning: dict[str, str]


@st.composite
def permissions(draw: st.DrawFn) -> Case:
    scope, exception = draw(st.sampled_from([*SCOPES])), draw(st.sampled_from([*EXCEPTIONS]))
    approval = draw(
        st.sampled_from(["", "without asking", "with approval", "after confirmation by a person"])
    )
    only = "only" if scope and not exception and draw(st.booleans()) else ""
    text = f"Items {draw(st.sampled_from(MAY))} be read {approval} {only} {scope} {exception}"
    meant = "escalate" if approval.startswith(("with ", "after")) else "allow"
    meaning = {
        path: meant if SCOPES[scope](path) and not EXCEPTIONS[exception](path) else "deny" for path in PATHS
    }
    return Case(f"{' '.join(text.split())}.", meaning)


@st.composite
def prohibitions(draw: st.DrawFn) -> Case:
    """A permission of everything, and a sentence that takes calls away from it."""
    scope, exception = draw(st.sampled_from([*SCOPES])), draw(st.sampled_from([*EXCEPTIONS]))
    approval = draw(st.sampled_from(["", "without approval", "without the consent of a manager"]))
    verb = draw(st.sampled_from(MUST_NOT))
    text = draw(
        st.sampled_from(
            [
                f"Items {verb} be read {approval} {scope} {exception}",
                f"Reading items {scope} is forbidden {exception}",
                f"No items may be read {approval} {scope} {exception}",
                f"Reading items {scope} must be approved by a person {exception}",
            ],
        ),
    )
    is_asked = "approved" in text or (approval and approval in text)
    stopped = "escalate" if is_asked else "deny"
    meaning = {
        path: stopped if SCOPES[scope](path) and not EXCEPTIONS[exception](path) else "allow"
        for path in PATHS
    }
    return Case(f"Items may be read. {' '.join(text.split())}.", meaning)


def decide(text: str) -> tuple[dict[str, str], bool]:
    """Return the decision for each path, and whether every sentence was followed."""
    found = build_rules(text, [TOOL])
    document = {"policy_version": "1.0", "id": "a", "name": "a", "tools": [TOOL], "rules": [*found.rules]}
    policy = engine.compile_policy(json.dumps(document))
    decided = {
        path: policy.decide(ToolRequest("alpha", "read_item", {"path": path})).decision.value
        for path in PATHS
    }
    return decided, not found.unfollowed


@settings(max_examples=example_count(100))
@given(case=permissions() | prohibitions())
def test_a_followed_sentence_decides_as_it_means(case: Case) -> None:
    decided, is_followed = decide(case.text)
    if is_followed:
        assert decided == case.meaning, case.text
    for path, decision in decided.items():
        assert decision != "allow" or case.meaning[path] == "allow", case.text


@pytest.mark.slow(reason="reads hundreds of sentences")
@settings(max_examples=example_count(100))
@given(case=permissions(), word=st.sampled_from(STRANGE), data=st.data())
def test_a_strange_word_in_a_permission_allows_nothing(case: Case, word: str, data: st.DataObject) -> None:
    words = case.text.removesuffix(".").split()
    place = data.draw(st.integers(0, len(words)))
    decided, is_followed = decide(f"{' '.join([*words[:place], word, *words[place:]])}.")
    assert not is_followed or "allow" not in decided.values()


@settings(max_examples=example_count(100))
@given(case=prohibitions(), data=st.data())
def test_a_word_less_in_a_prohibition_allows_no_more_without_being_named(
    case: Case, data: st.DataObject
) -> None:
    first, sentence = case.text.split(". ", 1)
    words = sentence.removesuffix(".").split()
    place = data.draw(st.integers(0, len(words) - 1))
    shorter = " ".join([*words[:place], *words[place + 1 :]])
    decided, is_followed = decide(f"{first}. {shorter}.")
    newly = [path for path in PATHS if decided[path] == "allow" and case.meaning[path] != "allow"]
    assert not newly or not is_followed or words[place] in MEANING, shorter
