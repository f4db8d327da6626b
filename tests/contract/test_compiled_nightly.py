"""Every network, attached and compiled by torch's own compiler; minutes each, so only at night."""

from __future__ import annotations

import pytest
import torch

import sacm
from tests.contract.cases import Case, every_case, make, training_loss, windows

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.slow,
    pytest.mark.compile,
    # The compiler's own: complex numbers fall back to eager, TF32 and the like.
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@every_case
def test_a_compiled_attached_network_trains_with_the_rates_of_the_plain_one(case: Case) -> None:
    torch._dynamo.reset()
    model, x = make(case), windows(8)
    plain = make(case).eval()
    modulator = sacm.attach(model, channels=3, example_inputs=x)
    if not any(site.adaptive for site in modulator.sites):
        pytest.skip("no dropout")
    model.compile()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    before = [p.detach().clone() for p in modulator.parameters()]
    expected = sacm.RateMapper()(sacm.SpectralScorer(3)(x).scores).detach()
    for step in range(2):
        optimizer.zero_grad()
        loss = training_loss(model.train(), x)
        loss.backward()
        optimizer.step()
        assert loss.isfinite()
        if step == 0:
            torch.testing.assert_close(modulator.rates, expected, rtol=1e-4, atol=1e-5)
    moved = [not torch.equal(p, b) for p, b in zip(modulator.parameters(), before, strict=True)]
    assert all(moved)
    plain.load_state_dict(sacm.strip_state_dict(model.state_dict()))
    model.eval()
    with torch.no_grad():
        found, raw = model(x), plain(x)
    torch.testing.assert_close(found, raw, rtol=1e-3, atol=1e-4)
