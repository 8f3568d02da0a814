"""How models think: which ways each of them takes, what holds where nothing is said, and what is shown."""

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
    """How a model thinks.

    Attributes:
        modes: the values of `thinking.type` that it takes.
        default: which of them holds where a request names none.
        display: whether its thoughts are shown where a request does not say.
        effort: how hard it thinks where a request does not say.
        keeps: whether it still reads the thoughts of earlier turns.
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

# The first glob that fits a model's name; models of other names take everything.
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
    """How a model thinks."""
    return next((found for glob, found in _HABITS.items() if fnmatchcase(model, glob)), Habits())


@dataclass(frozen=True, slots=True)
class Thinking:
    """What holds for one request.

    Attributes:
        mode: the way of thinking.
        asked: whether the request named it.
        budget: the most tokens of thought, with the mode `enabled`.
        shown: whether the thoughts' text is in the answer, and not just their signature.
    """

    mode: str
    asked: bool = False
    budget: int | None = None
    shown: bool = True

    @property
    def on(self) -> bool:
        """Whether it thinks at all."""
        return self.mode != "disabled"


def read_thinking(body: Fields, model: Habits, max_tokens: int | None) -> Thinking:
    """The member `thinking`.

    Args:
        body: the request.
        model: how its model thinks.
        max_tokens: the most output tokens; None where there is no answer.

    Raises:
        ApiError: it is not valid, or the model does not think that way.
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
