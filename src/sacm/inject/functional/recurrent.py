"""Run a recurrent network layer by layer, with dropout between the layers.

`nn.LSTM(num_layers=2, dropout=0.2)` drops inside one fused kernel. Here the same kernel is called
once for each layer, with the weights of that layer. Evaluation runs the fused kernel.
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


def run_layers(module: nn.RNNBase, input: Tensor, hx: Any, drop: Callable[[Tensor], Tensor]) -> Any:
    """Run all layers over a tensor `[B, L, C]`, or `[L, B, C]` without `batch_first`.

    Returns:
        What the module returns: the output, and the last state of all layers.
    """
    is_lstm = module.mode == "LSTM"
    states = _starting_states(module, hx, input)
    rows = 2 if module.bidirectional else 1  # of the states, for each layer
    all_weights: list[Any] = module._flat_weights
    count = len(all_weights) // module.num_layers
    last_states = []
    for layer in range(module.num_layers):
        h = input if layer == 0 else drop(input)
        before = [state[layer * rows : (layer + 1) * rows].contiguous() for state in states]
        input, *last = _KERNELS[module.mode](
            h,
            before if is_lstm else before[0],
            all_weights[layer * count : (layer + 1) * count],
            *(module.bias, 1, 0.0, True, module.bidirectional, module.batch_first),
        )
        last_states.append(last)
    after = tuple(torch.cat(parts) for parts in zip(*last_states, strict=True))
    return input, after if is_lstm else after[0]


def _starting_states(module: nn.RNNBase, hx: Any, input: Tensor) -> list[Tensor]:
    """Return the states before the first step, `[layers * directions, B, H]`; zeros for None."""
    if hx is not None:
        return list(hx) if isinstance(hx, tuple) else [hx]
    batch = input.shape[0 if module.batch_first else 1]
    rows = module.num_layers * (2 if module.bidirectional else 1)
    widths = [module.proj_size or module.hidden_size]
    if module.mode == "LSTM":
        widths.append(module.hidden_size)
    return [input.new_zeros(rows, batch, width) for width in widths]
