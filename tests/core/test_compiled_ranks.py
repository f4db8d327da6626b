"""Processes that share a seed draw different masks, in compiled code as elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from sacm import adaptive_dropout

ENTRIES, RATE = 20_000, 0.3


def draw(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meet", rank=rank, world_size=2)
    for name in ("eager", "compiled"):
        drop = torch.compile(adaptive_dropout, backend="aot_eager")
        torch.manual_seed(7)
        drop = drop if name == "compiled" else adaptive_dropout
        out = drop(torch.ones(2, ENTRIES), torch.full((2,), RATE))
        torch.save(out != 0, f"{folder}/{name}{rank}.pt")
    dist.destroy_process_group()


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_two_processes_draw_independent_masks(tmp_path: Path) -> None:
    mp.spawn(draw, (str(tmp_path),), nprocs=2)
    for name in ("eager", "compiled"):
        first, second = (torch.load(tmp_path / f"{name}{rank}.pt") for rank in range(2))
        for mask in (first, second):
            share = mask.double().mean()
            assert (share - (1 - RATE)).abs() < 5 * (RATE * (1 - RATE) / mask.numel()) ** 0.5
        agree = (first == second).double().mean()
        chance = RATE**2 + (1 - RATE) ** 2
        assert (agree - chance).abs() < 5 * (0.25 / first.numel()) ** 0.5
