from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from sacm import adaptive_dropout
from sacm.core.dropout import ApplyMask, Keep, draw_mask, drop_entries, drop_entries_composed
from sacm.inject.sites import SiteLayout

RATES = (0.0, 0.05, 0.5, 0.95)


def _contiguous(batch: int, size: int) -> Tensor:
    return torch.randn(batch, size, 4)


def _permuted(batch: int, size: int) -> Tensor:
    return torch.randn(size, 4, batch).permute(2, 0, 1)


def _sliced(batch: int, size: int) -> Tensor:
    return torch.randn(2 * batch, size, 9)[::2, :, 1:9:2]


def _expanded(batch: int, size: int) -> Tensor:
    return torch.randn(size, 1).expand(batch, size, 4)


def _channels_last(batch: int, size: int) -> Tensor:
    return torch.randn(batch, 4, size, 1).contiguous(memory_format=torch.channels_last)


MAKE: dict[str, Callable[[int, int], Tensor]] = {
    "contiguous": _contiguous,
    "permuted": _permuted,
    "sliced": _sliced,
    "expanded": _expanded,
    "channels_last": _channels_last,
}


def _standard_errors(kept: int, total: int, keep: float) -> float:
    """How many standard errors a count lies from its expectation."""
    if keep == 1:
        return 0.0 if kept == total else math.inf
    return abs(kept - total * keep) / math.sqrt(total * keep * (1 - keep))


