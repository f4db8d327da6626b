"""The layout probe: disturb single windows and watch which rows of every site move.

One pass with the batch as it is, and one for each of some windows that are disturbed alone. A row
belongs to the window that moves it. Sites whose input does not depend on any window are resolved
from the other side: disturb rows of the activation and watch whose result moves.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from sacm.errors import ArgumentError, SACMError
from sacm.inject.layout import SiteLayout
from sacm.inject.probe.batch import ProbeBatch, take_batch
from sacm.inject.probe.infer import ANY, FAINT, find_layout, list_candidates, measure_rows
from sacm.inject.probe.run import Call, CallKey, PassRunner, Visit
from sacm.inject.sites import Site
from sacm.inject.window import WindowArgument

# Strength of a disturbance, and the cross-talk between windows that counts as none. A choice made
# for the whole batch at once (the lags with the highest mean correlation) may flip under a strong
# disturbance of one window and move all of them; a weak one does not flip it.
_ATTEMPTS = ((1.0, 0.0), (1e-3, FAINT), (1.0, FAINT))
_MOST_DISTURBED = 8  # windows of a batch that are disturbed, one by one
_SEEDS = 3  # tried to reach all sites where training leaves out layers at random

Rows = dict[int, Tensor]  # movements [passes, rows] by dimension


def find_layouts(runner: PassRunner, window: WindowArgument, call: Call) -> dict[str, str]:
    """Fill in `layouts` and `reached` of the sites.

    Args:
        runner: Runs the model with a tap at every site.
        window: Finds the window among the arguments.
        call: A call of the model with a batch of any size.

    Returns:
        By name of a site, why its layout could not be found.
    """
    batch = take_batch(call, window)
    problems: dict[str, str] = {}
    reached: set[Site | None] = set()
    for seed in range(_SEEDS):
        examination = _Examination(runner, batch, seed)
        sites = {site for site, _ in examination.base.calls}
        if not sites <= reached:
            reached |= sites
            problems = examination.run() | problems
    return problems


def verify_layouts(
    runner: PassRunner, window: WindowArgument, call: Call, seed: int
) -> dict[str, str]:
    """Check the known layouts on another batch, and find those of new activations.

    Returns:
        By name of a site, why its layout does not hold.
    """
    return _Examination(runner, take_batch(call, window), seed).run(check_known=True)


class _Examination:
    """One pass over a batch, and what disturbed passes show about its calls."""

    def __init__(self, runner: PassRunner, batch: ProbeBatch, seed: int) -> None:
        self.runner, self.batch, self.seed = runner, batch, seed
        self.base = runner.run(batch.call, seed=seed)
        self.layouts: dict[CallKey, SiteLayout] = {}  # layouts that explain calls
        self.unmoved: set[CallKey] = set()  # calls that no window changes
        self.mixed: set[CallKey] = set()  # calls that no layout explains

    def run(self, *, check_known: bool = False) -> dict[str, str]:
        """Let the sites learn the layouts that explain their calls; describe the others.

        Args:
            check_known: Accept only the known layouts of a call that has some.
        """
        problems: dict[str, str] = {}
        candidates: dict[CallKey, list[SiteLayout]] = {}
        count = self.batch.count
        for (site, index), h in self.base.calls.items():
            possible = list(list_candidates(h.shape, count))
            if site is None:
                candidates[site, index] = possible
                continue
            site.reached = True
            known = site.known_layouts(h.shape, count)
            if site.adaptive and site.stated is None:
                candidates[site, index] = list(known) if check_known and known else possible
            elif site.adaptive and h.numel() and not known:
                why = f"does not hold {count} windows as stated ({site.stated})"
                problems[site.name] = site.describe_problem(h.shape, why)
        if any(site for site, _ in candidates):
            self._disturb_windows(candidates)
        for (site, index), h in self.base.calls.items():
            if site is None:
                continue
            if (site, index) in self.layouts:
                site.learn(h.shape, self.layouts[site, index])
            elif (site, index) in self.mixed:
                why = _describe_mixing(site, h.shape, count)
                problems.setdefault(site.name, site.describe_problem(h.shape, why))
            elif (site, index) in self.unmoved and not site.known_layouts(h.shape, count):
                self._resolve_from_outputs(site, index)
        return problems

    def _disturb_windows(self, candidates: dict[CallKey, list[SiteLayout]]) -> None:
        """Disturb windows until every call is explained, or all attempts have been made."""
        remaining = dict(candidates)
        generator = torch.Generator().manual_seed(self.seed)
        windows = torch.randperm(self.batch.count, generator=generator)[:_MOST_DISTURBED]
        passes = self._number(windows)
        for strength, cross_talk in _ATTEMPTS:
            if not any(site for site, _ in remaining):
                return
            calls = [(self.batch.disturb(window, strength), None) for window in windows.tolist()]
            for key, rows in self._measure(calls, remaining).items():
                if bool(rows[ANY].any()):
                    layout = find_layout(rows, remaining[key], passes, cross_talk)
                    if layout is None:
                        self.mixed.add(key)
                        continue
                    self.layouts[key] = layout
                    self.mixed.discard(key)
                elif key in self.mixed:
                    continue
                else:
                    self.unmoved.add(key)
                del remaining[key]

    def _resolve_from_outputs(self, site: Site, index: int) -> None:
        """Resolve a call that no window moves: whose result changes with rows of it?"""
        shape = self.base.calls[site, index].shape
        outputs = {key: layout for key, layout in self.layouts.items() if key[0] is None}
        windows = torch.arange(min(self.batch.count, _MOST_DISTURBED))
        passes = self._number(windows)
        for layout in list_candidates(shape, self.batch.count):
            owners = layout.owners(self.batch.count)
            rows_of = [(owners == window).nonzero()[:, 0] for window in windows]
            calls = [
                (self.batch.call, _add_noise((site, index), layout.dim, rows)) for rows in rows_of
            ]
            explained = [
                find_layout(rows, [outputs[key]], passes) is not None
                for key, rows in self._measure(calls, outputs).items()
                if bool(rows[ANY].any())
            ]
            if explained and all(explained):
                site.learn(shape, layout)
                return
        if not site.layouts:
            site.leave_ordinary("depends on no window: its rows cannot be told apart by window")

    def _number(self, windows: Tensor) -> Tensor:
        """Return the pass in which each window of the batch is disturbed; -1 for none."""
        passes = torch.full((self.batch.count,), -1)
        passes[windows] = torch.arange(len(windows))
        return passes

    def _measure(
        self, calls: Sequence[tuple[Call, Visit | None]], keys: Collection[CallKey]
    ) -> dict[CallKey, Rows]:
        """Return how far rows moved in passes, for calls that keep their shape in all of them.

        Raises:
            ArgumentError: The model does not take disturbed windows.
        """
        measured: dict[CallKey, list[Rows]] = {}
        for call, alter in calls:

            def visit(key: CallKey, h: Tensor, alter: Visit | None = alter) -> Tensor | None:
                expected = self.base.calls.get(key)
                if expected is not None and key in keys and expected.shape == h.shape:
                    rows = measure_rows(expected, h, self.batch.count)
                    measured.setdefault(key, []).append(rows)
                return None if alter is None else alter(key, h)

            try:
                state = self.runner.run(call, seed=self.seed, visit=visit).random_state
            except SACMError:
                raise
            except Exception as error:
                raise ArgumentError(
                    f"{type(call.model).__name__} cannot be probed: it takes this batch as it is, "
                    f"but with disturbed windows it raised {type(error).__name__}: {error} Attach "
                    "to the part of it that takes any values, with input_arg=… if need be."
                ) from error
            if not torch.equal(state, self.base.random_state):
                return {}  # other random numbers, perhaps of another thread: no evidence
        return {
            key: {dim: torch.stack([rows[dim] for rows in each]) for dim in each[0]}
            for key, each in measured.items()
            if len(each) == len(calls)
        }


def _add_noise(key: CallKey, dim: int, rows: Tensor) -> Visit:
    """Return a visitor that adds noise to some rows of one call's activation."""

    def alter(called: CallKey, h: Tensor) -> Tensor | None:
        if called != key:
            return None
        noise = torch.randn(h.shape, generator=torch.Generator().manual_seed(7)).to(h)
        where = rows.to(h.device)
        return h.index_add(dim, where, noise.index_select(dim, where))

    return alter


def _describe_mixing(site: Site, shape: Sequence[int], windows: int) -> str:
    """Say why no layout explains the movements of an activation."""
    if not any(list_candidates(shape, windows)):
        return (
            f"has no dimension that holds the {windows} probed windows, as when forward pads the "
            "batch or takes it in parts"
        )
    if layouts := site.known_layouts(shape, windows):
        return (
            f"does not follow its layout ({' or '.join(map(str, layouts))}) in this batch of "
            f"{windows} windows: rows depend on other windows, as when forward sorts, shuffles, "
            "mixes or routes them"
        )
    return f"mixes the rows of the {windows} probed windows"
