"""How each kind of dropout drops at the rates of the windows: functions of torch, and modules.

A handler of a function takes a stand-in (`inject.stand_ins`), the function and its arguments. A
handler of a module takes a stand-in, the module's site and the arguments of its forward.
"""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from sacm.inject.sites import Site

StandIn = Any  # of stand_ins.py, which imports this file
Handler = Callable[..., Any]

# Classes and functions that drop, with the dimensions of the feature maps that drop as a whole.
DROPOUTS: dict[Any, int] = {
    nn.Dropout: 0,
    nn.Dropout1d: 1,
    nn.Dropout2d: 2,
    nn.Dropout3d: 3,
    F.dropout: 0,
    F.dropout1d: 1,
    F.dropout2d: 2,
    F.dropout3d: 3,
}
_KERNELS: dict[str, Callable[..., Any]] = {
    "LSTM": torch.lstm,
    "GRU": torch.gru,
    "RNN_TANH": torch.rnn_tanh,
    "RNN_RELU": torch.rnn_relu,
}


def handle_dropout(
    stand_in: StandIn,
    func: Any,
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
) -> Any:
    """Stand in for `F.dropout` and its relatives for feature maps."""
    site = stand_in.next_site(func.__name__) if training else None
    if site is None or not site.covers():
        return func(input, p, training, inplace)
    stand_in.check_rerun(site)
    return site.drop_as(DROPOUTS[func], input, inplace=inplace)


def handle_attention(
    stand_in: StandIn,
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
    site = stand_in.next_site("attention") if dropout_p > 0 else None
    if site is None or not site.covers():
        return func(query, key, value, dropout_p=dropout_p, enable_gqa=enable_gqa, **plain)
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = (t.repeat_interleave(groups, dim=-3) for t in (key, value))
    weights = attention_weights(query, key, attn_mask, is_causal=is_causal, scale=scale)
    stand_in.check_rerun(site)
    return site.drop(weights) @ value


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


def handle_multi_head_attention(stand_in: StandIn, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Stand in for `multi_head_attention_forward`, the function behind `nn.MultiheadAttention`.

    Its several hundred lines call `dropout` and `scaled_dot_product_attention` by global names.
    Torch's own code object is run with a copy of its globals in which these two names are our
    handlers, so its code is neither copied nor changed for anybody else.
    """
    names = {
        **func.__globals__,
        # Other modes (an outer model's, a default device) must not take the call over.
        "has_torch_function": lambda _: False,
        "dropout": functools.partial(handle_dropout, stand_in, F.dropout),
        "scaled_dot_product_attention": functools.partial(
            handle_attention, stand_in, F.scaled_dot_product_attention
        ),
    }
    redirected = types.FunctionType(func.__code__, names, func.__name__, func.__defaults__)
    redirected.__kwdefaults__ = func.__kwdefaults__
    return redirected(*args, **kwargs)


FUNCTIONS: dict[Any, Handler] = {
    F.dropout: handle_dropout,
    F.dropout1d: handle_dropout,
    F.dropout2d: handle_dropout,
    F.dropout3d: handle_dropout,
    F.scaled_dot_product_attention: handle_attention,
    F.multi_head_attention_forward: handle_multi_head_attention,
}


def drop_between_layers(stand_in: StandIn, site: Site, input: Any, hx: Any = None) -> Any:
    """Run the layers of an `nn.LSTM`, `nn.GRU` or `nn.RNN` one by one, with dropout between.

    The module drops inside one fused kernel. Here the same kernel is called once for each layer,
    with the weights of that layer, over a tensor `[B, L, C]`, or `[L, B, C]` without `batch_first`.
    """
    module: nn.RNNBase = stand_in.module
    if isinstance(input, PackedSequence) or input.dim() != 3:
        site.leave_ordinary("not covered: packed or single sequences drop in a fused kernel")
        return stand_in.own_forward(input, hx)
    is_lstm = module.mode == "LSTM"
    directions = 2 if module.bidirectional else 1
    if hx is None:
        batch = input.shape[0 if module.batch_first else 1]
        widths = [module.proj_size or module.hidden_size, module.hidden_size][: 1 + is_lstm]
        hx = tuple(input.new_zeros(module.num_layers * directions, batch, n) for n in widths)
    states = hx if isinstance(hx, tuple) else (hx,)
    all_weights: list[Any] = module._flat_weights
    count = len(all_weights) // module.num_layers
    last_states = []
    for layer in range(module.num_layers):
        h = input if layer == 0 else site.drop(input)
        rows = slice(layer * directions, (layer + 1) * directions)
        before = [state[rows].contiguous() for state in states]
        input, *last = _KERNELS[module.mode](
            h,
            before if is_lstm else before[0],
            all_weights[layer * count : (layer + 1) * count],
            *(module.bias, 1, 0.0, True, module.bidirectional, module.batch_first),
        )
        last_states.append(last)
    after = tuple(torch.cat(parts) for parts in zip(*last_states, strict=True))
    return input, after if is_lstm else after[0]
