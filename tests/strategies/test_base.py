"""Several strategies in one run."""

from __future__ import annotations

import torch

import sacm
from sacm.strategies import parse

from .cases import Net, batches, context


def test_selective_and_sacm_are_both_in_force_together() -> None:
    model = Net()
    run = parse("selective+sacm").begin(model, context())
    for epoch in (1, 2):
        run.begin_epoch(epoch)
        for batch in batches():
            prediction = model(batch.x)
            kept = run.keep(batch, prediction.detach())
    assert run.rates() is not None
    assert kept is not None
    assert 0 < float((~kept).float().mean()) < 0.5
    state = run.state_dict()
    fresh = parse("selective+sacm").begin(sacm.detach(model), context())
    fresh.load_state_dict(state)
    again = fresh.keep(batches()[-1], prediction.detach())
    assert torch.equal(kept, again)
