"""The layout probe: disturb single windows and watch which rows of every site move.

One pass with the windows as they are, one with another seed (is the evaluation itself random?),
one for each disturbed window. Sites whose input does not depend on the window are resolved from
the other side: disturb rows of their output and watch whose result moves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.utils._pytree import tree_flatten, tree_map

from sacm.inject.evidence import candidates, find_layout, moved
from sacm.inject.layout import SiteLayout
from sacm.inject.sites import Site
from sacm.inject.state import Call
from sacm.inject.trace_free import untouched
from sacm.inject.window_argument import WindowArgument

_WINDOWS = 3  # few enough to be quick, odd so that fewer shapes divide by accident

Tap = Callable[[Site, Tensor], Tensor | None]
Tapper = Callable[[Tap], Iterable[Any]]  # installs a tap at every site, yields removable handles
Alter = Callable[[Site, int, Tensor], Tensor | None]  # may replace a call's activation


@dataclasses.dataclass
class Pass:
    """What one forward pass showed: each site's calls in order, and the tensors returned."""

    calls: dict[Site, list[Tensor]]
    outputs: list[Tensor]


@dataclasses.dataclass
class Probe:
    """A model, its window argument and a way to watch its sites."""

    model: nn.Module
    window: WindowArgument
    install: Tapper
    stated: Mapping[str, SiteLayout]  # what the model itself says of its sites
    training: bool = False

    def run(self, call: Call) -> bool:
        """Fill in `layouts` and `reached` of the sites; True if the evaluation itself is random."""
        with untouched(self.model):
            inputs = _few_windows(call, self.window)
            self._set_flags(training=False)
            base, again = self._pass(inputs), self._pass(inputs, seed=1)
            random_evaluation = _differ(base, again)
            if self.training:
                self._set_flags(training=True)
                base = self._pass(inputs)
            disturbed = [self._pass(_disturb(inputs, self.window, i)) for i in range(_WINDOWS)]
            unmoved = _read(base, disturbed)
            self._from_the_output(inputs, base, disturbed, unmoved)
        return random_evaluation

    def _set_flags(self, *, training: bool) -> None:
        """Evaluation, or training with the statistics of normalisation layers held still."""
        for module in self.model.modules():
            module.training = training and not isinstance(module, _NormBase)

    def _pass(self, inputs: Call, *, seed: int = 0, alter: Alter | None = None) -> Pass:
        calls: dict[Site, list[Tensor]] = {}

        def tap(site: Site, h: Tensor) -> Tensor | None:
            seen = calls.setdefault(site, [])
            seen.append(h.detach().clone())
            return None if alter is None else alter(site, len(seen) - 1, h)

        torch.manual_seed(seed)
        with ExitStack() as stack:
            for handle in self.install(tap):
                stack.callback(handle.remove)
            result = self.model.forward(*_copy(inputs.args), **_copy(inputs.kwargs))
        return Pass(calls, [t.detach() for t in _tensors(result)])

    def _from_the_output(
        self,
        inputs: Call,
        base: Pass,
        disturbed: Sequence[Pass],
        unmoved: Sequence[tuple[Site, int]],
    ) -> None:
        """Resolve the calls whose input never moved by disturbing their output."""
        readable = _readable_outputs(base, disturbed)
        for site, index in unmoved:
            shape = tuple(base.calls[site][index].shape)
            if site.stated is not None or shape in site.layouts:
                continue
            stated = self.stated.get(site.name)
            found = [stated] if stated is not None else candidates(shape, _WINDOWS)
            for layout in found:
                if layout is stated or self._explains(inputs, base, readable, site, index, layout):
                    site.layouts[shape] = layout
                    break
            else:
                raise site.unresolved(shape, "depends on no window, and moves no window's result")

    def _explains(
        self,
        inputs: Call,
        base: Pass,
        readable: Sequence[tuple[int, SiteLayout]],
        site: Site,
        index: int,
        layout: SiteLayout,
    ) -> bool:
        """Whether disturbing what a layout says is window i moves window i's result alone."""
        owners = layout.owners(_WINDOWS)
        for window in range(_WINDOWS):
            rows = (owners == window).nonzero()[:, 0]

            def alter(at: Site, call: int, h: Tensor, rows: Tensor = rows) -> Tensor | None:
                if at is not site or call != index:
                    return None
                noise = torch.randn(h.shape, generator=torch.Generator().manual_seed(7))
                where = rows.to(h.device)
                noise = noise.to(h.device, h.dtype).index_select(layout.dim, where)
                return h.index_add(layout.dim, where, noise)

            changed = self._pass(inputs, alter=alter)
            marks = [moved(base.outputs[i], changed.outputs[i]) for i, _ in readable]
            if not any(bool(mark.any()) for mark in marks):
                return False
            for mark, (_, where) in zip(marks, readable, strict=True):
                others = [d for d in range(mark.dim()) if d != where.dim]
                touched = (mark.any(dim=others) if others else mark).cpu()
                if bool((touched & (where.owners(_WINDOWS) != window)).any()):
                    return False
        return True


