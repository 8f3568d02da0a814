"""Every module declares its public names, and defines all of them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from support.repo.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path


SOURCES = (ROOT / "services", ROOT / "simcore" / "python", ROOT / "clients" / "python")
GENERATED = ROOT / "clients" / "python" / "peripety" / "api"
OPTIONAL = (
    ROOT / "simcore" / "python" / "peripety" / "engine" / "_native.py"
)  # cannot be imported without the native core
PUBLIC = ["peripety.engine", "peripety.errors", "peripety.core.config", "peripety.client", "peripety.cli.app"]


def modules() -> list[str]:
    return [
        module_name(path, source)
        for source in SOURCES
        for path in sorted((source / "peripety").rglob("*.py"))
        if GENERATED not in path.parents and path != OPTIONAL and path.name != "__main__.py"
    ]


def module_name(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("name", modules())
def test_exported_names_exist_once(name: str) -> None:
    module = import_module(name)
    exported = getattr(module, "__all__", [])
    assert len(set(exported)) == len(exported)
    assert not [item for item in exported if not hasattr(module, item)]


@pytest.mark.parametrize("name", PUBLIC)
def test_what_a_public_module_defines_is_exported_or_named_private(name: str) -> None:
    module = import_module(name)
    public = {key for key, value in vars(module).items() if not key.startswith("_") and is_own(value, name)}
    assert not public - set(getattr(module, "__all__", []))


def is_own(value: object, module: str) -> bool:
    return not isinstance(value, ModuleType) and getattr(value, "__module__", None) == module
