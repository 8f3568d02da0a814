"""Visibility labels of a scenario, and the projection of values and changes for a viewer.

Every path has an audience. A label sets it for a path and everything below it; a deeper label overrides.
Without labels, everything is public, with two exceptions: only the entity sees `state.private.<entity>`, and
no viewer sees the rest of `state.private` and `state.hidden`.

Some values are *veiled*: while they are the empty text, no viewer sees them, nor that they exist. These are
the clues, statements and promises that are not revealed or made yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from peripety.engine.canonical_json import canonicalize
from peripety.engine.lowering import list_conditional_paths, list_veiled_paths
from peripety.engine.paths import Path, parse_path
from peripety.engine.types import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.engine.types import Change


_NO_AUDIENCE: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Label:
    """Node of the label tree; `audience` counts only if the node is labelled, and None means public.

    If `is_veiled`, an empty text is not seen; if `is_conditional`, neither is a change to the same text.
    """

    is_labelled: bool = False
    audience: frozenset[str] | None = None
    is_veiled: bool = False
    is_conditional: bool = False
    children: dict[str | int, _Label] = field(default_factory=dict)

    def add(self, path: Path, audience: frozenset[str] | None) -> None:
        label = self.descend(path)
        label.is_labelled, label.audience = True, audience

    def descend(self, path: Path) -> _Label:
        """Return the node at a path, made if needed."""
        label = self
        for segment in path:
            label = label.children.setdefault(segment, _Label())
        return label

    def shows_children(self, viewer: str | None) -> bool:
        """Return True if no label below excludes a viewer."""
        return all(
            (not child.is_labelled or _includes(child.audience, viewer)) and child.shows_children(viewer)
            for child in self.children.values()
        )


class Visibility:
    """Visibility labels of a scenario.

    Args:
        spec: a validated scenario.
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._root = _Label()
        self._root.add(("hidden",), _NO_AUDIENCE)
        self._root.add(("private",), _NO_AUDIENCE)
        for entity in spec.get("entities", ()):
            self._root.add(("private", entity["id"]), frozenset({entity["id"]}))
        for rule in spec.get("visibility", ()):
            self._root.add(parse_path(rule["path"])[1:], _parse_audience(rule["to"]))
        for path in list_veiled_paths(spec):
            self._root.descend(path[1:]).is_veiled = True
        for path in list_conditional_paths(spec):
            self._root.descend(path[1:]).is_conditional = True

    @property
    def root(self) -> _Label:
        """Root of the label tree, for `View`."""
        return self._root

    def find_audience(self, path: Path) -> frozenset[str] | None:
        """Return the entities that may see the value at a path (as from `parse_path`); None if it is public.

        Values below it may have another audience. A veiled value has none, as it may not exist yet.
        """
        label, audience = self._root, self._root.audience
        for segment in path[1:]:
            if segment not in label.children:
                break
            label = label.children[segment]
            audience = label.audience if label.is_labelled else audience
            if label.is_veiled:
                return _NO_AUDIENCE
        return audience

    def shows_whole(self, path: Path, viewer: str | None) -> bool:
        """Return True if a viewer may see the value at a path and everything below it.

        Args:
            path: as from `parse_path`.
            viewer: the id of an entity; None for the public.
        """
        audience = self.find_audience(path)
        label: _Label | None = self._root
        for segment in path[1:]:
            label = label.children.get(segment) if label else None
        return _includes(audience, viewer) and (label is None or label.shows_children(viewer))


def _includes(audience: frozenset[str] | None, viewer: str | None) -> bool:
    return audience is None or viewer in audience


@dataclass(frozen=True, slots=True)
class _Position:
    """Position in the state: visibility for a viewer, and the labels below."""

    is_visible: bool
    label: _Label | None


class View:
    """Projection of a run for one viewer.

    Args:
        visibility: the labels.
        viewer: the id of an entity; None for the public part.
    """

    def __init__(self, visibility: Visibility, viewer: str | None) -> None:
        self.viewer = viewer
        self._root = self._descend(_Position(is_visible=True, label=None), visibility.root)

    def project_state(self, tree: Any) -> dict[str, Any]:
        """Return the visible part of a state tree."""
        seen = self._project_value(tree, self._root)
        return seen if isinstance(seen, dict) else {}

    def project_changes(self, changes: Iterable[Change]) -> tuple[Change, ...]:
        """Return the visible changes, each with its values reduced to their visible parts."""
        return tuple(seen for change in changes if (seen := self._project_change(change)) is not None)

    def can_see(self, path: str) -> bool:
        """Return True if the value at a path is visible; parts of it may have another audience.

        A veiled value is not, as it may not exist yet.
        """
        place = self._find_position(path)
        return place.is_visible and not (place.label is not None and place.label.is_veiled)

    def _find_position(self, path: str) -> _Position:
        place = self._root
        for segment in parse_path(path)[1:]:
            place = self._descend(place, place.label.children.get(segment) if place.label else None)
        return place

    def _project_change(self, change: Change) -> Change | None:
        place = self._find_position(change.path)
        if place.label is not None and place.label.is_conditional and change.before == change.after:
            return None
        before, after = self._project_value(change.before, place), self._project_value(change.after, place)
        if before is ABSENT and after is ABSENT:
            return None
        was_cut = (before, after) != (change.before, change.after)
        return (
            None if was_cut and _is_same_json(before, after) else replace(change, before=before, after=after)
        )

    def _descend(self, holder: _Position, label: _Label | None) -> _Position:
        if label is None or not label.is_labelled:
            return _Position(holder.is_visible, label)
        return _Position(label.audience is None or self.viewer in label.audience, label)

    def _project_value(self, value: Any, place: _Position) -> Any:
        """Return the visible part of a value, or `ABSENT`."""
        if place.label is not None and place.label.is_veiled and value == "":
            return ABSENT
        if place.label is None or not place.label.children or not isinstance(value, dict | list):
            return value if place.is_visible else ABSENT
        below = place.label.children
        if isinstance(value, dict):
            seen = {
                key: self._project_value(item, self._descend(place, below.get(key)))
                for key, item in value.items()
            }
            kept = {key: item for key, item in seen.items() if item is not ABSENT}
            return kept if kept or place.is_visible else ABSENT
        items = [
            self._project_value(item, self._descend(place, below.get(index)))
            for index, item in enumerate(value)
        ]
        # Hidden elements become None, so that indices mean the same to every viewer.
        shown = any(item is not ABSENT for item in items)
        return [None if item is ABSENT else item for item in items] if shown or place.is_visible else ABSENT


def _parse_audience(to: str | list[str]) -> frozenset[str] | None:
    if isinstance(to, list):
        return frozenset(to)
    return None if to == "public" else _NO_AUDIENCE


def _is_same_json(first: Any, second: Any) -> bool:
    """Return True if two values are equal as JSON; in Python alone, True equals 1."""
    return first == second and canonicalize(first) == canonicalize(second)
