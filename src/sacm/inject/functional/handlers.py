"""The torch functions that drop, and what handles a call of each."""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sacm.inject.sites import feature_mask_shape

Owner = Any  # an `OwnerForward` of coverage.py, which imports this file

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
    shape = feature_mask_shape(input, _SPATIAL[func]) if func in _SPATIAL else None
    if not inplace:
        return owner.drop(site, input, shape)
    # A forward may not look at what is returned by an operation in place.
    return input.copy_(owner.drop(site, input.clone(), shape))


def handle_torch_dropout(owner: Owner, func: Any, input: Tensor, p: float, train: bool) -> Any:
    """Stand in for `torch.dropout` and `torch.dropout_`."""
    return handle_dropout(owner, F.dropout, input, p, train, inplace=func is torch.dropout_)


def handle_attention(
    owner: Owner,
    func: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Stand in for `scaled_dot_product_attention`: computes the weights, so that they can drop."""
    plain = {"attn_mask": attn_mask, "is_causal": is_causal, "scale": scale}
    site = owner.next_site("attention") if dropout_p > 0 else None
    if site is None or not owner.covers(site):
        return func(query, key, value, dropout_p=dropout_p, enable_gqa=enable_gqa, **plain)
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = (t.repeat_interleave(groups, dim=-3) for t in (key, value))
    weights = attention_weights(query, key, attn_mask, is_causal=is_causal, scale=scale)
    return owner.drop(site, weights) @ value


def attention_weights(
    query: Tensor,
    key: Tensor,
    attn_mask: Tensor | None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Return `softmax(q k^T scale + mask)` `[..., Tq, Tk]`; rows that see no key are zero."""
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    logits = query @ key.transpose(-2, -1) * scale
    if is_causal:
        visible = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).tril()
        logits = logits.masked_fill(~visible, -math.inf)
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            logits = logits.masked_fill(~attn_mask, -math.inf)
        else:
            logits = logits + attn_mask
    if not is_causal and attn_mask is None:
        return logits.softmax(dim=-1)
    blind = (logits == -math.inf).all(dim=-1, keepdim=True)
    return logits.masked_fill(blind, 0).softmax(dim=-1).masked_fill(blind, 0)


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
