"""Run a model without leaving a trace, and note the activations at its dropout sites."""

from __future__ import annotations

import copy
import dataclasses
import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.utils._pytree import tree_flatten, tree_map

from sacm.inject.layout import layout_error
from sacm.inject.sites import Site, Tap

# Random states and the fast-path switch belong to the process: one thread at a time uses them.
_BORROWED = threading.RLock()

Tapper = Callable[[Tap], Iterable[Any]]  # installs a tap at every site, yields removable handles
Alter = Callable[[Site, int, Tensor], Tensor | None]  # may replace a call's activation
Watch = Callable[[Site, int, Tensor], None]  # sees a call's activation instead of storing it


@dataclass
class Call:
    """A forward call of a model: what a probe needs to run it."""

    model: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass
class Pass:
    """Results of one forward pass: the activations of each site in order, and the outputs.

    `random_state` is the state of torch's generator at the end: passes that drew the same random
    numbers end in the same state.
    """

    calls: dict[Site, list[Tensor]] = field(default_factory=dict)
    outputs: list[Tensor] = field(default_factory=list)
    random_state: Tensor = field(default_factory=torch.get_rng_state)

    @property
    def indexed(self) -> list[tuple[Site, int, Tensor]]:
        """All calls as (site, position among its calls, activation)."""
        return [(site, i, h) for site, calls in self.calls.items() for i, h in enumerate(calls)]


@dataclass
class PassRunner:
    """Runs a model with a tap at each of its sites; every pass starts from the same state."""

    model: nn.Module
    install: Tapper
    gradients: bool = False

    def set_flags(self, *, training: bool) -> None:
        """Switch to evaluation, or to training with the statistics of normalisation layers off."""
        for module in self.model.modules():
            module.training = training and not isinstance(module, _NormBase)

    def run(
        self,
        call: Call,
        *,
        seed: int = 0,
        alter: Alter | None = None,
        watch: Watch | None = None,
    ) -> Pass:
        """Run the model once.

        Args:
            call: The arguments; they are copied.
            seed: Seed of all generators.
            alter: Replaces activations.
            watch: Gets every activation; they are then not stored in the result.

        Raises:
            LayoutError: A transform of torch.func hides the windows at a site.
        """
        result = Pass()
        counts: dict[Site, int] = {}
        given: list[tuple[Site, Tensor, int]] = []

        def tap(site: Site, h: Tensor) -> Tensor:
            if torch._C._functorch.is_functorch_wrapped_tensor(h):
                why = "is inside a transform of torch.func, such as vmap, which hides its windows"
                raise layout_error(type(self.model).__name__, [site.unresolved(h.shape, why)])
            index = counts[site] = counts.get(site, -1) + 1
            if watch is None:
                result.calls.setdefault(site, []).append(h.detach().clone())
            else:
                watch(site, index, h)
            given.append((site, h, h._version))
            changed = None if alter is None else alter(site, index, h)
            # A copy, as dropout gives: changes in place must not reach the activation itself.
            return h.clone() if changed is None else changed

        with restored_afterwards(self.model), ExitStack() as stack:
            seed_all_generators(seed)
            for handle in self.install(tap):
                stack.callback(handle.remove)
            args, kwargs = copy_tensors((call.args, call.kwargs))
            with torch.set_grad_enabled(self.gradients):
                returned = self.model.forward(*args, **kwargs)
            result.random_state = torch.get_rng_state()
            for site, h, version in given:
                site.overwritten |= h._version != version
        result.outputs = [tensor.detach() for tensor in collect_tensors(returned)]
        return result

    def find_random_parts(self, call: Call) -> list[str]:
        """Return the paths of modules whose output changes with the seed at the same input.

        Only the innermost ones; the model's class name when its own forward is random. Empty if
        two seeds give the same outputs.
        """
        first, second = self.run(call, seed=0), self.run(call, seed=1)
        if tensors_equal(first.outputs, second.outputs):
            return []
        names = [
            name
            for (name, inputs, outputs), (_, other_inputs, other_outputs) in zip(
                self._record(call, 0), self._record(call, 1), strict=False
            )
            if tensors_equal(inputs, other_inputs) and not tensors_equal(outputs, other_outputs)
        ]
        names = list(dict.fromkeys(names))
        inner = [name for name in names if not any(o.startswith(f"{name}.") for o in names)]
        return inner or [type(self.model).__name__]

    def _record(self, call: Call, seed: int) -> list[tuple[str, list[Tensor], list[Tensor]]]:
        """Record name, inputs and outputs of every call of a module below the model."""
        records: list[tuple[str, list[Tensor], list[Tensor]]] = []
        entered: list[list[Tensor]] = []

        def before(_module: nn.Module, args: Any, kwargs: Any) -> None:
            entered.append([t.detach().clone() for t in collect_tensors((args, kwargs))])

        with ExitStack() as stack:
            for name, module in self.model.named_modules():
                if module is self.model or isinstance(module, torch.jit.ScriptModule):
                    continue

                def after(_module: nn.Module, _args: Any, output: Any, name: str = name) -> None:
                    left = [t.detach().clone() for t in collect_tensors(output)]
                    records.append((name, entered.pop(), left))

                stack.callback(module.register_forward_pre_hook(before, with_kwargs=True).remove)
                stack.callback(module.register_forward_hook(after).remove)
            self.run(call, seed=seed)
        return records


