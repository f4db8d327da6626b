"""Resolve sites whose input no window moves: disturb their output and watch the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sacm.inject.layout import SiteLayout
from sacm.inject.probe.batch import ProbeBatch
from sacm.inject.probe.infer_layout import find_layout, list_candidates, measure_rows, movement
from sacm.inject.probe.passes import Pass, PassRunner
from sacm.inject.sites import Site


def find_readable_outputs(base: Pass, disturbed: Sequence[Pass]) -> list[tuple[int, SiteLayout]]:
    """Return the outputs (index, layout) in which the part of every window is known."""
    readable = []
    for index, output in enumerate(base.outputs):
        others = [p.outputs[index] for p in disturbed if len(p.outputs) > index]
        changes = [movement(output, other) for other in others if other.shape == output.shape]
        if len(changes) == len(disturbed) and all(bool(change.any()) for change in changes):
            layout = find_layout(changes)
            if layout is not None:
                readable.append((index, layout))
    return readable


@dataclass
class OutputSide:
    """A pass, and the outputs in which the part of every window is known."""

    runner: PassRunner
    batch: ProbeBatch
    seed: int
    base: Pass
    readable: Sequence[tuple[int, SiteLayout]]

    def find_layout(self, site: Site, index: int) -> SiteLayout | None:
        """Return the layout under which each window's rows change that window's result alone."""
        shape = self.base.calls[site][index].shape
        for layout in list_candidates(shape, self.batch.count):
            if self.readable and self._explains(site, index, layout):
                return layout
        return None

    def has_effect(self, site: Site, index: int) -> bool:
        """Return whether anything that the model returns changes with this call's activation."""
        rows = torch.arange(self.base.calls[site][index].shape[0])
        outputs = self._run_disturbed(site, index, 0, rows)
        pairs = zip(self.base.outputs, outputs, strict=False)
        return len(outputs) != len(self.base.outputs) or any(
            before.shape != after.shape or bool(movement(before, after).any())
            for before, after in pairs
        )

    def _explains(self, site: Site, index: int, layout: SiteLayout) -> bool:
        """Return whether disturbing the rows of each window moves that window's result alone."""
        owners = layout.owners(self.batch.count)
        for window in range(self.batch.count):
            rows = (owners == window).nonzero()[:, 0]
            outputs = self._run_disturbed(site, index, layout.dim, rows)
            changes = [movement(self.base.outputs[i], outputs[i]) for i, _ in self.readable]
            if not any(bool(change.any()) for change in changes):
                return False
            for change, (_, where) in zip(changes, self.readable, strict=True):
                touched = measure_rows(change, where.dim) > 0
                if bool((touched & (where.owners(self.batch.count) != window)).any()):
                    return False
        return True

    def _run_disturbed(self, site: Site, index: int, dim: int, rows: Tensor) -> list[Tensor]:
        """Run the model with noise in some rows of one call's activation."""

        def alter(at: Site, call: int, h: Tensor) -> Tensor | None:
            if at is not site or call != index:
                return None
            noise = torch.randn(h.shape, generator=torch.Generator().manual_seed(7))
            where = rows.to(h.device)
            noise = noise.to(h.device, h.dtype).index_select(dim, where)
            return h.index_add(dim, where, noise)

        return self.runner.run(self.batch.call, seed=self.seed, alter=alter).outputs
