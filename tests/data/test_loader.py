from __future__ import annotations

import numpy as np
import pytest
import torch

from sacm.data import WindowBatches, forecasting_data, forecasting_windows
from sacm.errors import ArgumentError


@pytest.fixture(scope="module")
def windows():
    values = np.arange(300, dtype=np.float32)[:, None]
    return forecasting_windows(forecasting_data(values), input_len=5, horizon=2).train


def flat(batches) -> list[int]:
    return [place for batch in batches for place in batch.positions.tolist()]


def positions(batches) -> list[list[int]]:
    return [batch.positions.tolist() for batch in batches]


def test_order_depends_on_seed_and_epoch_alone(windows):
    one = WindowBatches(windows, 16, shuffle=True, seed=3)
    first, second = positions(one), positions(one)
    torch.manual_seed(99)
    np.random.seed(1)
    other = WindowBatches(windows, 16, shuffle=True, seed=3)
    assert positions(other) == first != second
    assert positions(other) == second
    assert positions(WindowBatches(windows, 16, shuffle=True, seed=4)) != first


def test_every_window_once_and_none_dropped_in_evaluation(windows):
    shuffled = WindowBatches(windows, 16, shuffle=True)
    assert sorted(flat(shuffled)) == windows.starts.tolist()
    ordered = WindowBatches(windows, 16)
    assert flat(ordered) == windows.starts.tolist()
    assert len(ordered) == -(-len(windows) // 16) == len(list(ordered))


def test_drop_last(windows):
    batches = WindowBatches(windows, 16, drop_last=True)
    assert {len(batch) for batch in positions(batches)} == {16}
    assert len(batches) == len(windows) // 16


def test_any_epoch_can_be_next(windows):
    batches = WindowBatches(windows, 16, shuffle=True, seed=3)
    epochs = [positions(batches) for _ in range(3)]
    batches.set_epoch(1)
    assert [positions(batches), positions(batches)] == epochs[1:]


def test_a_broken_off_pass_does_not_shift_the_next(windows):
    """As when a trainer looks at two validation batches first."""
    batches = WindowBatches(windows, 16)
    next(iter(batches))
    assert flat(batches) == windows.starts.tolist()


def test_bad_arguments(windows):
    with pytest.raises(ArgumentError, match="batch_size"):
        WindowBatches(windows, 0)


# Lightning itself trips over a deprecation of the newest torch.
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_lightning_trains_on_it(windows, tmp_path):
    """Batches go through a Lightning loop as they are, epoch after epoch in their order."""
    lightning = pytest.importorskip("lightning", reason="Lightning is not installed")

    class Model(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(5, 2)
            self.seen: list[list[int]] = []

        def training_step(self, batch, index):
            self.seen.append(batch.positions.tolist())
            return (self.line(batch.x[:, :, 0]) - batch.y[:, :, 0]).abs().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    batches = WindowBatches(windows, 64, shuffle=True, drop_last=True, seed=5)
    expected = [*positions(batches), *positions(batches)]
    batches.set_epoch(0)
    model = Model()
    trainer = lightning.Trainer(
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
        default_root_dir=tmp_path,
    )
    trainer.fit(model, batches)
    assert model.seen == expected
