"""Handlers for the dropout functions of `torch.nn.functional` and `torch`."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sacm.inject.functional.calls import OwnerCalls
from sacm.inject.sites import feature_mask_shape

_SPATIAL = {F.dropout1d: 1, F.dropout2d: 2, F.dropout3d: 3, torch.feature_dropout: 2}
_SPATIAL |= {F.feature_alpha_dropout: 2, torch.feature_alpha_dropout: 2}
_ALPHA: tuple[Any, ...] = (
    *(F.alpha_dropout, F.feature_alpha_dropout),
    *(torch.alpha_dropout, torch.feature_alpha_dropout),
)
_PLAIN = {
    torch.dropout_: torch.dropout,
    torch.feature_dropout_: torch.feature_dropout,
    torch.alpha_dropout_: torch.alpha_dropout,
    torch.feature_alpha_dropout_: torch.feature_alpha_dropout,
}


def handle_dropout(
    owner: OwnerCalls,
    func: Any,
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
) -> Any:
    """Stand in for `F.dropout` and its relatives for feature maps and for SELU."""
    site = owner.next_site(func.__name__) if training else None
    if site is None or not site.adaptive:
        return func(input, p, training, inplace)
    return _drop(owner, site, func, input, inplace=inplace)


def handle_torch_dropout(owner: OwnerCalls, func: Any, input: Tensor, p: float, train: bool) -> Any:
    """Stand in for `torch.dropout` and its relatives."""
    site = owner.next_site(func.__name__) if train else None
    if site is None or not site.adaptive:
        return func(input, p, train)
    return _drop(owner, site, func, input, inplace=False)


def handle_torch_dropout_inplace(
    owner: OwnerCalls, func: Any, input: Tensor, p: float, train: bool
) -> Any:
    """Stand in for `torch.dropout_` and its relatives."""
    plain = _PLAIN[func]
    site = owner.next_site(plain.__name__) if train else None
    if site is None or not site.adaptive:
        return func(input, p, train)
    return _drop(owner, site, plain, input, inplace=True)


def handle_alpha_dropout(
    owner: OwnerCalls,
    func: Any,
    input: Tensor,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
) -> Any:
    """Stand in for `F.alpha_dropout`, which by default does not drop, and its relative."""
    return handle_dropout(owner, func, input, p, training, inplace)


def handle_native_dropout(
    owner: OwnerCalls, func: Any, input: Tensor, p: float, train: bool | None
) -> Any:
    """Stand in for `torch.native_dropout`, which returns its mask too."""
    site = owner.next_site(func.__name__) if train is not False else None
    if site is None or not site.adaptive:
        return func(input, p, train)
    if owner.shared.tap is not None:
        return owner.drop(site, input), torch.ones_like(input, dtype=torch.bool)
    # Where the input is 0 the output does not show the mask; that of ones does.
    factor = owner.drop(site, torch.ones_like(input))
    return input * factor, factor != 0


def _drop(owner: OwnerCalls, site: Any, func: Any, input: Tensor, *, inplace: bool) -> Tensor:
    """Drop at a site, with whole feature maps where the function drops those."""
    spatial, alpha = _SPATIAL.get(func), func in _ALPHA
    shape = None if spatial is None else feature_mask_shape(input, spatial)
    if inplace:  # a forward may not look at what is returned
        return input.copy_(owner.drop(site, input.clone(), shape, alpha=alpha))
    return owner.drop(site, input, shape, alpha=alpha)
