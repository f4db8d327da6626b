"""Intercept dropout: stand-ins for the forward of modules, and how each kind of dropout drops.

Every module that drops, or may call a function that does, gets a stand-in for its `forward` as an
instance attribute; removing the attribute removes the method. A dropout module is replaced by a
handler as a whole. For any other module the outermost stand-in opens a `TorchFunctionMode`, which
leads calls that drop (`F.dropout`, the `dropout_p` of attention) to a handler. The innermost
stand-in on the stack names the site: `encoder.attention:dropout[1]` is the second call of `dropout`
in one forward. Activation checkpointing re-runs single modules, so each has its own stand-in.
"""

from __future__ import annotations

import functools
import inspect
import math
import types
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.overrides import TorchFunctionMode

from sacm.inject.sites import ModulationState, Site

# Classes and functions that drop, with the dimensions of the feature maps that drop as a whole.
DROPOUTS: dict[Any, int] = {nn.Dropout: 0, nn.Dropout1d: 1, nn.Dropout2d: 2, nn.Dropout3d: 3}
DROPOUTS |= {F.dropout: 0, F.dropout1d: 1, F.dropout2d: 2, F.dropout3d: 3}


class StandIn:
    """Stands in for the forward of one module while the module is in training.

    Where `handler` is None, the functions that the module calls are intercepted.
    """

    def __init__(
        self, module: nn.Module, name: str, state: ModulationState, site: Site | None, handler: Any
    ) -> None:
        self.module, self.name, self.state = module, name, state
        self.site, self.handler = site, handler
        self.inserted: Site | None = None  # drops the output of the module
        self.calls: dict[tuple[str, int], Site] = {}  # sites of functions that the module calls
        self.counts: dict[str, int] = {}  # such calls of the running forward, by function
        self.original: Any = module.__dict__.get("forward")  # set on the instance before
        self.ran = self.installed = False

    def install(self) -> None:
        """Take the place of the module's forward."""
        self.installed, self.module.__dict__["forward"] = True, self

    def uninstall(self) -> None:
        """Give the module its own forward back."""
        self.installed = False
        if self.module.__dict__.get("forward") is not self:
            return  # another library wraps this stand-in, which only passes calls on from now
        if self.original is None:
            del self.module.__dict__["forward"]
        else:
            self.module.__dict__["forward"] = self.original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module, with its dropout made adaptive in training."""
        # Torch fetches the model's forward before its pre-hooks run. If the probe in such a hook
        # takes this stand-in away, it is called once more all the same.
        probing = self.state.tap is not None
        if not self.installed or not (self.module.training or probing):
            return self.own_forward(*args, **kwargs)
        if self.handler is not None and self.site is not None and self.site.covers():
            output = self.handler(self, self.site, *args, **kwargs)
        elif self.module.training and (self.state.everywhere or self.site is not None):
            output = self._intercept(*args, **kwargs)
        else:
            output = self.own_forward(*args, **kwargs)
        if self.inserted is None or not self.inserted.covers():
            return output
        if isinstance(output, tuple):
            return (self.inserted.drop(output[0]), *output[1:])
        return self.inserted.drop(output)

    def _intercept(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module's own forward, with its functional dropout made adaptive."""
        self.ran, self.counts = True, {}
        stack = self.state.stack
        stack.append(self)
        try:
            if len(stack) > 1:
                return self.own_forward(*args, **kwargs)
            with Interceptor(stack):
                return self.own_forward(*args, **kwargs)
        finally:
            stack.pop()

    @property
    def exempt(self) -> bool:
        """Whether this is a dropout that stays ordinary although it is called as a function."""
        return self.site is not None and not self.site.adaptive

    def next_site(self, kind: str) -> Site | None:
        """Return the site of the next call of this kind; None if it drops as before."""
        ordinal = self.counts.get(kind, 0)
        self.counts[kind] = ordinal + 1
        if (kind, ordinal) not in self.calls:
            own = self.site if not self.calls else None
            name = f"{self.name}:{kind}" + (f"[{ordinal}]" if ordinal else "")
            self.calls[kind, ordinal] = own or self.state.make_site(name, f"functional {kind}")
        site = self.calls[kind, ordinal]
        return site if site.covers() else None

    @property
    def own_forward(self) -> Any:
        """The module's own forward."""
        if self.original is not None:
            return self.original
        return types.MethodType(type(self.module).forward, self.module)

    @property
    def __signature__(self) -> inspect.Signature:
        """Trainers read the arguments of a model from its forward."""
        return inspect.signature(self.own_forward)

    @property
    def __code__(self) -> Any:
        """Exporters read where it was defined."""
        return self.own_forward.__code__


