"""Dropout sites: how many, how often called, at which rate, and whose rows are whose."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sacm.backbones.base import Backbone

from .cases import Case, dropouts, every_case, make, training_loss, windows

SITES = {  # modules, calls per forward
    "Informer-forecasting": (9, 9),
    "Crossformer-forecasting": (32, 32),
    "PatchTST-forecasting": (4, 4),
    "PatchTST-classification": (4, 4),
    "PatchTST-anomaly": (4, 4),
    "iTransformer-forecasting": (3, 3),
    "iTransformer-classification": (4, 4),
    "iTransformer-anomaly": (3, 3),
    "TimeMixer-forecasting": (8, 14),
    "TimesNet-forecasting": (1, 1),
    "TimesNet-classification": (2, 2),
    "TimesNet-anomaly": (1, 1),
    "WPMixer-forecasting": (14, 18),
    "TimeFilter-forecasting": (6, 6),
    "MultiPatchFormer-forecasting": (12, 12),
    "NSFormer-classification": (6, 6),
    "NSFormer-anomaly": (5, 5),
    "InceptionTime-classification": (6, 6),
    "MiniROCKET-classification": (1, 1),
    "AnomTrans-anomaly": (5, 5),
    "TranAD-anomaly": (22, 39),
    "DCdetector-anomaly": (6, 6),
}
RATES = {  # how many modules at which rate; every other network: all at 0.1
    "Informer-forecasting": {0.05: 9},
    "Crossformer-forecasting": {0.05: 32},
    "PatchTST-forecasting": {0.1: 3, 0.0: 1},
    "PatchTST-classification": {0.1: 3, 0.0: 1},
    "PatchTST-anomaly": {0.1: 3, 0.0: 1},
    "TimeMixer-forecasting": {0.1: 1, 0.0: 7},
}


def at_paper_size(case: Case) -> tuple[Backbone, Tensor]:
    length = 100 if case.task == "anomaly" else 96
    model = make(case, length=length, channels=7, horizon=96, size="paper")
    return model, windows(1, length=length, channels=7)


@every_case
def test_number_of_sites_and_their_rates(case: Case) -> None:
    model, _ = at_paper_size(case)
    rates = [module.p for module in dropouts(model).values()]
    assert len(rates) == SITES[str(case)][0]
    expected = RATES.get(str(case), {0.1: len(rates)})
    assert {rate: rates.count(rate) for rate in set(rates)} == expected


@every_case
def test_calls_of_a_training_forward(case: Case) -> None:
    model, x = at_paper_size(case)
    calls: list[str] = []
    for name, module in dropouts(model).items():
        module.register_forward_hook(lambda *_, name=name: calls.append(name))
    with torch.no_grad():
        training_loss(model, x)
    assert len(calls) == SITES[str(case)][1]
    assert set(calls) == set(dropouts(model))


@every_case
def test_every_site_states_a_layout_that_fits_any_batch(case: Case) -> None:
    model = make(case)
    seen: dict[str, set[int]] = {}

    def record(name: str, batch: int) -> None:
        def hook(_: nn.Module, inputs: tuple[Tensor, ...], __: Tensor) -> None:
            layout = model.sacm_layouts[name]
            rows = inputs[0].shape[layout.dim]
            assert rows == batch * layout.fold, name
            seen.setdefault(name, set()).add(batch)

        handles.append(dropouts(model)[name].register_forward_hook(hook))

    assert set(model.sacm_layouts) == set(dropouts(model))
    for batch in (1, 5):
        handles: list[torch.utils.hooks.RemovableHandle] = []
        for name in dropouts(model):
            record(name, batch)
        training_loss(model, windows(batch))
        for handle in handles:
            handle.remove()
    assert all(batches == {1, 5} for batches in seen.values())
    assert all(layout.dim == 0 and layout.batch_major for layout in model.sacm_layouts.values())
