"""Coverage targets of a scenario, with those that are proved unreachable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim.schema import pointer
from peripety.testgen.subjects.subject import Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety import sim

__all__ = ["targets"]

_DEAD = frozenset({"DEAD_ACTION", "DEAD_EVENT", "IMPOSSIBLE_LOSS", "UNREACHABLE_WIN"})


def targets(program: sim.Program) -> Iterator[tuple[tuple[str, str], Target]]:
    """Yield the targets in the order of the document, each with the kind and id that playback reports."""
    spec = program.spec
    dead = {proof.path for proof in program.proofs() if proof.code in _DEAD}
    for index, action in enumerate(spec["actions"]):
        path, name = pointer(("actions", index)), action["id"]
        yield ("action", name), Target("action", path, f"get action '{name}' accepted", path not in dead)
        if action["preconditions"] or action["params"]:
            yield ("rejection", name), Target("rejection", path, f"get action '{name}' rejected")
    for index, event in enumerate(spec["random_events"]):
        path, name = pointer(("random_events", index)), event["id"]
        yield ("event", name), Target("event", path, f"make event '{name}' happen", path not in dead)
    for section, what in (("loss_conditions", "lose"), ("win_conditions", "win")):
        for index, ending in enumerate(spec.get(section) or ()):
            path, name = pointer((section, index)), ending["id"]
            yield ("ending", name), Target("ending", path, f"{what} by '{name}'", path not in dead)
    for place, effect in _scheduled(spec):
        name = effect["id"]
        yield ("schedule", name), Target("schedule", pointer(place), f"make scheduled effect '{name}' run")


def _scheduled(spec: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """Yield the first scheduling effect of each id."""
    seen: set[str] = set()
    for section in ("actions", "random_events"):
        for index, rule in enumerate(spec[section]):
            for place, effect in _nested(rule["effects"], (section, index, "effects")):
                if effect["id"] not in seen:
                    seen.add(effect["id"])
                    yield place, effect


def _nested(
    effects: Sequence[Mapping[str, Any]], place: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    for index, effect in enumerate(effects):
        if effect["op"] == "schedule":
            yield (*place, index), effect
            yield from _nested(effect["effects"], (*place, index, "effects"))
