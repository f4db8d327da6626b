"""Handlers for the dropout functions of `torch.nn.functional` and `torch`."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sacm.inject.functional.calls import OwnerCalls
from sacm.inject.sites import feature_mask_shape

_SPATIAL = {F.dropout1d: 1, F.dropout2d: 2, F.dropout3d: 3, torch.feature_dropout: 2}


def handle_dropout(
    owner: OwnerCalls,
    func: Any,
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
) -> Any:
    """Stand in for `F.dropout` and its relatives for feature maps."""
    site = owner.next_site(func.__name__) if training else None
    if site is None or not site.adaptive:
        return func(input, p, training, inplace)
    return _drop(owner, site, func, input, inplace=inplace)


def handle_torch_dropout(owner: OwnerCalls, func: Any, input: Tensor, p: float, train: bool) -> Any:
    """Stand in for `torch.dropout` and `torch.feature_dropout`."""
    site = owner.next_site(func.__name__) if train else None
    if site is None or not site.adaptive:
        return func(input, p, train)
    return _drop(owner, site, func, input, inplace=False)


def handle_torch_dropout_inplace(
    owner: OwnerCalls, func: Any, input: Tensor, p: float, train: bool
) -> Any:
    """Stand in for `torch.dropout_` and `torch.feature_dropout_`."""
    plain = torch.dropout if func is torch.dropout_ else torch.feature_dropout
    site = owner.next_site(plain.__name__) if train else None
    if site is None or not site.adaptive:
        return func(input, p, train)
    return _drop(owner, site, plain, input, inplace=True)


def _drop(owner: OwnerCalls, site: Any, func: Any, input: Tensor, *, inplace: bool) -> Tensor:
    """Drop at a site, with whole feature maps where the function drops those."""
    spatial = _SPATIAL.get(func)
    shape = None if spatial is None else feature_mask_shape(input, spatial)
    if inplace:  # a forward may not look at what is returned
        return input.copy_(owner.drop(site, input.clone(), shape))
    return owner.drop(site, input, shape)