# 2,000 entries draw from torch's generator, 400,000 from NumPy's.
@pytest.mark.parametrize("size", [125, 25_000], ids=["small", "large"])
@pytest.mark.parametrize("kind", MAKE)
def test_every_sample_keeps_its_own_share(kind: str, size: int) -> None:
    torch.manual_seed(7)
    h = MAKE[kind](4, size).abs() + 0.1
    rates = torch.tensor(RATES)
    repeats = 20 if size < 1000 else 1
    outs = torch.stack([adaptive_dropout(h, rates) for _ in range(repeats)], dim=1)
    for sample, rate in enumerate(RATES):
        out = outs[sample]
        kept = int((out != 0).sum())
        assert _standard_errors(kept, out.numel(), 1 - rate) <= 4, rate
        survivors = out / h[sample]
        expected = torch.where(out != 0, 1 / (1 - rate), 0.0)
        torch.testing.assert_close(survivors, expected.broadcast_to(survivors.shape))
    assert torch.equal(outs[0], h[:1].expand(repeats, *h.shape[1:]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_the_share_holds_in_every_precision_of_input_and_rates(dtype: torch.dtype) -> None:
    torch.manual_seed(9)
    for rates in (torch.tensor(RATES), torch.tensor(RATES, dtype=dtype)):
        h = torch.ones(4, 50_000, dtype=dtype)
        out = adaptive_dropout(h, rates)
        assert out.dtype == dtype
        for sample, rate in enumerate(rates.tolist()):
            kept = int((out[sample] != 0).sum())
            assert _standard_errors(kept, 50_000, 1 - rate) <= 4, (rates.dtype, rate)
        torch.testing.assert_close(out.amax(dim=1), (1 / (1 - rates)).to(dtype))


def test_the_mask_follows_the_seed() -> None:
    for size in (10, 100_000):
        outs = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            outs.append(adaptive_dropout(torch.ones(2, size), torch.full((2,), 0.5)))
        assert torch.equal(outs[0], outs[1])
        assert not torch.equal(outs[0], outs[2])


def fused(h: Tensor, keep: Tensor, mask: Tensor) -> Tensor:
    q = Keep.of(keep)
    return ApplyMask.apply(h, q.probability, q.scale, mask)


def _closed_form(h: Tensor, keep: Tensor, mask: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of input and keep probability by the formulas of the method, in float64."""
    h, keep, grad, drawn = (t.detach().double() for t in (h, keep, grad, mask))
    by_input = grad * drawn / keep
    by_keep = grad * h * (1 / keep - drawn / keep**2)  # d out / d q = -d out / d p
    return by_input, by_keep.sum_to_size(keep.shape)


LAYOUTS = {
    "batch first": ((4, 5, 6), (4, 1, 1), None),
    "batch second": ((5, 4, 6), (1, 4, 1), None),
    "batch-major fold": ((4, 3, 6), (4, 1, 1), None),
    "batch-minor fold": ((3, 4, 6), (1, 4, 1), None),
    "feature maps": ((4, 5, 3, 2), (4, 1, 1, 1), (4, 5, 1, 1)),
    "feature maps across windows": ((5, 4, 6), (1, 4, 1), (5, 4, 1)),
}


@pytest.mark.parametrize("transposed", [False, True], ids=["contiguous", "transposed"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_gradients_are_the_closed_form_for_a_fixed_mask(layout: str, transposed: bool) -> None:
    shape, rows, mask_shape = LAYOUTS[layout]
    torch.manual_seed(11)
    h = torch.randn(shape[::-1]).permute(*range(len(shape) - 1, -1, -1))
    h = (h if transposed else h.contiguous()).detach().requires_grad_()
    keep = (1 - torch.tensor([0.05, 0.3, 0.5, 0.9])).view(rows).requires_grad_()
    mask = draw_mask(h, Keep.of(keep), torch.Size(mask_shape or shape))
    grad = torch.randn(shape)
    out = fused(h, keep, mask)
    torch.testing.assert_close(out, h * mask / keep)
    found = torch.autograd.grad(out, (h, keep), grad)
    for got, expected in zip(found, _closed_form(h, keep, mask, grad), strict=True):
        torch.testing.assert_close(got.double(), expected, atol=1e-5, rtol=1e-5)


def test_the_fused_operation_is_the_composed_formula() -> None:
    torch.manual_seed(13)
    h, keep = torch.randn(3, 7, 5), torch.tensor([0.3, 0.6, 1.0]).view(3, 1, 1)
    mask, grad = torch.rand(3, 7, 5) < keep, torch.randn(3, 7, 5)
    results = []
    for operation in (fused, drop_entries_composed):
        inputs = [h.clone().requires_grad_(), keep.clone().requires_grad_()]
        out = operation(*inputs, mask)
        results.append((out, *torch.autograd.grad(out, inputs, grad)))
    for found, written in zip(*results, strict=True):
        torch.testing.assert_close(found, written, atol=1e-5, rtol=1e-5)


def test_second_derivatives_are_those_of_the_composed_formula() -> None:
    torch.manual_seed(16)
    h, keep = torch.randn(3, 7, 5), torch.tensor([0.3, 0.6, 0.9]).view(3, 1, 1)
    mask, grad = torch.rand(3, 7, 5) < keep, torch.randn(3, 7, 5)
    weights = torch.randn(3, 7, 5), torch.randn(3, 1, 1)
    results = []
    for operation in (fused, drop_entries_composed):
        inputs = [t.double().requires_grad_() for t in (h, keep, grad)]
        out = operation(*inputs[:2], mask)
        first = torch.autograd.grad(out, inputs[:2], inputs[2], create_graph=True)
        penalty = sum((w * g.square()).sum() for w, g in zip(weights, first, strict=True))
        results.append(torch.autograd.grad(penalty, inputs))
    for found, written in zip(*results, strict=True):
        torch.testing.assert_close(found, written)


def test_rates_without_gradient_do_not_keep_the_input() -> None:
    saved: list[Tensor] = []
    h = torch.randn(4, 1000, requires_grad=True)
    rates = torch.full((4,), 0.3)

    def pack(tensor: Tensor) -> Tensor:
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        adaptive_dropout(h, rates)
    assert sorted(t.numel() * t.itemsize for t in saved) == [16, 4000]
    saved.clear()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        adaptive_dropout(h, rates.requires_grad_())
    assert sorted(t.numel() * t.itemsize for t in saved) == [16, 4000, 16_000]


def test_whole_feature_maps_drop_together() -> None:
    torch.manual_seed(14)
    h = torch.rand(2, 500, 4, 4) + 0.5
    out = drop_entries(h, Keep.of(torch.tensor([0.5, 0.8])).along(0, 4), (2, 500, 1, 1))
    alive = (out != 0).flatten(2)
    assert torch.equal(alive.any(dim=2), alive.all(dim=2))
    for sample, keep in enumerate((0.5, 0.8)):
        assert _standard_errors(int(alive[sample, :, 0].sum()), 500, keep) <= 4


@pytest.mark.parametrize("layout", [SiteLayout(1, 3), SiteLayout(1, 3, batch_major=False)])
def test_a_folded_layout_gives_each_row_its_owners_rate(layout: SiteLayout) -> None:
    torch.manual_seed(15)
    keep = torch.tensor([1.0, 0.5, 0.9])
    h = torch.rand(40, 9, 50) + 0.5
    out = layout.drop(h, Keep.of(keep))
    for row in range(9):
        owner = row // 3 if layout.batch_major else row % 3
        kept = int((out[:, row] != 0).sum())
        assert _standard_errors(kept, 2000, float(keep[owner])) <= 4


def test_an_empty_activation_passes() -> None:
    assert adaptive_dropout(torch.zeros(3, 0), torch.full((3,), 0.5)).shape == (3, 0)
