"""Runs of several processes: they start alike, decide alike and draw differently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.fabric import Fabric
from torch import Tensor, nn

from sacm.tasks import get_task
from sacm.training.trainer import Training
from tests.training.cases import make_data, make_settings
from tests.training.processes import in_processes

pytestmark = pytest.mark.slow


def _train(rank: int, folder: Path) -> None:
    """A network with batch normalisation and ordinary dropout; what each rank saw, as JSON."""
    torch.set_num_threads(1)
    data, task = make_data("forecasting"), get_task("forecasting")
    settings = make_settings("forecasting", backbone="WPMixer", strategy="fixed(p=0.5)")
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    training = Training(folder, task.resolve(settings, data), data, fabric)
    start = [float(p.detach().double().sum()) for p in training.model.parameters()]
    dropped: list[list[bool]] = []

    def watch(module: nn.Module, _: Any, out: Tensor) -> None:
        if module.training:
            dropped.append((out.flatten()[:200] == 0).tolist())

    next(m for m in training.model.modules() if isinstance(m, nn.Dropout)).register_forward_hook(
        watch
    )
    training.run()
    errors = [row["val_mae"] for row in training.progress.history]
    record = {"start": start, "errors": errors, "dropped": dropped}
    (folder / f"rank-{rank}.json").write_text(json.dumps(record))


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The records of two ranks of one run."""
    folder = tmp_path_factory.mktemp("run")
    in_processes(2, _train, folder)
    return [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(2)]


def test_all_ranks_start_from_the_same_weights(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["start"] == ranks[1]["start"]


def test_all_ranks_decide_by_the_same_validation(ranks: list[dict[str, Any]]) -> None:
    """Else one stops early and the others wait for it for ever."""
    assert len(ranks[0]["errors"]) == 3
    assert ranks[0]["errors"] == ranks[1]["errors"]


def test_masks_differ_between_ranks(ranks: list[dict[str, Any]]) -> None:
    ours, theirs = (torch.tensor(rank["dropped"]) for rank in ranks)
    assert ours.shape == theirs.shape
    assert 0.45 < ours.float().mean() < 0.55
    assert 0.45 < (ours == theirs).float().mean() < 0.55
