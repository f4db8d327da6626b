"""Settings of a run."""

from __future__ import annotations

import pytest

from sacm.errors import ArgumentError
from tests.training.cases import make_settings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": -1}, "learning_rate"),
        ({"learning_rate": float("inf")}, "learning_rate = inf: input should be a finite number"),
        ({"weight_decay": float("nan")}, "weight_decay = nan: input should be a finite number"),
        ({"epochs": 0}, "epochs"),
        ({"size": "huge"}, "size"),
        ({"backbone": "PatchTSTT"}, "Did you mean 'PatchTST'"),
        ({"backbone": "TranAD"}, "serves another task"),
        ({"strategy": "sacmm"}, "Did you mean 'sacm'"),
        ({"speed": 3}, "speed"),
        ({"seed": -1}, "seed"),
        ({"precision": "8-bit"}, "precision"),
    ],
)
def test_wrong_settings_are_one_sentence(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        make_settings("forecasting", **changes)
    assert "\n" not in str(caught.value)
