"""Static checks of effects: paths, values and due times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.errors import Finding
from peripety.sim._core import CoreError
from peripety.sim._pure.literals import looks_like_code
from peripety.sim._pure.paths import MISSING, Path, parse_state_path
from peripety.sim.checks.documents import check_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.sim.checks.world import World

__all__ = ["check_effects", "check_path"]

MAX_SCHEDULE_DEPTH = 4
_NEEDS: dict[str, tuple[type, str]] = {
    "inc": (float, "a number"),
    "dec": (float, "a number"),
    "mul": (float, "a number"),
    "patch": (dict, "an object"),
    "push": (list, "an array"),
    "pop": (list, "an array"),
}


def check_effects(
    effects: list[Any],
    place: str,
    world: World,
    derives: frozenset[str],
    at: str | None = None,
    depth: int = 1,
) -> Iterator[Finding]:
    """Yield the findings about a list of effects.

    Args:
        effects: the effects.
        place: pointer of the list.
        world: the existing paths and entities.
        derives: names of derived values that a string value may refer to.
        at: pointer to report instead of the effect's own, for effects that another part of the document
            implies.
        depth: nesting depth of the list in schedules.
    """
    for index, effect in enumerate(effects):
        here = at or f"{place}/{index}"
        if effect["op"] == "schedule":
            yield from _check_schedule(effect, here, world, derives, depth)
        elif effect["op"] != "addlog":
            yield from _check_target(effect, here, world)
            if "value" in effect:
                yield from _check_value(effect, here, derives)


def _check_schedule(
    effect: dict[str, Any], place: str, world: World, derives: frozenset[str], depth: int
) -> Iterator[Finding]:
    if ("at" in effect) == ("after" in effect):
        yield Finding("BAD_SCHEDULE", place, "give either 'at' or 'after', and not both")
    for key in ("at", "after"):
        if isinstance(effect.get(key), str):
            yield from check_duration(effect[key], f"{place}/{key}")
    if depth > MAX_SCHEDULE_DEPTH:
        yield Finding("BAD_SCHEDULE", place, f"schedules are nested deeper than {MAX_SCHEDULE_DEPTH} levels")
        return
    yield from check_effects(effect["effects"], f"{place}/effects", world, derives, depth=depth + 1)


def _check_target(effect: dict[str, Any], place: str, world: World) -> Iterator[Finding]:
    path, finding = _parsed(effect["path"], place)
    if finding is not None:
        yield finding
        return
    if effect["op"] == "set":
        yield from _check_set(path, place, world)
        return
    if not world.exists(path) and not world.may_grow(path):
        yield _unknown(effect["path"], place)
        return
    wanted, name = _NEEDS[effect["op"]]
    value = world.initial(path)
    fits = (
        isinstance(value, int | float) and not isinstance(value, bool)
        if wanted is float
        else isinstance(value, wanted)
    )
    if value is not MISSING and not fits and not world.is_written(path):
        message = f"'{effect['path']}' does not hold {name}, which '{effect['op']}' needs"
        yield Finding("TYPE_MISMATCH", place, message)


def _check_set(path: Path, place: str, world: World) -> Iterator[Finding]:
    if len(path) == 1:
        yield Finding("BAD_PATH", place, "the whole state cannot be set; name a key of it, such as state.a")
    elif not (world.exists(path[:-1]) or world.may_grow(path[:-1])):
        yield Finding(
            "UNKNOWN_PATH", place, f"'set' creates the last key only; '{_text(path[:-1])}' does not exist"
        )


def _check_value(effect: dict[str, Any], place: str, derives: frozenset[str]) -> Iterator[Finding]:
    value = effect["value"]
    if isinstance(value, str) and value in derives:
        return
    if effect["op"] in {"inc", "dec", "mul", "patch"} and isinstance(value, str):
        known = (
            f"known derived values: {', '.join(sorted(derives))}"
            if derives
            else "this rule derives no values"
        )
        yield Finding("UNKNOWN_DERIVE", f"{place}/value", f"'{value[:60]}' is not a derived value; {known}")
        return
    if looks_like_code(value):
        message = (
            "the value must be a literal; put the expression into 'derives' and use its name as the value"
        )
        yield Finding("CODE_IN_VALUE", f"{place}/value", message)


def check_path(text: str, place: str, world: World) -> Iterator[Finding]:
    """Yield a finding if a path does not exist."""
    path, finding = _parsed(text, place)
    if finding is not None:
        yield finding
    elif not world.exists(path) and not world.may_grow(path):
        yield _unknown(text, place)


def _parsed(text: str, place: str) -> tuple[Path, Finding | None]:
    try:
        return parse_state_path(text), None
    except CoreError as error:
        return (), Finding(error.code, place, error.message)


def _unknown(text: str, place: str) -> Finding:
    return Finding("UNKNOWN_PATH", place, f"'{text[:80]}' is not in the state, and no effect creates it")


def _text(path: Path) -> str:
    return ".".join(str(segment) for segment in path)
