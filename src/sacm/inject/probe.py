"""The layout probe: disturb single windows and watch which rows of every site move.

One pass with the batch as it is, and one for each of some windows that are disturbed alone. A row
belongs to the window that moves it. Sites whose input does not depend on any window are resolved
from the other side: disturb rows of the activation and watch whose result moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from sacm.errors import ArgumentError, LayoutError, SACMError
from sacm.inject.infer import ANY, FAINT, find_layout, list_candidates, measure_rows
from sacm.inject.restore import (
    collect_tensors,
    copy_tensors,
    is_same,
    map_tensors,
    restored_afterwards,
    seed_all_generators,
)
from sacm.inject.sites import MODULATOR, ModulationState, Site, SiteLayout, Tap
from sacm.inject.window import Arguments, WindowArgument

# Strength of a disturbance, and the cross-talk between windows that counts as none. A choice made
# for the whole batch at once (the lags with the highest mean correlation) may flip under a strong
# disturbance of one window and move all of them; a weak one does not flip it.
_ATTEMPTS = ((1.0, 0.0), (1e-3, FAINT), (1.0, FAINT))
_MOST_DISTURBED = 8  # windows of a batch that are disturbed, one by one
_COPIES = 3  # of a single window: there must be another one to tell it from
_SEEDS = 3  # tried to reach all sites where training leaves out layers at random

CallKey = tuple[Site | None, int]  # a site and the position among its calls; None for outputs
Alter = Callable[[CallKey, Tensor], Tensor]  # gives what becomes of an activation
Rows = dict[int, Tensor]  # movements [passes, rows] by dimension


@dataclass
class Pass:
    """Activations of one forward pass by call, those of the outputs under the site None.

    Passes that drew the same random numbers end in the same random state.
    """

    calls: dict[CallKey, Tensor] = field(default_factory=dict)
    trained: set[Site] = field(default_factory=set)  # whose activation has a gradient
    random_state: Tensor = field(default_factory=torch.get_rng_state)


class Probe:
    """Runs an attached model on copies of one batch, with single windows disturbed.

    The arguments are those of a call with a batch of any size; a single window is repeated.
    """

    def __init__(
        self, model: nn.Module, arguments: Arguments, window: WindowArgument, state: ModulationState
    ) -> None:
        self.model, self.window, self.state = model, window, state
        self.name = type(model).__name__
        self.training = True  # the mode to run in; normalisation layers stay in evaluation
        self.count = window(*arguments).shape[0]
        if self.count == 0:
            raise ArgumentError(f"{self.name}: an empty batch cannot be probed.")
        self.arguments = copy_tensors(arguments)
        if self.count == 1:
            self.count = _COPIES
            self.arguments = map_tensors(_repeat_row, self.arguments)
        dtype = window.raw(*self.arguments).dtype
        if not dtype.is_floating_point:
            raise ArgumentError(
                f"{self.name}: the windows are {str(dtype).removeprefix('torch.')}, and only "
                "numbers with a fraction can be scored and disturbed; attach to a model that takes "
                "the values and makes its tokens inside."
            )
        tensors = self._window_tensors(self.arguments)
        if not tensors:
            raise ArgumentError(
                f"{self.name}: the window that input_arg gives is in no tensor of the arguments: "
                "pass the windows as a tensor, also in a tuple, list, dict or dataclass."
            )
        for tensor in tensors:
            tensor.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)  # noise does not move NaN

    def _window_tensors(self, arguments: Arguments) -> list[Tensor]:
        """Return the window among the arguments, or what a user's function computes it from."""
        target = self.window.raw(*arguments)
        tensors = collect_tensors(arguments)
        memory = target.untyped_storage().data_ptr()
        if any(tensor.untyped_storage().data_ptr() == memory for tensor in tensors):
            tensors = [target]
        return [t for t in tensors if t.shape[:1] == (self.count,) and t.is_floating_point()]

    def disturb(self, index: int, strength: float) -> Arguments:
        """Return arguments with noise added to one window, in units of its mean amplitude."""
        changed: Arguments = copy_tensors(self.arguments)
        generator = torch.Generator().manual_seed(index + 1)
        for tensor in self._window_tensors(changed):
            values = tensor[index]
            noise = torch.randn(values.shape, generator=generator).to(values)
            values += noise * (values.abs().mean() + 1e-2) * strength
        return changed

    def run(
        self,
        arguments: Arguments | None = None,
        *,
        seed: int = 0,
        alter: Alter | None = None,
        gradients: bool = False,
    ) -> Pass:
        """Run the model once, with some activations altered.

        Raises:
            LayoutError: A transform of torch.func hides the windows at a site.
        """
        result, counts = Pass(), Counter[Site]()
        shown: list[tuple[Site, Tensor, int]] = []

        def tap(site: Site, h: Tensor) -> Tensor:
            if torch._C._functorch.is_functorch_wrapped_tensor(h):
                why = "is inside a transform of torch.func, such as vmap, which hides its windows"
                raise layout_error(self.name, {site.name: _describe(site, h.shape, why)})
            key = site, counts[site]
            counts[site] += 1
            shown.append((site, h, h._version))
            if h.requires_grad:
                result.trained.add(site)
            result.calls[key] = h.detach().clone()
            # A copy, as dropout gives: changes in place must not reach the activation itself.
            return h.clone() if alter is None else alter(key, h)

        with restored_afterwards(self.model), self._tapped(tap):
            for module in self.model.modules():
                module.training = self.training and not isinstance(module, _NormBase)
            seed_all_generators(seed)
            args, kwargs = copy_tensors(arguments or self.arguments)
            with torch.set_grad_enabled(gradients):
                returned = self.model.forward(*args, **kwargs)
            result.random_state = torch.get_rng_state()
            for site, h, version in shown:
                site.overwritten |= h._version != version
            for index, output in enumerate(collect_tensors(returned)):
                result.calls[None, index] = output.detach().clone()
        return result

    @contextmanager
    def _tapped(self, tap: Tap) -> Iterator[None]:
        """Show all sites to a tap; those of attached models inside the model are passed on."""
        modulators = [getattr(module, MODULATOR, None) for module in self.model.modules()]
        inner: list[Any] = [each.state for each in modulators if each is not None]
        try:
            for state in inner:
                state.tap = lambda _, h: h
            self.state.tap = tap
            yield
        finally:
            for state in inner:
                state.tap = None

    def is_random(self) -> bool:
        """Return whether the outputs depend on the seed although no site drops."""
        first, second = (self.run(seed=seed).calls for seed in (0, 1))
        return any(
            site is None and not is_same(output, second[None, index])
            for (site, index), output in first.items()
        )

    def find_layouts(self) -> None:
        """Fill in `layouts` and `reached` of the sites.

        Raises:
            LayoutError: Layouts could not be found; the message lists all sites.
        """
        problems: dict[str, str] = {}
        reached: set[Site | None] = set()
        for seed in range(_SEEDS):
            examination = _Examination(self, seed)
            sites = {site for site, _ in examination.base.calls}
            if not sites <= reached:
                reached |= sites
                problems = examination.run() | problems
        if problems:
            raise layout_error(self.name, problems)

    def verify_layouts(self, seed: int) -> dict[str, str]:
        """Check the known layouts; returns why one does not hold, by name of its site."""
        return _Examination(self, seed).run(check_known=True)


