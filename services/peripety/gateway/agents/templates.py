"""Templates of phase inputs: `{{name}}` is an input of the run, `{{phases.a}}` is the answer of phase `a`.

All other text is literal, single braces too. Substituted text is not expanded again, so an input or an answer
cannot inject a placeholder.
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
    """Return the placeholder names of a template, in order, without duplicates."""
    return tuple(dict.fromkeys(_PLACE.findall(template)))


def phase_named(name: str) -> str | None:
    """Return the id of the phase that a placeholder refers to; None if it refers to an input."""
    return name.removeprefix(_PHASES) if name.startswith(_PHASES) else None


def fill(template: str, inputs: Mapping[str, str], answers: Mapping[str, str]) -> str:
    """Substitute all placeholders of a template.

    Args:
        template: the text; every placeholder must have a value.
        inputs: the inputs of the run, by name.
        answers: the answers of earlier phases, by phase id.
    """

    def value(place: re.Match[str]) -> str:
        phase = phase_named(place[1])
        return inputs[place[1]] if phase is None else answers[phase]

    return _PLACE.sub(value, template)
