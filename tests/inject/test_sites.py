from __future__ import annotations

import pytest
import torch
from torch import nn

from sacm import Site, SiteLayout
from sacm.inject.sites import ADAPTIVE, ORIGINAL, feature_mask_shape


def test_a_site_called_in_several_ways_shows_all_its_layouts_once() -> None:
    site = Site("a", "Dropout")
    assert site.layout is None
    site.learn((3, 5), SiteLayout(0))
    assert site.layout == SiteLayout(0)
    site.learn((7, 3), SiteLayout(1))
    site.learn((3, 6), SiteLayout(0))
    site.learn((3, 6), SiteLayout(0))
    assert site.layout == (SiteLayout(0), SiteLayout(1))
    assert len(site.layouts) == 3


def test_the_other_dimensions_tell_several_ways_apart() -> None:
    site = Site("a", "Dropout")
    site.learn((3, 5), SiteLayout(0))
    site.learn((7, 3), SiteLayout(1))
    assert site.layout_for((4, 5), 4) == SiteLayout(0)
    assert site.layout_for((7, 4), 4) == SiteLayout(1)
    assert site.layout_for((5, 5), 5) == SiteLayout(0), "dimension 1 is 5 in that way only"


@pytest.mark.parametrize("kind", ADAPTIVE)
def test_adaptive_classes_add_no_state_and_are_the_torch_class_in_evaluation(
    kind: type[nn.Module],
) -> None:
    adaptive = ADAPTIVE[kind]
    assert issubclass(adaptive, kind)
    assert ORIGINAL[adaptive] is kind
    raw = kind(0.3)
    before = dict(vars(raw))
    raw.__class__ = adaptive
    assert vars(raw) == before
    dims = {nn.Dropout1d: 3, nn.Dropout2d: 4, nn.Dropout3d: 5}.get(kind, 2)
    h = torch.randn([2, 3, 4, 4, 4][:dims])
    assert torch.equal(raw.eval()(h), h)


def test_masks_of_feature_maps_have_one_entry_per_row_and_map() -> None:
    assert feature_mask_shape(torch.ones(2, 3, 4), 1) == (2, 3, 1)
    assert feature_mask_shape(torch.ones(3, 4), 1) == (3, 1)
    assert feature_mask_shape(torch.ones(2, 3, 4, 5), 2) == (2, 3, 1, 1)


def test_a_site_left_ordinary_says_why() -> None:
    site = Site("a", "Dropout")
    site.leave_ordinary("a reason")
    assert (site.adaptive, site.reason) == (False, "a reason")
