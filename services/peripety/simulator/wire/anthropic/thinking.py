"""Reasoning modes of Anthropic models: supported modes, defaults, and visibility."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

from peripety.simulator.wire.anthropic.wording import invalid

if TYPE_CHECKING:
    from peripety.simulator.wire.reading import Fields

__all__ = ["Habits", "Thinking", "habits", "read_thinking"]

SMALLEST_BUDGET = 1024

_DISPLAYS = ("summarized", "omitted")


@dataclass(frozen=True, slots=True)
class Habits:
    """Reasoning defaults of a model.

    Attributes:
        modes: the supported values of `thinking.type`.
        default: the default mode.
        display: True if reasoning is shown by default.
        effort: the default effort.
        keeps: True if the model still reads the reasoning of earlier turns.
    """

    modes: tuple[str, ...] = ("adaptive", "enabled", "disabled", "between_tools")
    default: str = "disabled"
    display: str = "summarized"
    effort: str = "high"
    keeps: bool = True


_ALWAYS = Habits(("adaptive",), "adaptive", "omitted")
_USUALLY = Habits(("adaptive", "disabled"), "adaptive", "omitted")
_ASKED = Habits(("adaptive", "disabled"), "disabled", "omitted")
_BUDGETED = Habits(("enabled", "disabled"), "disabled", "summarized", keeps=False)

# The first matching glob applies; models without a match support everything.
_HABITS = {
    "claude-opus-5-5*": Habits(_ALWAYS.modes, "adaptive", "omitted", effort="medium"),
    "claude-fable-*": _ALWAYS,
    "claude-mythos-*": _ALWAYS,
    "claude-sonnet-5-5*": Habits(("adaptive", "disabled", "between_tools"), "adaptive", "omitted"),
    "claude-3*": _BUDGETED,
    "claude-opus-4-[78]*": _ASKED,
    "claude-*-4-6*": Habits(("adaptive", "enabled", "disabled")),
    "claude-opus-4-5*": Habits(_BUDGETED.modes),
    "claude-*-4-*": _BUDGETED,
    "claude-*-5*": _USUALLY,
}


@lru_cache(256)
def habits(model: str) -> Habits:
    """Return the reasoning defaults of a model."""
    return next((found for glob, found in _HABITS.items() if fnmatchcase(model, glob)), Habits())


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning settings of one request.

    Attributes:
        mode: the mode.
        asked: True if the request set the mode.
        budget: the token budget of reasoning, with the mode `enabled`.
        shown: True if the answer contains the reasoning text, not only its signature.
    """

    mode: str
    asked: bool = False
    budget: int | None = None
    shown: bool = True

    @property
    def on(self) -> bool:
        """True if reasoning is enabled."""
        return self.mode != "disabled"


def read_thinking(body: Fields, model: Habits, max_tokens: int | None) -> Thinking:
    """Parse the member `thinking`.

    Args:
        body: the request.
        model: the reasoning defaults of its model.
        max_tokens: maximum number of output tokens; None without an answer.

    Raises:
        ApiError: the settings are not valid, or the model does not support them.
    """
    fields = body.object("thinking", None)
    if fields is None:
        return Thinking(model.default, shown=model.display == "summarized")
    mode = fields.choice("type", Habits().modes)
    if mode not in model.modes:
        raise _unsupported(mode)
    fields = type(fields)(fields.value, fields.at(mode), fields.wording)
    budget = None
    if mode == "enabled":
        fields.only("type", "budget_tokens", "display")
        budget = fields.integer("budget_tokens")
        if budget < SMALLEST_BUDGET:
            raise invalid(
                f"Input should be greater than or equal to {SMALLEST_BUDGET}", fields.at("budget_tokens")
            )
        if max_tokens is not None and budget >= max_tokens:
            raise invalid("`max_tokens` must be greater than `thinking.budget_tokens`.")
    elif mode == "adaptive":
        fields.only("type", "display")
    else:
        fields.only("type")
    display = fields.choice("display", _DISPLAYS, None) or model.display
    return Thinking(mode, asked=True, budget=budget, shown=display == "summarized")


def _unsupported(mode: str) -> Exception:
    if mode == "adaptive":
        return invalid("adaptive thinking is not supported on this model")
    if mode == "between_tools":
        return invalid('"thinking.type.between_tools" is not supported for this model.')
    return invalid(
        f'"thinking.type.{mode}" is not supported for this model. Use "thinking.type.adaptive" and '
        '"output_config.effort" to control thinking behavior.'
    )
