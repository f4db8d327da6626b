"""Attached models in two and four processes, wrapped for data-parallel training.

Rates, gradients and scalars must be those of one process that sees the windows of all. That is
computed here from the formulas, with the masks that the processes drew.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import sacm

from .models import CHANNELS, windows

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
EACH, STEPS = 3, 6  # windows in each process; enough steps for a check of the layouts


class Wide(nn.Module):
    """One site whose output is the result, so that the mask is to be seen."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(CHANNELS, 32), nn.Linear(32, 256))
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.body(x))


def make_model() -> tuple[Wide, sacm.CapacityModulator]:
    torch.manual_seed(0)
    model = Wide()
    return model, sacm.attach(model, channels=CHANNELS, example_inputs=windows())


def train(rank: int, world: int, folder: str) -> None:
    """Train a few steps; save what this process saw in the first, and where it ended."""
    model, modulator = make_model()
    wrapped = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
    record: dict[str, Any] = {}
    for step in range(STEPS):
        x = windows(EACH * world, seed=step)[rank * EACH :][:EACH]
        torch.manual_seed(step)  # the same in all processes
        optimizer.zero_grad()
        out = wrapped(x)
        out.square().mean().backward()
        if step == 0:
            gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
            record = {"rates": modulator.rates, "kept": out != 0, "gradients": gradients}
        optimizer.step()
    record["end"] = {name: p.detach().clone() for name, p in model.named_parameters()}
    record["checks"] = 2 - modulator.checks_left
    torch.save(record, f"{folder}/{rank}.pt")


def run_process(rank: int, world: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meet", rank=rank, world_size=world)
    train(rank, world, folder)
    dist.destroy_process_group()


@pytest.fixture(
    scope="module",
    params=[2, pytest.param(4, marks=pytest.mark.nightly)],
    ids=["two", "four"],
)
def ranks(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """What every process saw."""
    world: int = request.param
    folder = tmp_path_factory.mktemp("processes")
    mp.spawn(run_process, (world, str(folder)), nprocs=world)
    return [torch.load(folder / f"{rank}.pt") for rank in range(world)]


def test_rates_are_those_of_the_whole_batch(ranks: list[dict[str, Any]]) -> None:
    x = windows(EACH * len(ranks), seed=0)
    expected = sacm.RateMapper()(sacm.SpectralScorer(CHANNELS)(x).scores).detach()
    torch.testing.assert_close(torch.cat([rank["rates"] for rank in ranks]), expected)


def test_masks_follow_the_rates_and_differ_between_processes(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        share, rates = rank["kept"].flatten(1).double().mean(1), rank["rates"]
        spread = (rates * (1 - rates) / rank["kept"][0].numel()).sqrt()
        assert ((share - (1 - rates)).abs() < 5 * spread).all()
    first, second = ranks[0]["kept"], ranks[1]["kept"]
    keep = [1 - rank["rates"] for rank in ranks[:2]]
    chance = keep[0] * keep[1] + (1 - keep[0]) * (1 - keep[1])
    agree = (first == second).flatten(1).double().mean(1)
    assert ((agree - chance).abs() < 5 * (0.25 / first[0].numel()) ** 0.5).all()


def test_gradients_are_those_of_one_process_with_the_same_masks(
    ranks: list[dict[str, Any]],
) -> None:
    model, modulator = make_model()
    x = windows(EACH * len(ranks), seed=0)
    rates = modulator.mapper(modulator.scorer(x).scores)
    keep = (1 - rates)[:, None, None]
    mask = torch.cat([rank["kept"] for rank in ranks]).float()
    out = model.body(x) * (mask + keep - keep.detach()) / keep
    out.square().mean().backward()  # batches of equal size: the mean of the processes' means
    for rank in ranks:
        for name, parameter in model.named_parameters():
            found = rank["gradients"][name]
            torch.testing.assert_close(found, parameter.grad, rtol=1e-4, atol=1e-6, msg=name)


def test_all_processes_end_with_the_same_scalars_after_checks_of_the_layout(
    ranks: list[dict[str, Any]],
) -> None:
    start = dict(make_model()[0].named_parameters())
    for name, value in ranks[0]["end"].items():
        assert not torch.equal(value, start[name]), name
        for rank in ranks[1:]:
            assert torch.equal(rank["end"][name], value), name
    assert all(rank["checks"] == ranks[0]["checks"] == 2 for rank in ranks)
