"""The texts of plots contain no setting: every concrete noun is from the user."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from peripety.author.plots.plot import list_plots, load_texts
from peripety.author.text_analysis.tagging import tag_words
from peripety.author.text_analysis.words import load_grammars

if TYPE_CHECKING:
    from collections.abc import Iterator


CONCRETE = {"artifact", "animal", "plant", "food", "substance", "body", "location"}
SLOT = re.compile(r"\{\w+(?:\.\w+|'s|\u2019s)?\}")
FORM = re.compile(r"\{\w+:([^/{}]*)/[^{}]*\}")
# Words whose first sense is concrete, and that stand for something else here.
ABSTRACT = {
    *("side", "end", "spot", "middle", "front", "source", "direction", "place", "part", "parts", "position"),
    *("reach", "state", "edge", "midst", "upside", "seat", "left", "piece", "load", "mend", "steps", "waste"),
    *("solution", "nerve", "spirits", "assembly", "concrete"),
    # These are verbs or adjectives here.
    *("come", "short", "small", "young", "open", "working", "lighter", "helping", "saw", "simple", "settle"),
    *("round", "see", "keep", "handle"),
}


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (
                strings(item)
                if key not in {"from", "unfit_objects", "someone", "either", "question", "whether", "words"}
                else ()
            )
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def concrete_nouns(line: str) -> list[str]:
    """The nouns of an English line whose most frequent sense is concrete."""
    text = SLOT.sub("Ada", FORM.sub(r"\1", line))
    words = tag_words(text, load_grammars()["en"])
    return [
        word.lemma
        for word in words
        if word.tag == "noun"
        and word.classes
        and word.classes[0].removeprefix("noun.").partition(".")[0] in CONCRETE
    ]


@pytest.mark.parametrize("plot", list_plots())
def test_no_text_of_a_plot_names_a_concrete_thing(plot: str) -> None:
    named = {
        (noun, line)
        for line in strings(load_texts(plot))
        for noun in concrete_nouns(line)
        if noun not in ABSTRACT
    }
    assert not named


@pytest.mark.parametrize("line", ["The hammer falls.", "The dog waits.", "{ally} brings bread."])
def test_a_concrete_thing_is_found(line: str) -> None:
    assert concrete_nouns(line)
