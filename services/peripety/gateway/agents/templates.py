"""Texts with places to fill in: `{{name}}` is an input of the run, `{{phases.a}}` the answer of its phase a.

Everything else is text, single braces too. What was filled in is never looked through again, so neither an
input nor an answer can name anything.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["fill", "names_in", "phase_named"]

_PLACE = re.compile(r"\{\{[ \t]*([^{}\n]*?)[ \t]*\}\}")
_PHASES = "phases."


def names_in(template: str) -> tuple[str, ...]:
    """What a template names, in order; each name once."""
    return tuple(dict.fromkeys(_PLACE.findall(template)))


def phase_named(name: str) -> str | None:
    """The phase whose answer a name stands for; None for an input."""
    return name.removeprefix(_PHASES) if name.startswith(_PHASES) else None


def fill(template: str, inputs: Mapping[str, str], answers: Mapping[str, str]) -> str:
    """Fill a template in.

    Args:
        template: the text; all that it names is there.
        inputs: the inputs of the run, by name.
        answers: the answers of earlier phases, by the ids of these.
    """

    def value(place: re.Match[str]) -> str:
        phase = phase_named(place[1])
        return inputs[place[1]] if phase is None else answers[phase]

    return _PLACE.sub(value, template)
