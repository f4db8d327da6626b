"""Run a recurrent network layer by layer, with dropout between the layers.

`nn.LSTM(num_layers=2, dropout=0.2)` drops inside one fused kernel. Here the same kernel is called
once for each layer, with the weights of that layer, and what is between two layers drops at the
windows' own rates. Evaluation runs the fused kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

_KERNELS: dict[str, Callable[..., Any]] = {
    "LSTM": torch.lstm,
    "GRU": torch.gru,
    "RNN_TANH": torch.rnn_tanh,
    "RNN_RELU": torch.rnn_relu,
}
Drop = Callable[[Tensor], Tensor]


def run_layers(module: nn.RNNBase, input: Tensor, hx: Any, drop: Drop) -> Any:
    """Run all layers over a tensor `[B, L, C]`, or `[L, B, C]` without `batch_first`.

    Returns:
        What the module returns: the output, and the last state of all layers.
    """
    states = _starting_states(module, hx, input.shape[0 if module.batch_first else 1], input)
    ended = []
    for layer in range(module.num_layers):
        h = input if layer == 0 else drop(input)
        input, *last = _KERNELS[module.mode](
            h,
            _of_layer(module, states, layer),
            _weights(module, layer),
            *(module.bias, 1, 0.0, True, module.bidirectional, module.batch_first),
        )
        ended.append(last)
    return input, _join(module, ended)


def _starting_states(module: nn.RNNBase, hx: Any, batch: int, like: Tensor) -> list[Tensor]:
    """Return the states before the first step, `[layers * directions, B, H]`; zeros for None."""
    if hx is not None:
        return list(hx) if isinstance(hx, tuple) else [hx]
    rows = module.num_layers * (2 if module.bidirectional else 1)
    widths = [module.proj_size or module.hidden_size]
    if module.mode == "LSTM":
        widths.append(module.hidden_size)
    return [like.new_zeros(rows, batch, width) for width in widths]


def _of_layer(module: nn.RNNBase, states: list[Tensor], layer: int) -> Any:
    """Return the starting states of one layer, as its kernel takes them."""
    rows = 2 if module.bidirectional else 1
    of_layer = [state[layer * rows : (layer + 1) * rows].contiguous() for state in states]
    return of_layer if module.mode == "LSTM" else of_layer[0]


def _weights(module: nn.RNNBase, layer: int) -> list[Tensor]:
    """Return the weights of one layer, in the order of its kernel."""
    weights: list[Any] = module._flat_weights
    count = len(weights) // module.num_layers
    return weights[layer * count : (layer + 1) * count]


def _join(module: nn.RNNBase, ended: list[list[Tensor]]) -> Any:
    """Return the last states of all layers, as the module returns them."""
    states = tuple(torch.cat(parts) for parts in zip(*ended, strict=True))
    return states if module.mode == "LSTM" else states[0]
