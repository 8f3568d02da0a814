"""Checks of parameters against the features and limits of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.simulator.model import ApiError, ErrorKind
from peripety.simulator.truth.models import Family
from peripety.simulator.wire.openai.wording import bounded, invalid, unsupported, unsupported_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.simulator.model import Prompt
    from peripety.simulator.truth.models import Model
    from peripety.simulator.wire.reading import Fields

__all__ = ["check_caching", "check_effort", "check_output", "check_sampling"]

_SAMPLING: Mapping[str, tuple[float, float, float]] = {
    "temperature": (0, 2, 1),
    "top_p": (0, 1, 1),
    "presence_penalty": (-2, 2, 0),
    "frequency_penalty": (-2, 2, 0),
}
_PROBABILITIES = frozenset({"logprobs", "top_logprobs"})
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def check_sampling(body: Fields, model: Model) -> None:
    """Check sampling parameters: within bounds, and the default if the model has no other."""
    if _PROBABILITIES.isdisjoint(body.value) and _SAMPLING.keys().isdisjoint(body.value):
        return
    for name, (low, high, default) in _SAMPLING.items():
        bounded(body, name, low, high)
        value = body.value.get(name)
        if value is not None and value != default and not model.takes.sampling:
            raise unsupported_value(name, value, default)
    bounded(body, "top_logprobs", 0, 20, whole=True)
    wanted = body.flag("logprobs", None)
    if wanted or body.value.get("top_logprobs") is not None:
        # Scripted answers have no log probabilities; reasoning models reject them with the same message.
        raise ApiError(ErrorKind.PERMISSION, "You are not allowed to request logprobs from this model")


def check_effort(fields: Fields, name: str, model: Model) -> str | None:
    """Return the reasoning effort."""
    effort = fields.choice(name, EFFORTS, None)
    if effort is not None and not model.takes.reasoning:
        raise unsupported(".".join(map(str, fields.at(name))))
    if effort == "none" and not model.takes.no_reasoning:
        raise fields.wording.not_among(fields.at(name), EFFORTS[1:], effort)
    return effort


def check_output(body: Fields, name: str, model: Model) -> int | None:
    """Return the maximum number of output tokens."""
    bounded(body, name, 1, whole=True)
    most: int | None = body.value.get(name)
    if most is not None and model.output is not None and most > model.output:
        message = (
            f"{name} is too large: {most}. This model supports at most {model.output} completion tokens, "
            f"whereas you provided {most}."
        )
        raise invalid(message, name, "invalid_value")
    return most


def check_caching(prompt: Prompt, model: Model) -> None:
    """Reject breakpoints for models that are known not to support them."""
    if model.cache.family is Family.OPENAI_BREAKPOINTS or "*" in model.names:
        return
    if "prompt_cache_options" in prompt.controls:
        raise unsupported("prompt_cache_options")
    if any(block.marker is not None for block in prompt.blocks):
        raise unsupported("prompt_cache_breakpoint")
