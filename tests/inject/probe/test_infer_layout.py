from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from sacm import SiteLayout
from sacm.inject.infer import find_layout, list_candidates, measure_rows, movement


@st.composite
def layouts(draw: st.DrawFn) -> tuple[SiteLayout, tuple[int, ...], int]:
    """A layout, the shape of an activation laid out so, and a number of windows."""
    windows = draw(st.integers(2, 5))
    others = draw(st.lists(st.integers(1, 7), min_size=0, max_size=3))
    dim = draw(st.integers(0, len(others)))
    fold = draw(st.integers(1, 6))
    major = draw(st.booleans()) or fold == 1
    shape = (*others[:dim], windows * fold, *others[dim:])
    return SiteLayout(dim, fold, batch_major=major), shape, windows


def changes_under(layout: SiteLayout, shape: tuple[int, ...], windows: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    owners = layout.owners(windows)
    changes = []
    for window in range(windows):
        rows = (owners == window).double()
        rows = rows.view([-1 if d == layout.dim else 1 for d in range(len(shape))])
        changes.append((torch.rand(shape, generator=generator) + 0.1).double() * rows)
    return changes


def infer(changes: list[Tensor], cross_talk: float = 0.0) -> SiteLayout | None:
    windows = len(changes)
    rows = [measure_rows(torch.zeros_like(change), change, windows) for change in changes]
    stacked = {dim: torch.stack([each[dim] for each in rows]) for dim in rows[0]}
    candidates = list_candidates(changes[0].shape, windows)
    return find_layout(stacked, candidates, torch.arange(windows), cross_talk)


@given(layouts())
def test_the_layout_that_made_the_changes_is_found(
    case: tuple[SiteLayout, tuple[int, ...], int],
) -> None:
    layout, shape, windows = case
    found = infer(changes_under(layout, shape, windows))
    assert found is not None
    assert torch.equal(found.owners(windows), layout.owners(windows))
    assert found.dim == layout.dim


@given(layouts(), st.floats(0.001, 0.09), st.floats(0.6, 1.0))
def test_faint_cross_talk_is_forgiven_on_request_and_more_is_not(
    case: tuple[SiteLayout, tuple[int, ...], int], faint: float, strong: float
) -> None:
    layout, shape, windows = case
    clean = [(change > 0).double() for change in changes_under(layout, shape, windows)]
    leaky = [change.clamp_min(faint) for change in clean]
    assert infer(leaky) is None
    assert infer(leaky, cross_talk=0.1) is not None
    assert infer([c.clamp_min(strong) for c in clean], cross_talk=0.1) is None


def test_a_trace_that_all_windows_share_is_forgiven_and_one_of_a_single_window_is_not() -> None:
    clean = torch.eye(6, dtype=torch.float64)
    common = clean.clamp_min(0.3)
    single = clean + 0.3 * clean.roll(1, 1)
    for movements, layout in ((common, SiteLayout(0)), (single, None)):
        assert infer([*movements], cross_talk=0.1) == layout
        assert infer([*movements]) is None


def test_rounding_is_no_movement_and_infinities_are_met() -> None:
    base = torch.tensor([1.0, 2.0, torch.inf, torch.nan, -torch.inf])
    other = torch.tensor([1.5, 2.0 + 1e-6, torch.inf, torch.nan, -torch.inf])
    assert (movement(base, other) > 0).tolist() == [True, False, False, False, False]
    assert movement(torch.tensor([1, 2]), torch.tensor([1, 3])).tolist() == [0.0, 1.0]
    assert not movement(base, base).any()


@given(layouts())
def test_owners_and_shapes_agree(case: tuple[SiteLayout, tuple[int, ...], int]) -> None:
    layout, shape, windows = case
    assert layout.fits(shape, windows)
    assert not layout.fits(shape, windows + 1)
    split, position = layout.unfold(shape, windows)
    index = torch.arange(windows).view([-1 if d == position else 1 for d in range(len(split))])
    expanded = index.expand(split).reshape(shape)
    rows = expanded.movedim(layout.dim, 0).reshape(shape[layout.dim], -1)[:, 0]
    assert torch.equal(rows, layout.owners(windows))
