"""The layout probe: disturb single windows and watch which rows of every site move.

One pass with the windows as they are, one with another seed (is the evaluation itself random?),
one for each disturbed window. Sites whose input does not depend on the window are resolved from
the other side: disturb rows of their output and watch whose result moves.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.utils._pytree import tree_map

from sacm.inject.layout import SiteLayout
from sacm.inject.probe.batch import WINDOWS, cut_batch, find_window_tensors
from sacm.inject.probe.infer_layout import (
    FAINT,
    find_layout,
    list_candidates,
    measure_rows,
    movement,
)
from sacm.inject.probe.nondeterminism import collect_tensors, find_random_parts, tensors_equal
from sacm.inject.probe.restore import restored_afterwards, seed_all_generators
from sacm.inject.sites import Site, Tap
from sacm.inject.state import Call
from sacm.inject.unresolved import Unresolved, layout_error
from sacm.inject.window_argument import WindowArgument

# How strong a disturbance is, and how much cross-talk between windows counts as none. A choice made
# for the whole batch at once (the lags with the highest mean correlation) may flip under a strong
# disturbance of one window and move them all; a weak one leaves it alone.
_ATTEMPTS = ((1.0, 0.0), (1e-3, FAINT))
_FEW_SEEDS, _MANY_SEEDS = 3, 32  # tried to reach all sites, and to reach one that is wanted

Tapper = Callable[[Tap], Iterable[Any]]  # installs a tap at every site, yields removable handles
Alter = Callable[[Site, int, Tensor], Tensor | None]  # may replace a call's activation


@dataclasses.dataclass
class Pass:
    """What one forward pass showed: each site's calls in order, and the tensors returned."""

    calls: dict[Site, list[Tensor]]
    outputs: list[Tensor]


@dataclasses.dataclass
class OutputSide:
    """A pass, and the returned tensors (index, layout) in which every window's part is known."""

    inputs: Call
    seed: int
    base: Pass
    readable: Sequence[tuple[int, SiteLayout]]


@dataclasses.dataclass
class Probe:
    """A model, its window argument and a way to watch its sites."""

    model: nn.Module
    window: WindowArgument
    install: Tapper
    stated: Mapping[str, SiteLayout]  # what the model itself says of its sites
    training: bool = False
    problems: list[Unresolved] = dataclasses.field(default_factory=list)

    def run(self, call: Call, *, wanted: Site | None = None) -> list[str]:
        """Fill in `layouts` and `reached` of the sites; returns what is random in evaluation.

        Args:
            call: A call of the model with a batch of any size.
            wanted: A site that must be reached, even if the model seldom calls it.

        Raises:
            LayoutError: Layouts could not be found; the message lists every such site.
        """
        with restored_afterwards(self.model):
            self._set_flags(training=False)
            inputs = self._few_windows(call)
            random = self._random_evaluation(inputs) if wanted is None else []
            self._set_flags(training=self.training)
            for seed in self._telling_seeds(inputs, wanted):
                self._resolve(inputs, seed)
        if self.problems:
            raise layout_error(type(self.model).__name__, self.problems)
        return random

    def _few_windows(self, call: Call) -> Call:
        """A batch of few windows that the model takes."""
        ways = cut_batch(call, self.window)
        usual, other = next(ways), next(ways, None)
        if other is None:
            return usual
        refused: Exception | None = None
        for inputs in itertools.chain((usual, other), ways):
            try:
                self._pass(inputs)
            except Exception as error:  # whatever a model raises at arguments that do not fit
                refused = refused or error
            else:
                return inputs
        assert refused is not None
        raise refused

    def _random_evaluation(self, inputs: Call) -> list[str]:
        first, second = self._pass(inputs, seed=0), self._pass(inputs, seed=1)
        if tensors_equal(first.outputs, second.outputs):
            return []
        return find_random_parts(self.model, lambda seed: self._pass(inputs, seed=seed))

    def _telling_seeds(self, inputs: Call, wanted: Site | None) -> Iterator[int]:
        """Seeds that show new sites; more than one where training leaves out layers at random."""
        if not self.training:
            yield 0
            return
        seen: set[Site] = set()
        for seed in range(_MANY_SEEDS):
            if seed >= _FEW_SEEDS and (wanted is None or wanted in seen):
                return
            calls = set(self._pass(inputs, seed=seed).calls)
            if calls - seen:
                seen |= calls
                yield seed

    def _resolve(self, inputs: Call, seed: int) -> None:
        """Find the layout of every call that a pass with this seed makes."""
        base = self._pass(inputs, seed=seed)
        for strength, cross_talk in _ATTEMPTS:
            disturbed = [
                self._pass(_disturb(inputs, self.window, i, strength), seed=seed)
                for i in range(WINDOWS)
            ]
            reading = _read(base, disturbed, cross_talk)
            if not reading.mixed and not reading.unlike:
                break
        for site, index in reading.mixed:
            self._use_statement(site, base.calls[site][index])
        readable = _readable_outputs(base, disturbed)
        for site, index in reading.unmoved:
            self._resolve_from_output(OutputSide(inputs, seed, base, readable), site, index)

    def _set_flags(self, *, training: bool) -> None:
        """Evaluation, or training with the statistics of normalisation layers held still."""
        for module in self.model.modules():
            module.training = training and not isinstance(module, _NormBase)

    def _pass(self, inputs: Call, *, seed: int = 0, alter: Alter | None = None) -> Pass:
        calls: dict[Site, list[Tensor]] = {}
        given: list[tuple[Site, Tensor, int]] = []

        def tap(site: Site, h: Tensor) -> Tensor:
            seen = calls.setdefault(site, [])
            seen.append(h.detach().clone())
            given.append((site, h, h._version))
            changed = None if alter is None else alter(site, len(seen) - 1, h)
            # A copy, as dropout gives: what happens to it does not happen to the activation.
            return h.clone() if changed is None else changed

        with restored_afterwards(self.model), ExitStack() as stack:
            seed_all_generators(seed)
            for handle in self.install(tap):
                stack.callback(handle.remove)
            result = self.model.forward(*_copy(inputs.args), **_copy(inputs.kwargs))
            for site, h, version in given:
                site.overwritten |= h._version != version
        return Pass(calls, [t.detach() for t in collect_tensors(result) if t.dim()])

    def _use_statement(self, site: Site, h: Tensor) -> None:
        """Use the model's own statement about an activation that seems to mix windows."""
        stated = self.stated.get(site.name)
        if stated is not None and stated.fits(h.shape, WINDOWS):
            site.learn(h.shape, stated)
        elif site.adaptive and site.stated is None:
            why = f"mixes the rows of the {WINDOWS} probed windows"
            self.problems.append(site.unresolved(h.shape, why))

    def _resolve_from_output(self, side: OutputSide, site: Site, index: int) -> None:
        """Resolve a call whose input never moved by disturbing its output."""
        shape = side.base.calls[site][index].shape
        if site.stated is not None or any(seen == shape for seen, _ in site.layouts):
            return
        stated = self.stated.get(site.name)
        found = [stated] if stated is not None else list_candidates(shape, WINDOWS)
        for layout in found:
            if layout is stated or self._explains(side, site, index, layout):
                site.learn(shape, layout)
                return
        why = "depends on no window, and moves no window's result"
        self.problems.append(site.unresolved(shape, why))

    def _explains(self, side: OutputSide, site: Site, index: int, layout: SiteLayout) -> bool:
        """Whether disturbing what a layout says is window i moves window i's result alone."""
        owners = layout.owners(WINDOWS)
        for window in range(WINDOWS):
            rows = (owners == window).nonzero()[:, 0]

            def alter(at: Site, call: int, h: Tensor, rows: Tensor = rows) -> Tensor | None:
                if at is not site or call != index:
                    return None
                noise = torch.randn(h.shape, generator=torch.Generator().manual_seed(7))
                where = rows.to(h.device)
                noise = noise.to(h.device, h.dtype).index_select(layout.dim, where)
                return h.index_add(layout.dim, where, noise)

            outputs = self._pass(side.inputs, seed=side.seed, alter=alter).outputs
            changes = [movement(side.base.outputs[i], outputs[i]) for i, _ in side.readable]
            if not any(bool(change.any()) for change in changes):
                return False
            for change, (_, where) in zip(changes, side.readable, strict=True):
                touched = measure_rows(change, where.dim) > 0
                if bool((touched & (where.owners(WINDOWS) != window)).any()):
                    return False
        return True


