"""The handler for attention: the weights are computed openly, so that they can drop."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

Owner = Any  # an `OwnerForward` of coverage.py, which imports this file


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
    """Stand in for `scaled_dot_product_attention`."""
    plain = {"attn_mask": attn_mask, "is_causal": is_causal, "scale": scale}
    site = owner.next_site("attention") if dropout_p > 0 else None
    if site is None:
        owner.list_undropped_attention()
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
