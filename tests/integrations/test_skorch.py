from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import sacm

skorch = pytest.importorskip("skorch", reason="needs the `integrations` extra")
from sacm.integrations.skorch import AttachedModule  # noqa: E402  # after the check

from .series import cut_windows  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # the library's own
CHANNELS, LENGTH = 2, 16
FRESH = [1.0, 1.0, 0.0, 0.0, 10.0, 1.0]


class Network(nn.Module):
    def __init__(self, hidden: int = 8) -> None:
        super().__init__()
        layers = nn.Linear(LENGTH * CHANNELS, hidden), nn.ReLU(), nn.Dropout(0.2)
        self.layers = nn.Sequential(nn.Flatten(), *layers, nn.Linear(hidden, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def data() -> tuple[np.ndarray, np.ndarray]:
    windows = cut_windows(95, LENGTH, CHANNELS)
    return windows, windows.mean(axis=1)[:, :1]


def net(module: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    return skorch.NeuralNetRegressor(
        module,
        max_epochs=5,
        batch_size=16,
        train_split=None,
        lr=0.05,
        callbacks__print_log=None,
        **options,
    )


def scalars(fitted: Any) -> list[float]:
    return [float(v) for p in fitted.module_.sacm_modulator.parameters() for v in p.ravel()]


def test_net_trains_the_scalars_saves_loads_and_trains_on(tmp_path: Path) -> None:
    attached = AttachedModule(Network, channels=CHANNELS)
    fitted = net(attached, module__hidden=4).fit(*data())
    assert scalars(fitted) != FRESH

    fitted.save_params(f_params=tmp_path / "weights.pt")
    again = net(attached, module__hidden=4).initialize()
    again.load_params(f_params=tmp_path / "weights.pt")
    raw = net(Network, module__hidden=4).initialize()
    weights = torch.load(tmp_path / "weights.pt", weights_only=True)
    raw.module_.load_state_dict(sacm.strip_state_dict(weights))
    copied = pickle.loads(pickle.dumps(fitted))
    expected = fitted.predict(data()[0])
    for other in (again, raw, copied):
        np.testing.assert_array_equal(other.predict(data()[0]), expected)
    before = scalars(again)
    again.partial_fit(*data())
    assert scalars(again) != before


def test_nets_are_cloned_by_a_search() -> None:
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(
        net(AttachedModule(Network, channels=CHANNELS)), {"module__hidden": [4, 6]}, cv=2
    )
    search.fit(*data())
    assert scalars(search.best_estimator_) != FRESH


def test_guarded_net_answers_broken_windows() -> None:
    guard = sacm.Guard(window=LENGTH).fit(np.random.default_rng(1).normal(size=(400, CHANNELS)))

    def protected() -> nn.Module:
        return sacm.protect(Network(), guard)

    fitted = net(AttachedModule(protected, channels=CHANNELS)).fit(*data())
    broken = data()[0][:2]
    broken[0, 3] = np.nan
    assert np.isfinite(fitted.predict(broken)).all()
