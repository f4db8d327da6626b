from __future__ import annotations

import dataclasses
import pickle

import pytest

from sacm import SACMConfig


def test_the_defaults_are_the_papers() -> None:
    config = SACMConfig()
    assert (config.p_min, config.p_max, config.alpha, config.gamma) == (0.05, 0.50, 10.0, 1.0)
    assert (config.sfm_weight, config.sfm_bias, config.eps) == (1.0, 0.0, 1e-8)
    assert (config.detrend, config.log_norm, config.sfm_anchor) == ("ols", True, True)


def test_settings_are_frozen_and_survive_pickling() -> None:
    config = SACMConfig(p_max=0.3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.p_max = 0.9  # type: ignore[misc]  # that is the point
    assert pickle.loads(pickle.dumps(config)) == config
