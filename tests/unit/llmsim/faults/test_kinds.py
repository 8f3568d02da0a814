from __future__ import annotations

import pytest

from peripety.llmsim.faults.kinds import KINDS, FaultSetting, FaultStage

SETTINGS = [
    pytest.param(setting, id=f"{name}.{key}")
    for name, kind in KINDS.items()
    for key, setting in kind.settings.items()
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_default_is_a_value_that_its_setting_allows(setting: FaultSetting) -> None:
    default = setting.default
    if isinstance(default, str):
        assert setting.type is str
        assert not setting.choices or default in setting.choices
    elif default is not None:
        assert setting.type in {int, float}
        assert setting.minimum is not None
        assert setting.minimum <= default <= (setting.maximum or default)


def test_an_error_inside_an_answer_is_one_that_exists_by_itself() -> None:
    for name in ("error_in_200", "error_in_stream"):
        assert all(
            KINDS[choice].stage is FaultStage.ERROR for choice in KINDS[name].settings["error"].choices
        )


def test_only_an_answer_and_its_way_can_be_spoilt() -> None:
    assert {kind.stage for kind in KINDS.values() if kind.needs_response} == {
        FaultStage.STREAM,
        FaultStage.ANSWER,
    }
