from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import sacm

from .series import make_loader, small_network

accelerate = pytest.importorskip("accelerate", reason="needs the `integrations` extra")
pytestmark = pytest.mark.filterwarnings("ignore")  # the library's own
CHANNELS, LENGTH = 2, 16


def train(accelerator: Any, model: Any, optimizer: Any, batches: Any) -> None:
    model.train()
    for x, y in batches:
        optimizer.zero_grad()
        accelerator.backward(F.mse_loss(model(x), y))
        optimizer.step()


def test_loop_trains_saves_and_resumes(tmp_path: Path) -> None:
    accelerator = accelerate.Accelerator(cpu=True)
    model = small_network(LENGTH, CHANNELS)
    modulator = sacm.attach(model, channels=CHANNELS)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model, optimizer, batches = accelerator.prepare(model, optimizer, make_loader(LENGTH, CHANNELS))
    train(accelerator, model, optimizer, batches)
    assert not torch.equal(modulator.scorer.weight.detach(), torch.ones(CHANNELS))
    accelerator.save_state(str(tmp_path))
    saved = {key: value.clone() for key, value in model.state_dict().items()}

    raw = small_network(LENGTH, CHANNELS)
    raw.load_state_dict(sacm.strip_state_dict(saved))
    x = torch.randn(4, LENGTH, CHANNELS)
    assert torch.equal(raw.eval()(x), model.eval()(x))

    train(accelerator, model, optimizer, batches)
    assert not torch.equal(
        model.state_dict()["sacm_modulator.scorer.weight"], saved["sacm_modulator.scorer.weight"]
    )
    accelerator.load_state(str(tmp_path))
    for key, value in model.state_dict().items():
        assert torch.equal(value, saved[key])
