"""Static checks of the lists of a policy, and of the values of matchers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.errors import Finding
from peripety.sim._core import CoreError
from peripety.sim._pure.policies.entries import Entries
from peripety.sim.policies.checks.names import unknown
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["NamedLists", "check_entries", "check_lists"]

MAX_ENTRIES = 10_000
"""Maximum entries of one matcher, counting references to lists and the values of those lists."""


class NamedLists:
    """Lists of a policy with their expanded sizes."""

    def __init__(self, lists: Mapping[str, Any]) -> None:
        self.lists = lists
        self._sizes: dict[str, int] = {}
        self.circular = {name for name in lists if self._leads_to_itself(name)}
        for name in lists:
            self._measure(name)

    def size(self, entries: Sequence[str]) -> int:
        """Return the number of entries after expansion; references to lists count as well."""
        return len(entries) + sum(self._sizes[name] for name in self._named(entries))

    def _named(self, entries: Sequence[str]) -> list[str]:
        names = (entry[1:] for entry in entries if entry.startswith("@"))
        return [name for name in names if name in self.lists and name not in self.circular]

    def _leads_to_itself(self, name: str) -> bool:
        seen: set[str] = set()
        pending = [name]
        while pending:
            values = self.lists[pending.pop()]["values"]
            named = {value[1:] for value in values if value.startswith("@")} & self.lists.keys()
            if name in named:
                return True
            pending.extend(named - seen)
            seen |= named
        return False

    def _measure(self, name: str) -> None:
        """Compute the sizes of a list and its nested lists, depth first and without recursion."""
        pending = [name]
        while pending:
            at = pending[-1]
            below = [] if at in self.circular else self._named(self.lists[at]["values"])
            unmeasured = [inner for inner in below if inner not in self._sizes]
            if unmeasured:
                pending.extend(unmeasured)
            else:
                pending.pop()
                self._sizes[at] = 0 if at in self.circular else self.size(self.lists[at]["values"])


def check_lists(lists: NamedLists) -> Iterator[Finding]:
    """Yield the findings about the lists."""
    for name, named in lists.lists.items():
        place = f"/lists{pointer([name])}"
        if name in lists.circular:
            yield Finding("LIST_CYCLE", place, f"the list '{name[:80]}' refers to itself")
        yield from check_entries(named["values"], named["kind"], f"{place}/values", lists)


def check_entries(entries: Sequence[str], kind: str, place: str, lists: NamedLists) -> Iterator[Finding]:
    """Yield the findings about the values of a list or of a matcher."""
    if lists.size(entries) > MAX_ENTRIES:
        message = f"more than {MAX_ENTRIES} entries, counting references to lists and their values"
        yield Finding("LIST_TOO_LONG", place, message)
    for index, entry in enumerate(entries):
        if entry.startswith("@"):
            yield from _check_named(entry[1:], kind, f"{place}/{index}", lists)
            continue
        try:
            Entries(kind, [entry])
        except CoreError as error:
            yield Finding("BAD_ENTRY", f"{place}/{index}", f"not a valid {kind}: {error.message}")


def _check_named(name: str, kind: str, place: str, lists: NamedLists) -> Iterator[Finding]:
    if name not in lists.lists:
        yield Finding("UNKNOWN_LIST", place, unknown("list", name, lists.lists))
    elif lists.lists[name]["kind"] != kind:
        message = (
            f"the list '{name[:80]}' has the kind {lists.lists[name]['kind']}; use a list of the kind {kind}"
        )
        yield Finding("WRONG_LIST_KIND", place, message)
