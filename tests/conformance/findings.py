"""The tables of docs/reference/findings.md, by the catalogue: `make findings` writes them."""

from __future__ import annotations

import re

from peripety.errors import load_catalog
from support.repo.repository import ROOT

PAGE = ROOT / "docs" / "reference" / "findings.md"

_TABLE = re.compile(r"<!-- (\w+) -->\n(?:\|.*\n)*")
_HEAD = "| code | what it means | what to do |\n| --- | --- | --- |\n"


def page() -> str:
    """The page with a table below the mark of each group.

    Raises:
        ValueError: the marks are not those of the groups, in their order.
    """
    text = PAGE.read_text(encoding="utf-8")
    marks = [match.group(1) for match in _TABLE.finditer(text)]
    if marks != list(load_catalog()):
        raise ValueError(f"{PAGE.name} has marks for {marks}, and the catalogue has {list(load_catalog())}")
    return _TABLE.sub(lambda match: _table(match.group(1)), text)


def _table(group: str) -> str:
    kinds = load_catalog()[group].items()
    rows = [f"| `{code}` | {_cell(kind.means)} | {_cell(kind.fix)} |\n" for code, kind in kinds]
    return f"<!-- {group} -->\n{_HEAD}{''.join(rows)}"


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("__", r"\_\_")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
