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
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

_KERNELS: dict[str, Callable[..., Any]] = {
    "LSTM": torch.lstm,
    "GRU": torch.gru,
    "RNN_TANH": torch.rnn_tanh,
    "RNN_RELU": torch.rnn_relu,
}
Drop = Callable[[Tensor], Tensor]


def run_layers(module: nn.RNNBase, input: Any, hx: Any, drop: Drop) -> Any:
    """Return what the module returns: the output, and the last state of all layers."""
    run = _run_packed if isinstance(input, PackedSequence) else _run_padded
    return run(module, input, hx, drop)


def _run_padded(module: nn.RNNBase, input: Tensor, hx: Any, drop: Drop) -> Any:
    """Run all layers over a tensor `[B, L, C]` or `[L, B, C]`, or a single series `[L, C]`."""
    batch_dim = 0 if module.batch_first else 1
    single = input.dim() == 2
    if single:
        input = input.unsqueeze(batch_dim)
        hx = None if hx is None else _map_states(hx, lambda state: state.unsqueeze(1))
    states = _starting_states(module, hx, input.shape[batch_dim], input)
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
    final = _join(module, ended)
    if single:
        return input.squeeze(batch_dim), _map_states(final, lambda state: state.squeeze(1))
    return input, final


def _run_packed(module: nn.RNNBase, packed: PackedSequence, hx: Any, drop: Drop) -> Any:
    """Run all layers over sequences of different lengths; they drop in the order of the batch."""
    data, sizes, order, back = packed
    states = _starting_states(module, hx, int(sizes[0]), data)
    if hx is not None and order is not None:
        states = [state.index_select(1, order) for state in states]
    ended = []
    for layer in range(module.num_layers):
        if layer:
            data = _drop_packed(PackedSequence(data, sizes, order, back), drop)
        data, *last = _KERNELS[module.mode](
            data,
            sizes,
            _of_layer(module, states, layer),
            _weights(module, layer),
            *(module.bias, 1, 0.0, True, module.bidirectional),
        )
        ended.append(last)
    final = _join(module, ended)
    if back is not None:
        final = _map_states(final, lambda state: state.index_select(1, back))
    return PackedSequence(data, sizes, order, back), final


def _drop_packed(packed: PackedSequence, drop: Drop) -> Tensor:
    """Drop packed sequences as a tensor `[B, L, D]` in the order of the batch."""
    padded, lengths = pad_packed_sequence(packed, batch_first=True)
    dropped, order = drop(padded), packed.sorted_indices
    if order is not None:
        dropped, lengths = dropped.index_select(0, order), lengths[order.cpu()]
    return pack_padded_sequence(dropped, lengths, batch_first=True).data


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


def _map_states(states: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """Apply a function to the state, or to both states of an LSTM."""
    return tuple(map(function, states)) if isinstance(states, tuple) else function(states)
