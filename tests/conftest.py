"""What a run says about itself: the core that answers, and what was skipped, in a line for each reason."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from peripety import sim

if TYPE_CHECKING:
    import pytest


def pytest_report_header() -> str:
    return f"core: {sim.BACKEND} {sim.BACKEND_VERSION}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"SKIPPED {count}: {reason}", yellow=True)
