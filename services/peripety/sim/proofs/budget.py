"""How much work a proof may take."""

from __future__ import annotations

__all__ = ["Budget", "SpentError"]


class SpentError(Exception):
    """The budget is spent; nothing is proved."""


class Budget:
    """Steps that may still be taken; a step is an expression evaluated or an effect applied."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self) -> None:
        """Take a step.

        Raises:
            SpentError: none is left.
        """
        self.left -= 1
        if self.left < 0:
            raise SpentError