def _disturb(call: Call, window: WindowArgument, index: int, strength: float) -> Call:
    """The same windows with noise added to one of them."""
    changed = Call(call.model, _copy(call.args), _copy(call.kwargs))
    generator = torch.Generator().manual_seed(index + 1)
    for tensor in find_window_tensors(changed, window):
        noise = torch.randn(tensor[index].shape, generator=generator).to(tensor)
        spread = tensor[index].abs().mean() + 1e-2
        tensor[index] += noise * spread * strength
    return changed


def _copy(tree: Any) -> Any:
    return tree_map(lambda leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf, tree)


@dataclasses.dataclass
class Reading:
    """The calls, as (site, index), that the inputs of the sites leave open."""

    unmoved: list[tuple[Site, int]] = dataclasses.field(default_factory=list)
    mixed: list[tuple[Site, int]] = dataclasses.field(default_factory=list)
    unlike: list[tuple[Site, int]] = dataclasses.field(default_factory=list)  # in shape or number


def _read(base: Pass, disturbed: Sequence[Pass], cross_talk: float) -> Reading:
    """Layouts from the inputs of the sites."""
    reading = Reading()
    for site, calls in base.calls.items():
        site.reached = True
        for index, h in enumerate(calls):
            others = [p.calls[site][index] for p in disturbed if len(p.calls.get(site, ())) > index]
            changes = [movement(h, other) for other in others if other.shape == h.shape]
            if len(changes) < len(disturbed):
                reading.unlike.append((site, index))
            elif not any(bool(change.any()) for change in changes):
                reading.unmoved.append((site, index))
            elif (layout := find_layout(changes, cross_talk=cross_talk)) is not None:
                site.learn(h.shape, layout)
            else:
                reading.mixed.append((site, index))
    return reading


def _readable_outputs(base: Pass, disturbed: Sequence[Pass]) -> list[tuple[int, SiteLayout]]:
    """The returned tensors in which every window's own part is known."""
    readable = []
    for index, output in enumerate(base.outputs):
        others = [p.outputs[index] for p in disturbed if len(p.outputs) > index]
        changes = [movement(output, other) for other in others if other.shape == output.shape]
        if len(changes) == len(disturbed) and all(bool(change.any()) for change in changes):
            layout = find_layout(changes)
            if layout is not None:
                readable.append((index, layout))
    return readable
