"""The torch functions that drop, and what handles a call of each."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sacm.inject.functional.attention import Owner, handle_attention
from sacm.inject.sites import feature_mask_shape

_SPATIAL = {F.dropout1d: 1, F.dropout2d: 2, F.dropout3d: 3}


def handle_dropout(
    owner: Owner,
    func: Any,
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
) -> Any:
    """Stand in for `F.dropout` and its relatives for feature maps."""
    site = owner.next_site(func.__name__) if training else None
    if site is None or not owner.covers(site):
        return func(input, p, training, inplace)
    return _drop(owner, site, func, input, inplace=inplace)


def handle_torch_dropout(owner: Owner, func: Any, input: Tensor, p: float, train: bool) -> Any:
    """Stand in for `torch.dropout` and `torch.dropout_`."""
    site = owner.next_site(func.__name__.rstrip("_")) if train else None
    if site is None or not owner.covers(site):
        return func(input, p, train)
    return _drop(owner, site, func, input, inplace=func is torch.dropout_)


def _drop(owner: Owner, site: Any, func: Any, input: Tensor, *, inplace: bool) -> Tensor:
    """Drop at a site, with whole feature maps where the function drops those."""
    spatial = _SPATIAL.get(func)
    shape = None if spatial is None else feature_mask_shape(input, spatial)
    dropped: Tensor = owner.drop(site, input.clone() if inplace else input, shape)
    # A forward may not look at what is returned by an operation in place.
    return input.copy_(dropped) if inplace else dropped


def handle_multi_head_attention(owner: Owner, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Stand in for `multi_head_attention_forward`, the function behind `nn.MultiheadAttention`.

    Its several hundred lines call `dropout` and `scaled_dot_product_attention` by global names.
    Torch's own code object is run with a copy of its globals in which these two names are our
    handlers, so its code is neither copied nor changed for anybody else.
    """
    names = {
        **func.__globals__,
        # Other modes (an outer model's, a default device) must not take the call over.
        "has_torch_function": lambda _: False,
        "dropout": functools.partial(handle_dropout, owner, F.dropout),
        "scaled_dot_product_attention": functools.partial(
            handle_attention, owner, F.scaled_dot_product_attention
        ),
    }
    redirected = types.FunctionType(func.__code__, names, func.__name__, func.__defaults__)
    redirected.__kwdefaults__ = func.__kwdefaults__
    return redirected(*args, **kwargs)


HANDLERS: dict[Any, Callable[..., Any]] = {
    F.dropout: handle_dropout,
    F.dropout1d: handle_dropout,
    F.dropout2d: handle_dropout,
    F.dropout3d: handle_dropout,
    torch.dropout: handle_torch_dropout,
    torch.dropout_: handle_torch_dropout,
    F.scaled_dot_product_attention: handle_attention,
    F.multi_head_attention_forward: handle_multi_head_attention,
}