class _Examination:
    """One pass over a batch, and what disturbed passes show about its calls."""

    def __init__(self, probe: Probe, seed: int) -> None:
        self.probe, self.seed, self.count = probe, seed, probe.count
        self.base = probe.run(seed=seed)
        self.layouts: dict[CallKey, SiteLayout] = {}  # layouts that explain calls
        self.unmoved: set[CallKey] = set()  # calls that no window changes
        self.mixed: set[CallKey] = set()  # calls that no layout has explained

    def run(self, *, check_known: bool = False) -> dict[str, str]:
        """Let the sites learn the layouts that explain their calls; describe the others.

        With `check_known` only the known layouts of a call are accepted, if it has some.
        """
        problems: dict[str, str] = {}
        candidates: dict[CallKey, list[SiteLayout]] = {}
        for (site, index), h in self.base.calls.items():
            possible = list(list_candidates(h.shape, self.count))
            if site is None:
                candidates[site, index] = possible
                continue
            site.reached = True
            known = site.known_layouts(h.shape, self.count)
            if site.adaptive and site.stated is None:
                candidates[site, index] = known if check_known and known else possible
            elif site.adaptive and h.numel() and not known:
                why = f"does not hold {self.count} windows as stated ({site.stated})"
                problems[site.name] = _describe(site, h.shape, why)
        if any(site for site, _ in candidates):
            self._disturb_windows(candidates)
        for (site, index), h in self.base.calls.items():
            if site is None:
                continue
            if (site, index) in self.layouts:
                learnt = tuple(h.shape), self.layouts[site, index]
                site.layouts += [learnt] if learnt not in site.layouts else []
            elif (site, index) in self.mixed:
                why = self._explain_mixing(site, h.shape)
                problems.setdefault(site.name, _describe(site, h.shape, why))
            elif (site, index) in self.unmoved and not site.known_layouts(h.shape, self.count):
                self._resolve_from_outputs(site, index)
        return problems

    def _disturb_windows(self, candidates: Mapping[CallKey, Sequence[SiteLayout]]) -> None:
        """Disturb windows until every call is explained, or all attempts have been made."""
        generator = torch.Generator().manual_seed(self.seed)
        windows = torch.randperm(self.count, generator=generator)[:_MOST_DISTURBED]
        passes = self._number(windows)
        for strength, cross_talk in _ATTEMPTS:
            remaining = candidates.keys() - self.layouts.keys() - self.unmoved
            if not any(site for site, _ in remaining):
                return
            calls = [(self.probe.disturb(window, strength), None) for window in windows.tolist()]
            for key, rows in self._measure(calls, remaining).items():
                if bool(rows[ANY].any()):
                    layout = find_layout(rows, candidates[key], passes, cross_talk)
                    if layout is None:
                        self.mixed.add(key)
                    else:
                        self.layouts[key] = layout
                elif key not in self.mixed:
                    self.unmoved.add(key)

    def _resolve_from_outputs(self, site: Site, index: int) -> None:
        """Resolve a call that no window moves: whose result changes with rows of it?"""
        shape = self.base.calls[site, index].shape
        outputs = {key: layout for key, layout in self.layouts.items() if key[0] is None}
        windows = torch.arange(min(self.count, _MOST_DISTURBED))
        passes = self._number(windows)
        for layout in list_candidates(shape, self.count):
            owners = layout.owners(self.count)
            rows_of = [(owners == window).nonzero()[:, 0] for window in windows]
            calls = [
                (self.probe.arguments, _add_noise((site, index), layout.dim, rows))
                for rows in rows_of
            ]
            explained = [
                find_layout(rows, [outputs[key]], passes) is not None
                for key, rows in self._measure(calls, outputs).items()
                if bool(rows[ANY].any())
            ]
            if explained and all(explained):
                site.layouts.append((tuple(shape), layout))
                return
        if not site.layouts:
            site.leave_ordinary("depends on no window: its rows cannot be told apart by window")

    def _number(self, windows: Tensor) -> Tensor:
        """Return the pass in which each window of the batch is disturbed; -1 for none."""
        passes = torch.full((self.count,), -1)
        passes[windows] = torch.arange(len(windows))
        return passes

    def _measure(
        self, calls: Sequence[tuple[Arguments, Alter | None]], keys: Collection[CallKey]
    ) -> dict[CallKey, Rows]:
        """Return how far rows moved in passes, for calls that keep their shape in all of them.

        Raises:
            ArgumentError: The model does not take disturbed windows.
        """
        measured: dict[CallKey, list[Rows]] = {}
        for arguments, alter in calls:
            try:
                disturbed = self.probe.run(arguments, seed=self.seed, alter=alter)
            except SACMError:
                raise
            except Exception as error:
                raise ArgumentError(
                    f"{self.probe.name} cannot be probed: it takes this batch as it is, but with "
                    f"disturbed windows it raised {type(error).__name__}: {error} Attach to the "
                    "part of it that takes any values, with input_arg=… if need be."
                ) from error
            if not torch.equal(disturbed.random_state, self.base.random_state):
                return {}  # other random numbers, perhaps of another thread: no evidence
            for key in keys:
                base, other = self.base.calls[key], disturbed.calls.get(key)
                if other is not None and base.shape == other.shape:
                    measured.setdefault(key, []).append(measure_rows(base, other, self.count))
        return {
            key: {dim: torch.stack([rows[dim] for rows in each]) for dim in each[0]}
            for key, each in measured.items()
            if len(each) == len(calls)
        }

    def _explain_mixing(self, site: Site, shape: Sequence[int]) -> str:
        """Say why no layout explains the movements of an activation."""
        if layouts := site.known_layouts(shape, self.count):
            return (
                f"does not follow its layout ({' or '.join(map(str, layouts))}) in this batch of "
                f"{self.count} windows: rows depend on other windows, as when forward sorts, "
                "shuffles, mixes or routes them"
            )
        return f"mixes the rows of the {self.count} probed windows"


