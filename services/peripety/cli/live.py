"""Console view with a live status bar: progress and cost so far."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from peripety.cli.spending import dollars
from peripety.cli.story import Story
from peripety.cli.text import in_one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from peripety.api.scenario.v1 import scenario_pb2

__all__ = ["live_story"]


@contextmanager
def live_story(out: Console) -> Iterator[Story]:
    """Yield a console view. The bar is shown only on a terminal."""
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task("", total=1.0)

        def follow(progress: scenario_pb2.Progress) -> None:
            bar.update(task, completed=progress.fraction, description=_how_far(progress))

        yield Story(out, follow)


def _how_far(progress: scenario_pb2.Progress) -> str:
    message = in_one_line(progress.message)
    spent = progress.usage.cost.pico_units
    return f"{message} · {dollars(spent)}" if spent else message
