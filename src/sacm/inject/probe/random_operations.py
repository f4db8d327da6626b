"""Find the random operations of a training forward that are no adaptive sites, and their places."""

from __future__ import annotations

import random
from contextlib import ExitStack
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from sacm.inject.probe.passes import PassRunner
from sacm.inject.probe.restore import restored_afterwards
from sacm.inject.state import Call

# Functions by which users know an operation; torch runs them as others, such as `bernoulli_`.
_LABELS: dict[Any, str] = {
    F.scaled_dot_product_attention: "attention dropout",
    F.multi_head_attention_forward: "attention dropout",
    **{
        function: function.__name__
        for function in (
            *(F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout),
            *(F.feature_alpha_dropout, torch.dropout, torch.dropout_, torch.feature_dropout),
            *(torch.alpha_dropout, torch.feature_alpha_dropout, torch.native_dropout),
        )
    },
}
_SEED = 0
Found = tuple[str, str]  # path of the innermost module, name of the operation


def find_random_operations(runner: PassRunner, call: Call) -> list[Found]:
    """Return every random operation of a training forward in which adaptive sites do not drop.

    Torch marks its random operations itself, so those that Python code does not show (scripted
    functions, recurrent kernels) are found too.
    """
    places: list[str] = [type(runner.model).__name__]
    watcher = _Watcher(places)
    with restored_afterwards(runner.model), ExitStack() as stack:
        runner.set_flags(training=True)
        scripted: dict[nn.Module, str] = {}
        for name, module in runner.model.named_modules():
            if isinstance(module, torch.jit.ScriptModule):
                scripted[module] = name
            elif name:
                _follow(stack, module, name, places)
        if scripted:
            _follow_scripted(stack, scripted, places)
        around = ExitStack()
        around.enter_context(_Labels(watcher))
        around.enter_context(watcher)
        around.callback(_note_python, watcher, places[0])
        runner.run(call, seed=_SEED, around=around)
    return list(dict.fromkeys(watcher.found))


def _note_python(watcher: _Watcher, place: str) -> None:
    """Note numbers drawn from Python's own generator, as by layers that are skipped at times."""
    if random.getstate() != random.Random(_SEED).getstate():
        watcher.found.append((place, "random of Python"))


def _follow(stack: ExitStack, module: nn.Module, name: str, places: list[str]) -> None:
    """Keep the path of the running module on top of `places`."""

    def enter(*_: Any) -> None:
        places.append(name)

    def leave(*_: Any) -> None:
        places.pop()

    stack.callback(module.register_forward_pre_hook(enter).remove)
    stack.callback(module.register_forward_hook(leave, always_call=True).remove)


def _follow_scripted(stack: ExitStack, names: dict[nn.Module, str], places: list[str]) -> None:
    """The same for scripted modules, which take no hooks of their own; hooks of all modules do."""

    def enter(module: nn.Module, *_: Any) -> None:
        if module in names:
            places.append(names[module])

    def leave(module: nn.Module, *_: Any) -> None:
        if module in names:
            places.pop()

    stack.callback(register_module_forward_pre_hook(enter).remove)
    stack.callback(register_module_forward_hook(leave, always_call=True).remove)


class _Labels(TorchFunctionMode):
    """Tells the watcher which known function is running; the outermost one counts."""

    def __init__(self, watcher: _Watcher) -> None:
        super().__init__()
        self.watcher = watcher

    def __torch_function__(
        self, func: Any, _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        label = _LABELS.get(func)
        if label is None or self.watcher.label is not None:
            return func(*args, **(kwargs or {}))
        self.watcher.label = label
        try:
            with self:  # attention calls dropout inside
                return func(*args, **(kwargs or {}))
        finally:
            self.watcher.label = None


class _Watcher(TorchDispatchMode):
    """Notes every operation that torch marks as random."""

    def __init__(self, places: list[str]) -> None:
        super().__init__()
        self.places = places
        self.found: list[Found] = []
        self.label: str | None = None

    def __torch_dispatch__(
        self, func: Any, _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags and not _is_idle(
            func, args, kwargs or {}
        ):
            name = func.overloadpacket.__name__.lstrip("_")
            self.found.append((self.places[-1], self.label or name))
        return func(*args, **(kwargs or {}))


def _is_idle(func: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    """True for attention kernels that are called with a dropout rate of 0."""
    for position, argument in enumerate(func._schema.arguments):
        if argument.name == "dropout_p":
            given = args[position] if position < len(args) else argument.default_value
            return not kwargs.get("dropout_p", given)
    return False