def _repeat_row(tensor: Tensor) -> Tensor:
    return tensor.repeat_interleave(_COPIES, 0) if tensor.shape[:1] == (1,) else tensor


def _add_noise(key: CallKey, dim: int, rows: Tensor) -> Alter:
    """Return what adds noise to some rows of one call's activation."""

    def alter(called: CallKey, h: Tensor) -> Tensor:
        if called != key:
            return h.clone()
        noise = torch.randn(h.shape, generator=torch.Generator().manual_seed(7)).to(h)
        where = rows.to(h.device)
        return h.index_add(dim, where, noise.index_select(dim, where))

    return alter


def _describe(site: Site, shape: Sequence[int], why: str) -> str:
    return (
        f"{site.name} ({site.kind}): an activation {list(shape)} {why}; "
        f"state it with site_layouts={{{site.name!r}: SiteLayout(dim=…, fold=…)}}"
    )


def layout_error(model: str, problems: Mapping[str, str]) -> LayoutError:
    """Return one error for all unresolved sites: a sentence by site name, and how to skip them."""
    if len(problems) == 1:
        return LayoutError(
            f"{next(iter(problems.values()))}, or leave this site as ordinary dropout with "
            f"skip={list(problems)}."
        )
    lines = "\n".join(f"  {sentence}" for sentence in problems.values())
    return LayoutError(
        f"{len(problems)} dropout sites of {model} have no known layout:\n{lines}\n"
        f"To leave them all as ordinary dropout: skip={list(problems)}"
    )
