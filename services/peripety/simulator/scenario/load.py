"""Script loader: TOML or JSON to a `Scenario`, with all problems in one error."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety.simulator.scenario.documents import DocumentError, parse_json, parse_toml
from peripety.simulator.scenario.fields import scenario
from peripety.simulator.scenario.files import Files
from peripety.simulator.scenario.places import Places
from peripety.simulator.scenario.problems import Problem, ScenarioError
from peripety.simulator.scenario.readers import Reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.simulator.scenario.model import Scenario

__all__ = ["document_to_scenario", "load_scenario", "read_scenario"]

_FORMATS = {".toml": "toml", ".json": "json"}


def load_scenario(path: str | Path) -> Scenario:
    """Read a script file, `.toml` or `.json`, and the files it refers to.

    Raises:
        ScenarioError: the file cannot be read or is not valid.
    """
    path = Path(path)
    if path.suffix not in _FORMATS:
        raise _whole(str(path), f"unknown suffix {path.suffix!r}; use .toml or .json")
    try:
        source = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _whole(str(path), f"not UTF-8 text: invalid byte {error.start}") from None
    except OSError as error:
        raise _whole(str(path), f"cannot be read: {error.strerror or error}") from None
    return read_scenario(source, format=_FORMATS[path.suffix], base=path.parent, name=str(path))


def read_scenario(
    source: str,
    *,
    format: str = "toml",  # noqa: A002 - the word for it
    base: Path | None = None,
    name: str = "scenario",
) -> Scenario:
    """Parse a script.

    Args:
        source: the text.
        format: `toml` or `json`.
        base: the directory of referenced files; None forbids references.
        name: the name of the text in messages.

    Raises:
        ScenarioError: the text is not valid.
    """
    try:
        document = parse_toml(source) if format == "toml" else parse_json(source)
    except DocumentError as error:
        raise ScenarioError(name, [Problem((), error.sentence, error.place)]) from None
    reading = Reading(Files(base))
    found = scenario(document, reading)
    if found is None:
        places = Places(source, format=format)
        placed = [(places.find(problem.path), problem) for problem in reading.problems]
        placed.sort(key=itemgetter(0))
        raise ScenarioError(name, [replace(problem, place=place) for place, problem in placed])
    return found


def document_to_scenario(document: Mapping[str, Any], *, name: str = "scenario") -> Scenario:
    """Convert the plain values of a script file to a script.

    Raises:
        ScenarioError: a value is not valid.
    """
    reading = Reading(Files(None))
    found = scenario(document, reading)
    if found is None:
        raise ScenarioError(name, reading.problems)
    return found


def _whole(name: str, sentence: str) -> ScenarioError:
    return ScenarioError(name, [Problem((), sentence)])
