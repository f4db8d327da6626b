"""Run a model without a trace and note the activations at its dropout sites."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from sacm.inject.probe.restore import restored_afterwards, seed_all_generators
from sacm.inject.probe.tree import collect_tensors, copy_tensors
from sacm.inject.sites import Site, Tap
from sacm.inject.state import Call

Tapper = Callable[[Tap], Iterable[Any]]  # installs a tap at every site, yields removable handles
Alter = Callable[[Site, int, Tensor], Tensor | None]  # may replace a call's activation
Watch = Callable[[Site, int, Tensor], None]  # sees a call's activation instead of storing it


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
    """Runs a model with a tap at each of its sites; every pass starts from the same state.

    Passes run without gradients, unless the forward itself turns out to differentiate something.
    """

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
        around: AbstractContextManager[object] | None = None,
    ) -> Pass:
        """Run the model once.

        Args:
            call: The arguments; they are copied.
            seed: Seed of all generators.
            alter: Replaces activations.
            watch: Gets every activation; they are then not stored in the result.
            around: A context for the forward itself.

        Raises:
            LayoutError: A transform of torch.func hides the windows at a site.
        """
        try:
            return self._run(call, seed, alter, watch, around)
        except RuntimeError as error:
            if self.gradients or "does not require grad" not in str(error):
                raise
        self.gradients = True
        return self._run(call, seed, alter, watch, around)

    def _run(
        self,
        call: Call,
        seed: int,
        alter: Alter | None,
        watch: Watch | None,
        around: AbstractContextManager[object] | None,
    ) -> Pass:
        result = Pass()
        counts: dict[Site, int] = {}
        given: list[tuple[Site, Tensor, int]] = []

        def tap(site: Site, h: Tensor) -> Tensor:
            if torch._C._functorch.is_functorch_wrapped_tensor(h):
                why = "is inside a transform of torch.func, such as vmap, which hides its windows"
                raise site.unresolved(h.shape, why).error()
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
            with torch.set_grad_enabled(self.gradients), around or nullcontext():
                returned = self.model.forward(*args, **kwargs)
            result.random_state = torch.get_rng_state()
            for site, h, version in given:
                site.overwritten |= h._version != version
        result.outputs = [tensor.detach() for tensor in collect_tensors(returned)]
        return result
