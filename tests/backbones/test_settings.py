"""Settings and lengths that a network cannot have, and what the networks do with levels."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from sacm import backbones
from sacm.errors import ArgumentError

from .cases import noise

SIZES: dict[str, dict[str, Any]] = {
    "forecasting": {"input_len": 24, "horizon": 8, "channels": 3},
    "classification": {"input_len": 24, "channels": 3, "classes": 3},
    "anomaly": {"input_len": 24, "channels": 3},
}
WRONG: list[tuple[str, str, dict[str, Any], str]] = [
    ("AnomTrans", "anomaly", {"heads": 5}, "heads"),
    ("AnomTrans", "anomaly", {"layers": 0}, "layers"),
    ("DCdetector", "anomaly", {"heads": 5}, "heads"),
    ("DCdetector", "anomaly", {"layers": 0}, "layers"),
    *[("DCdetector", "anomaly", {"input_len": n}, f"{n} has no divisor") for n in (1, 2, 97)],
    ("InceptionTime", "classification", {"kernels": (40, 19)}, "odd"),
    ("InceptionTime", "classification", {"groups": 0}, "groups must be at least 1"),
    ("Informer", "forecasting", {"decoder_layers": 0}, "decoder_layers must be at least 1"),
    ("Informer", "forecasting", {"calendar_sizes": (24, 7, 31, 0)}, "calendar_sizes"),
    ("MiniROCKET", "classification", {"features": 83}, "at least 84 features"),
    ("MultiPatchFormer", "forecasting", {"patches": (8, 16, 24)}, "cannot be shared by 3"),
    ("MultiPatchFormer", "forecasting", {"patches": ()}, "cannot be shared by 0"),
    ("PatchTST", "anomaly", {"stride": 0}, "stride must be at least 1"),
    ("TimeFilter", "forecasting", {"heads": 5}, "heads"),
    ("TimeFilter", "forecasting", {"pruned_share": 1.0}, "pruned_share"),
    ("TimeMixer", "forecasting", {"scales": 0}, "scales must be at least 1"),
    ("TimeMixer", "forecasting", {"input_len": 7}, "at least 8 steps, got input_len=7"),
    *[("TimesNet", "anomaly", {"kernels": kernels}, "TimesNet") for kernels in ((1, 2), ())],
    ("TimesNet", "anomaly", {"blocks": 0}, "TimesNet"),
    ("TimesNet", "anomaly", {"input_len": 1}, "at least 2 steps"),
    *[("WPMixer", "forecasting", {"wavelet": name}, "WPMixer") for name in ("morl", "nothing")],
    ("WPMixer", "forecasting", {"level": -1}, "WPMixer"),
    ("WPMixer", "forecasting", {"input_len": 12}, "coefficient series of 7 values is too short"),
]


@pytest.mark.parametrize(("name", "task", "settings", "message"), WRONG)
def test_impossible_settings_are_refused(
    name: str, task: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        backbones.build(name, task, **{**SIZES[task], "size": "small", **settings})


@pytest.mark.parametrize("name", ["PatchTST", "TimeMixer", "TimesNet", "WPMixer"])
def test_forecasts_follow_level_and_scale_of_the_window(name: str) -> None:
    sizes = {"input_len": 48, "horizon": 6, "channels": 2, "size": "small"}
    model, x = backbones.build(name, "forecasting", **sizes).eval(), noise(3, 48, 2)
    with torch.no_grad():
        torch.testing.assert_close(model(10 * x + 4), 10 * model(x) + 4, atol=1e-2, rtol=1e-3)


@pytest.mark.parametrize("name", ["iTransformer", "TimesNet"])
def test_classifiers_see_the_level_that_detectors_give_back(name: str) -> None:
    torch.manual_seed(0)
    x = noise(3, 24, 3)
    classifier, detector = (
        backbones.build(name, task, size="small", **SIZES[task]).eval()
        for task in ("classification", "anomaly")
    )
    with torch.no_grad():
        assert (classifier(x + 5) - classifier(x)).abs().max() > 1e-3
        torch.testing.assert_close(detector(x + 5), detector(x) + 5, atol=1e-4, rtol=1e-4)