def tensors_equal(first: list[Tensor], second: list[Tensor]) -> bool:
    """Return whether tensors are equal one by one, with NaN equal to NaN."""
    return len(first) == len(second) and all(
        a.shape == b.shape and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
        for a, b in zip(first, second, strict=True)
    )


@contextmanager
def restored_afterwards(model: nn.Module) -> Iterator[None]:
    """Put back, on leaving, everything that a forward pass of `model` may have changed."""
    with _BORROWED:
        tensors = {id(tensor): (tensor, tensor.detach().clone()) for tensor in _tensors(model)}
        containers = [(held, _entries(held)) for held in _containers(model)]
        restore_random = _random_states(model)
        fast_path = torch.backends.mha.get_fastpath_enabled()
        try:
            # The fused inference kernel of nn.TransformerEncoder would pass its dropouts by.
            torch.backends.mha.set_fastpath_enabled(False)
            with torch.no_grad():
                yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast_path)
            restore_random()
            for held, entries in containers:
                _put_back(held, entries)
            for tensor, saved in tensors.values():
                if not _same(tensor, saved):
                    tensor.detach().copy_(saved)


def seed_all_generators(seed: int) -> None:
    """Seed the generators of torch, Python and NumPy."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


def _tensors(model: nn.Module) -> Iterator[Tensor]:
    """Yield parameters, buffers and tensors that modules keep as plain attributes."""
    yield from model.parameters()
    yield from model.buffers()
    for module in model.modules():
        yield from (value for value in module.__dict__.values() if isinstance(value, Tensor))


def _containers(model: nn.Module) -> Iterator[Any]:
    """Yield the containers in which modules keep attributes, parameters, buffers and children."""
    for module in model.modules():
        yield from (v for v in module.__dict__.values() if isinstance(v, dict | list | set | deque))
        yield module.__dict__


def _entries(held: Any) -> Any:
    """Return a shallow copy of a container."""
    return dict(held) if isinstance(held, dict) else list(held)


def _put_back(held: Any, entries: Any) -> None:
    """Restore the entries of a container if they changed."""
    now = _entries(held)
    if isinstance(held, dict):
        same = now.keys() == entries.keys() and all(now[key] is entries[key] for key in entries)
    else:
        same = len(now) == len(entries) and all(map(lambda a, b: a is b, now, entries))
    if not same:
        held.clear()
        put = held.extend if isinstance(held, list | deque) else held.update
        put(entries)


def _same(tensor: Tensor, saved: Tensor) -> bool:
    """Return whether tensors are equal, with NaN equal to NaN."""
    return torch.equal(tensor, saved) or bool(
        torch.isclose(tensor, saved, rtol=0, atol=0, equal_nan=True).all()
    )


def _random_states(model: nn.Module) -> Callable[[], None]:
    """Save the state of every generator that a forward may use; returns what restores them."""
    python, numpy, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()
    devices = {p.device for p in [*model.parameters(), *model.buffers()]}
    if torch.cuda.is_initialized():  # torch.manual_seed reaches every device
        devices |= {torch.device("cuda", index) for index in range(torch.cuda.device_count())}
    accelerators: list[tuple[Any, torch.device, torch.Tensor]] = []
    for device in devices:
        if device.type not in ("cpu", "meta"):
            library = torch.get_device_module(device)
            arguments = (device,) if device.type != "mps" else ()
            accelerators.append((library, device, library.get_rng_state(*arguments)))

    def restore() -> None:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(cpu)
        for library, device, state in accelerators:
            arguments = (device,) if device.type != "mps" else ()
            library.set_rng_state(state, *arguments)

    return restore


def map_tensors(function: Callable[[Tensor], Any], tree: Any) -> Any:
    """Return a copy of nested containers with `function` applied to every tensor in them."""

    def map_leaf(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return function(leaf)
        fields = _fields(leaf)
        if fields is None:
            return leaf
        clone = copy.copy(leaf)
        for name, value in fields.items():
            if isinstance(leaf, Mapping):
                clone[name] = map_tensors(function, value)
            else:  # also for frozen dataclasses
                object.__setattr__(clone, name, map_tensors(function, value))
        return clone

    return tree_map(map_leaf, tree)


def collect_tensors(tree: Any) -> list[Tensor]:
    """Return all tensors in nested containers, in the order of `map_tensors`."""
    tensors = []
    for leaf in tree_flatten(tree)[0]:
        if isinstance(leaf, Tensor):
            tensors.append(leaf)
        elif (fields := _fields(leaf)) is not None:
            tensors += [tensor for value in fields.values() for tensor in collect_tensors(value)]
    return tensors


def copy_tensors(tree: Any) -> Any:
    """Return a copy of nested containers with a copy of every tensor."""
    return map_tensors(lambda tensor: tensor.detach().clone(), tree)


def _fields(leaf: Any) -> dict[Any, Any] | None:
    """Return what a container that torch does not know holds; None for everything else."""
    if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
        return {f.name: getattr(leaf, f.name) for f in dataclasses.fields(leaf)}
    return dict(leaf) if isinstance(leaf, Mapping) else None