class Interceptor(TorchFunctionMode):
    """Sees every torch function that runs, and leads those that drop to their handler."""

    def __init__(self, stack: list[StandIn]) -> None:
        super().__init__()
        self.stack = stack

    def __torch_function__(
        self, func: Any, _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        handler = FUNCTIONS.get(func)
        if handler is None or self.stack[-1].exempt:
            return func(*args, **(kwargs or {}))
        return handler(self.stack[-1], func, *args, **(kwargs or {}))


def drop_module(stand_in: StandIn, site: Site, input: Tensor) -> Tensor:
    """Drop as `nn.Dropout` and its relatives for feature maps do."""
    module: Any = stand_in.module
    return site.drop_as(DROPOUTS[type(module)], input, inplace=module.inplace)


def drop_between_layers(stand_in: StandIn, site: Site, input: Any, hx: Any = None) -> Any:
    """Call the fused kernel of an LSTM, GRU or RNN once for each layer, with dropout between."""
    module: Any = stand_in.module
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
    count = len(module._flat_weights) // module.num_layers
    kernel = getattr(torch, module.mode.lower())  # torch.lstm, gru, rnn_tanh or rnn_relu
    last_states = []
    for layer in range(module.num_layers):
        h = input if layer == 0 else site.drop(input)
        rows = slice(layer * directions, (layer + 1) * directions)
        before = [state[rows].contiguous() for state in states]
        input, *last = kernel(
            h,
            before if is_lstm else before[0],
            module._flat_weights[layer * count : (layer + 1) * count],
            *(module.bias, 1, 0.0, True, module.bidirectional, module.batch_first),
        )
        last_states.append(last)
    after = tuple(torch.cat(parts) for parts in zip(*last_states, strict=True))
    return input, after if is_lstm else after[0]


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
    if site is None:
        return func(input, p, training, inplace)
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
    **options: Any,  # scale and enable_gqa
) -> Any:
    """Stand in for `scaled_dot_product_attention`: computes the weights, so that they can drop."""
    site = stand_in.next_site("attention") if dropout_p > 0 else None
    options["is_causal"] = is_causal
    if site is None:
        return func(query, key, value, attn_mask, dropout_p, **options)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        # The function below reads True as an addend of 1.
        hidden = torch.zeros_like(attn_mask, dtype=query.dtype)
        attn_mask = hidden.masked_fill_(~attn_mask, -math.inf)
    _, weights = torch._scaled_dot_product_attention_math(query, key, value, attn_mask, **options)
    if options.get("enable_gqa"):
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], dim=-3)
    return site.drop(weights) @ value


def handle_multi_head_attention(stand_in: StandIn, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Run torch's `multi_head_attention_forward` with two of its global names led to handlers."""
    names = {
        **func.__globals__,
        # Other modes (a default device) must not take the call over.
        "has_torch_function": lambda _: False,
        "dropout": functools.partial(handle_dropout, stand_in, F.dropout),
        "scaled_dot_product_attention": functools.partial(
            handle_attention, stand_in, F.scaled_dot_product_attention
        ),
    }
    redirected = types.FunctionType(func.__code__, names, func.__name__, func.__defaults__)
    redirected.__kwdefaults__ = func.__kwdefaults__
    return redirected(*args, **kwargs)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys((F.dropout, F.dropout1d, F.dropout2d, F.dropout3d), handle_dropout),
    F.scaled_dot_product_attention: handle_attention,
    F.multi_head_attention_forward: handle_multi_head_attention,
}
