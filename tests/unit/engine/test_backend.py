from __future__ import annotations

import sys
from types import ModuleType

import pytest

from peripety import engine
from peripety.engine._backend import load_backend
from peripety.engine.backend_protocol import EngineError
from peripety.version import __version__
from support.engine.backends import BACKEND_NAMES, backend_named

NATIVE = ("peripety.engine._native", "peripety_simcore", "peripety_simcore._native")


@pytest.fixture
def native_as(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An empty module in the place of the native package."""
    for name in NATIVE:
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = ModuleType("peripety_simcore")
    monkeypatch.setitem(sys.modules, "peripety_simcore", module)
    return module


def test_a_choice_that_is_none_is_an_error() -> None:
    with pytest.raises(ValueError, match="auto, native or python, not 'fast'"):
        load_backend("fast")


def test_python_can_be_asked_for() -> None:
    assert load_backend("python").name == "python"


def test_auto_goes_on_without_the_native_core_and_native_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NATIVE:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "peripety_simcore", None)
    assert load_backend("auto").name == "python"
    with pytest.raises(ModuleNotFoundError):
        load_backend("native")


def test_a_broken_native_core_is_never_passed_over(native_as: ModuleType) -> None:
    del native_as.__doc__
    with pytest.raises((ImportError, AttributeError)):
        load_backend("auto")


def test_the_running_core_and_its_version_are_named() -> None:
    assert engine.BACKEND in {"native", "python"}
    assert __version__ == engine.BACKEND_VERSION


@pytest.mark.parametrize("name", BACKEND_NAMES)
def test_a_document_that_is_no_scenario_is_refused_by_each_core(name: str) -> None:
    with pytest.raises(EngineError) as caught:
        backend_named(name).compile(b"{}")
    assert caught.value.code == "SPEC_INVALID"
