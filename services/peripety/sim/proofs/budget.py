"""Work budget of the analysis."""

from __future__ import annotations

__all__ = ["Budget", "SpentError"]


class SpentError(Exception):
    """The budget is spent; nothing can be claimed."""


class Budget:
    """Remaining steps; a step is one expression evaluated or one effect applied."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self) -> None:
        """Spend one step.

        Raises:
            SpentError: no steps are left.
        """
        self.left -= 1
        if self.left < 0:
            raise SpentError
