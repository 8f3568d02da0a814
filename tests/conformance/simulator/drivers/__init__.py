"""The SDKs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.simulator.drivers.gemini import Gemini

if TYPE_CHECKING:
    from conformance.simulator.driver import Driver

__all__ = ["DRIVERS"]

DRIVERS: tuple[type[Driver], ...] = (Gemini,)