def probe_again(site: Site) -> None:
    """A site met a tensor it cannot place: probe the running call, now with training paths on."""
    call = site.state.call
    assert call is not None
    modulator = call.model.get_submodule("sacm_modulator")
    modulator.probe(call, training=True)  # type: ignore[operator]  # a CapacityModulator


def _few_windows(call: Call, window: WindowArgument) -> Call:
    """The first windows of a batch (repeated if there are fewer), with all that goes with them."""
    batch = window(call.args, call.kwargs).shape[0]

    def take(leaf: Any) -> Any:
        if isinstance(leaf, Tensor) and leaf.dim() and leaf.shape[0] == batch:
            rows = torch.arange(_WINDOWS, device=leaf.device) % batch
            return leaf.detach().index_select(0, rows)
        return leaf

    return Call(call.model, tree_map(take, call.args), tree_map(take, call.kwargs))


def _disturb(call: Call, window: WindowArgument, index: int) -> Call:
    """The same windows with noise added to one of them."""
    changed = Call(call.model, _copy(call.args), _copy(call.kwargs))
    target = window.raw(changed.args, changed.kwargs)
    leaves = [t for t in tree_flatten((changed.args, changed.kwargs))[0] if isinstance(t, Tensor)]
    storages = {t.untyped_storage().data_ptr() for t in leaves}
    # A window that a user's function computes is not among the arguments: disturb what it is from.
    own = target.untyped_storage().data_ptr() in storages
    targets = [target] if own else [t for t in leaves if t.dim() and t.shape[0] == _WINDOWS]
    generator = torch.Generator().manual_seed(index + 1)
    for tensor in targets:
        if tensor.is_floating_point():
            noise = torch.randn(tensor[index].shape, generator=generator).to(tensor)
            spread = torch.nan_to_num(tensor[index]).abs().mean() + 1e-2
            tensor[index] += noise * spread
    return changed


def _copy(tree: Any) -> Any:
    return tree_map(lambda leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf, tree)


def _read(base: Pass, disturbed: Sequence[Pass]) -> list[tuple[Site, int]]:
    """Layouts from the inputs of the sites; returns the calls whose input never moved."""
    unmoved = []
    for site, calls in base.calls.items():
        site.reached = True
        for index, h in enumerate(calls):
            shape = tuple(h.shape)
            marks = [
                moved(h, other.calls[site][index])
                for other in disturbed
                if len(other.calls.get(site, ())) > index
                and other.calls[site][index].shape == h.shape
            ]
            if len(marks) < _WINDOWS:
                continue
            if not any(bool(mark.any()) for mark in marks):
                unmoved.append((site, index))
                continue
            layout = find_layout(marks)
            if layout is not None:
                site.layouts[shape] = layout
            elif site.stated is None and site.adaptive:
                raise site.unresolved(shape, f"mixes the rows of the {_WINDOWS} probed windows")
    return unmoved


def _readable_outputs(base: Pass, disturbed: Sequence[Pass]) -> list[tuple[int, SiteLayout]]:
    """The returned tensors in which every window's own part is known."""
    readable = []
    for index, output in enumerate(base.outputs):
        marks = [moved(output, other.outputs[index]) for other in disturbed]
        if all(bool(mark.any()) for mark in marks):
            layout = find_layout(marks)
            if layout is not None:
                readable.append((index, layout))
    return readable


def _differ(first: Pass, second: Pass) -> bool:
    return any(
        a.shape != b.shape or not torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
        for a, b in zip(first.outputs, second.outputs, strict=True)
    )


def _tensors(result: Any) -> list[Tensor]:
    """All tensors with a shape in what a model returned, whatever the container."""
    if isinstance(result, Tensor):
        return [result] if result.dim() else []
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        result = [getattr(result, f.name) for f in dataclasses.fields(result)]
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, list | tuple):
        return [tensor for item in result for tensor in _tensors(item)]
    return []
