"""What the trainer costs on top of a bare loop over the same model and loader."""

from __future__ import annotations

import statistics
import tempfile
from functools import partial
from pathlib import Path

import torch
from lightning.fabric import Fabric

from benchmarks import make_parser
from benchmarks.timing import interleave, ratio
from sacm.data import synth12
from sacm.tasks import get_task, make_settings
from sacm.training.progress import TrainingProgress
from sacm.training.trainer import Training

STEPS = 60


def _training(backbone: str, folder: Path) -> Training:
    task = get_task("forecasting")
    data = synth12(0.5)
    settings = make_settings(
        task="forecasting",
        data="Synth-12@0.5",
        backbone=backbone,
        strategy="raw",
        stride=20_000 // (32 * STEPS),
        epochs=1,
    )
    settings = task.resolve(settings, data)
    fabric = Fabric(accelerator="cpu", devices=1)
    return Training(folder, settings, data, fabric)


def _bare_epoch(training: Training) -> None:
    """The least that trains: no checks, no records, no wrappers."""
    model, optimizer = training.model.train(), training.optimizer
    for batch in training.train_batches:
        optimizer.zero_grad()
        loss = (model(batch.x) - batch.y).abs().mean()
        loss.backward()
        optimizer.step()


def _trainer_epoch(training: Training) -> None:
    """What `Training` does in an epoch before it validates."""
    training.train_epoch(1, TrainingProgress("", STEPS, show=False))


def main(rounds: int = 7) -> None:
    print("trainer epoch relative to a bare loop, same model and loader (Synth-12, L 96, H 96)")
    for backbone in ("iTransformer", "PatchTST"):
        with tempfile.TemporaryDirectory() as folder:
            training = _training(backbone, Path(folder))
            seconds = interleave(
                {
                    "bare": partial(_bare_epoch, training),
                    "trainer": partial(_trainer_epoch, training),
                },
                rounds=rounds,
                warmup=1,
            )
        steps = len(training.train_batches)
        per_second = steps / statistics.median(seconds["trainer"])
        print(
            f"  {backbone:13} {ratio(seconds['trainer'], seconds['bare'])}   "
            f"{per_second:.0f} steps a second, {torch.get_num_threads()} threads"
        )


if __name__ == "__main__":
    make_parser(__doc__).parse_args()
    main()
