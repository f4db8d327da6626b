"""Run a model without leaving a trace, and watch the activations at its dropout sites."""

from __future__ import annotations

import copy
import dataclasses
import random
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.utils._pytree import tree_map

from sacm.inject.layout import layout_error
from sacm.inject.sites import Site, Tap

# Random states and the fast-path switch belong to the process: one thread at a time uses them.
_PROCESS_LOCK = threading.RLock()

CallKey = tuple[Site | None, int]  # a site and the position among its calls; None for outputs
Visit = Callable[[CallKey, Tensor], Tensor | None]  # sees an activation, and may replace it


@dataclass
class Call:
    """A forward call of a model: what a probe needs to run it."""

    model: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass
class Pass:
    """Activations of one forward pass by call, those of the outputs under the site None.

    `trained` are the sites whose activation has a gradient. `random_state` is torch's at the end:
    passes that drew the same random numbers end in the same state.
    """

    calls: dict[CallKey, Tensor] = field(default_factory=dict)
    trained: set[Site] = field(default_factory=set)
    random_state: Tensor = field(default_factory=torch.get_rng_state)


@dataclass
class PassRunner:
    """Runs a model with a tap at each of its sites; every pass starts from the same state.

    Args:
        model: The model.
        install: Installs a tap at every site and yields removable handles.
        training: The mode to run it in; normalisation layers stay in evaluation.
    """

    model: nn.Module
    install: Callable[[Tap], Iterable[Any]]
    training: bool = True

    def run(
        self,
        call: Call,
        *,
        seed: int = 0,
        visit: Visit | None = None,
        gradients: bool = False,
    ) -> Pass:
        """Run the model once, on copies of the arguments.

        Args:
            call: The arguments.
            seed: Seed of all generators.
            visit: Gets every activation and output, which are then not stored.
            gradients: Record gradients.

        Raises:
            LayoutError: A transform of torch.func hides the windows at a site.
        """
        result, counts = Pass(), Counter[Site]()
        shown: list[tuple[Site, Tensor, int]] = []

        def tap(site: Site, h: Tensor) -> Tensor:
            if torch._C._functorch.is_functorch_wrapped_tensor(h):
                why = "is inside a transform of torch.func, such as vmap, which hides its windows"
                problem = site.describe_problem(h.shape, why)
                raise layout_error(type(self.model).__name__, {site.name: problem})
            key = site, counts[site]
            counts[site] += 1
            shown.append((site, h, h._version))
            if h.requires_grad:
                result.trained.add(site)
            changed = note(key, h)
            # A copy, as dropout gives: changes in place must not reach the activation itself.
            return h.clone() if changed is None else changed

        def note(key: CallKey, h: Tensor) -> Tensor | None:
            if visit is not None:
                return visit(key, h.detach())
            result.calls[key] = h.detach().clone()
            return None

        with restored_afterwards(self.model), ExitStack() as stack:
            for module in self.model.modules():
                module.training = self.training and not isinstance(module, _NormBase)
            seed_all_generators(seed)
            for handle in self.install(tap):
                stack.callback(handle.remove)
            args, kwargs = copy_tensors((call.args, call.kwargs))
            with torch.set_grad_enabled(gradients):
                returned = self.model.forward(*args, **kwargs)
            result.random_state = torch.get_rng_state()
            for site, h, version in shown:
                site.overwritten |= h._version != version
            for index, output in enumerate(collect_tensors(returned)):
                note((None, index), output)
        return result

    def is_random(self, call: Call) -> bool:
        """Return whether the outputs depend on the seed although no site drops."""
        first, second = (self.run(call, seed=seed).calls for seed in (0, 1))
        return any(
            site is None and not _is_same(output, second[None, index])
            for (site, index), output in first.items()
        )


@contextmanager
def restored_afterwards(model: nn.Module) -> Iterator[None]:
    """Put back, on leaving, everything that a forward pass of `model` may have changed."""
    with _PROCESS_LOCK:
        tensors = {id(tensor): (tensor, tensor.detach().clone()) for tensor in _tensors(model)}
        containers = [(held, _entries(held)) for held in _containers(model)]
        restore_random = _random_states(model)
        fast_path = torch.backends.mha.get_fastpath_enabled()
        try:
            # The fused inference kernel of nn.TransformerEncoder would skip its dropouts.
            torch.backends.mha.set_fastpath_enabled(False)
            with torch.no_grad():
                yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast_path)
            restore_random()
            for held, entries in containers:
                _put_back(held, entries)
            for tensor, saved in tensors.values():
                if not _is_same(tensor, saved):
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


def _is_same(tensor: Tensor, saved: Tensor) -> bool:
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
    accelerators: list[tuple[Any, tuple[torch.device, ...], Tensor]] = []
    for device in devices:
        if device.type not in ("cpu", "meta"):
            library = torch.get_device_module(device)
            arguments = (device,) if device.type != "mps" else ()
            accelerators.append((library, arguments, library.get_rng_state(*arguments)))

    def restore() -> None:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(cpu)
        for library, arguments, state in accelerators:
            library.set_rng_state(state, *arguments)

    return restore


def map_tensors(function: Callable[[Tensor], Tensor], tree: Any) -> Any:
    """Return a copy of nested containers with `function` applied to every tensor in them."""

    def map_leaf(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return function(leaf)
        # Containers that torch does not know; also frozen dataclasses.
        if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
            clone = copy.copy(leaf)
            for each in dataclasses.fields(leaf):
                value = map_tensors(function, getattr(leaf, each.name))
                object.__setattr__(clone, each.name, value)
            return clone
        if isinstance(leaf, Mapping):
            mapping: Any = copy.copy(leaf)
            for key, value in leaf.items():
                mapping[key] = map_tensors(function, value)
            return mapping
        return leaf

    return tree_map(map_leaf, tree)


def collect_tensors(tree: Any) -> list[Tensor]:
    """Return all tensors in nested containers, in the order of `map_tensors`."""
    tensors: list[Tensor] = []

    def collect(tensor: Tensor) -> Tensor:
        tensors.append(tensor)
        return tensor

    map_tensors(collect, tree)
    return tensors


def copy_tensors(tree: Any) -> Any:
    """Return a copy of nested containers with a copy of every tensor."""
    return map_tensors(lambda tensor: tensor.detach().clone(), tree)
