"""Settings: two types, one declaration each, and identities that outlive new settings."""

from __future__ import annotations

import pytest
from pydantic import create_model

from sacm.errors import ArgumentError
from sacm.settings import ResolvedSettings, RunSettings, option_name, setting
from sacm.tasks import make_settings

COMPLETE = {"strategy": "sacm", "input_len": 96, "batch_size": 32, "backbone": "PatchTST"}
FORECASTING = {**COMPLETE, "task": "forecasting", "data": "ILI", "horizon": 24, "select": "mae"}
CLASSIFICATION = {**COMPLETE, "task": "classification", "data": "my.npz", "select": "accuracy"}
ANOMALY = {
    **COMPLETE,
    "task": "anomaly",
    "data": "MSL",
    "backbone": "TranAD",
    "select": "loss",
    "strategy": "sacm(p_max=0.4)",
    "score": "reconstruction",
    "overrides": {"width": 8},
}


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (FORECASTING, "ILI_PatchTST_sacm_seed42_5b0a8a3c91"),
        (CLASSIFICATION, "my_PatchTST_sacm_seed42_0f22a203de"),
        (ANOMALY, "MSL_TranAD_sacm-p-max-0-4_seed42_507c5e76b2"),
        (
            {**FORECASTING, "contamination": "mix(0.3)"},
            "ILI_PatchTST_sacm_seed42_e11a709c57",
        ),
    ],
)
def test_run_ids_are_what_they_were(values: dict[str, object], name: str) -> None:
    """A changed name here means that finished runs would be run again."""
    assert ResolvedSettings(**values).run_id("0123456789abcdef") == name


def test_a_setting_added_later_renames_no_run() -> None:
    later = create_model("Later", __base__=ResolvedSettings, momentum=(float, setting(0.0, "New.")))
    old = ResolvedSettings(**FORECASTING)
    assert later(**FORECASTING).run_id("mark") == old.run_id("mark")
    assert later(**FORECASTING, momentum=0.9).run_id("mark") != old.run_id("mark")


def test_a_default_that_changes_keeps_old_runs_apart() -> None:
    later = create_model("Later", __base__=ResolvedSettings, patience=(int, setting(3, "")))
    asked_now = later(**FORECASTING)
    assert asked_now.run_id("mark") != ResolvedSettings(**FORECASTING).run_id("mark")


def test_the_strategy_of_a_user_who_names_none_is_the_tasks() -> None:
    assert make_settings(task="forecasting", data="ILI").strategy == "guard"
    assert make_settings(task="anomaly", data="MSL").strategy == "raw"
    assert make_settings(task="classification", data="BasicMotions").strategy == "raw"


def test_every_wrong_setting_is_named_at_once() -> None:
    with pytest.raises(ArgumentError, match=r"seed = -1: .*epochs = 0: "):
        make_settings(task="forecasting", data="ILI", epochs=0, seed=-1)
    with pytest.raises(ArgumentError, match="there is no setting 'epoch'"):
        make_settings(task="forecasting", data="ILI", epoch=3)


def test_options_are_named_after_their_settings() -> None:
    assert option_name("learning_rate") == "--lr"
    assert option_name("batch_size") == "--batch-size"


def test_asked_settings_have_help_for_every_field() -> None:
    assert all(field.description for field in RunSettings.model_fields.values())
