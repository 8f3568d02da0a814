from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from peripety.gateway import local_model_server

if TYPE_CHECKING:
    import pytest


def test_without_its_packages_the_server_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert local_model_server.main([]) == 1
    assert "peripety[llm]" in capsys.readouterr().err
