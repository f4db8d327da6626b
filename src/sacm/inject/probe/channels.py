"""Find the sites whose activations keep the channels of a window apart.

One channel of every window is disturbed; where only one index of a dimension moves, and it is that
of the channel, the dimension holds the channels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from sacm.inject.layout import SiteLayout
from sacm.inject.probe.passes import PassRunner
from sacm.inject.probe.probe import Probe
from sacm.inject.probe.restore import restored_afterwards
from sacm.inject.probe.tree import copy_tensors
from sacm.inject.sites import Site
from sacm.inject.state import Call
from sacm.inject.window_argument import WindowArgument


def find_channel_dims(
    runner: PassRunner, window: WindowArgument, call: Call, sites: Iterable[Site]
) -> None:
    """Fill in `channel_dim` of the sites that keep channels apart; their layouts are known.

    Args:
        runner: Runs the model with a tap at every site.
        window: Finds the window among the arguments.
        call: A call of the model with a batch of any size.
        sites: What to fill in.
    """
    if window.channels < 2:
        return
    probed = sorted({0, window.channels - 1})
    with restored_afterwards(runner.model):
        runner.set_flags(training=False)
        few = Probe(runner, window, {}).choose_batch(call).call
        base = runner.run(few)
        disturbed = [runner.run(_disturb(few, window, channel)) for channel in probed]
    batch = window(few.args, few.kwargs).shape[0]
    for site in sites:
        if len(site.layouts) != 1:  # called in several ways, or never
            continue
        calls = base.calls.get(site, [])
        others = [result.calls.get(site, []) for result in disturbed]
        if not calls or any(len(other) != len(calls) for other in others):
            continue
        layout = site.layouts[0][1]
        found = {
            _find_dim(h, [other[i] for other in others], layout, batch, probed, window.channels)
            for i, h in enumerate(calls)
        }
        site.channel_dim = found.pop() if len(found) == 1 else None


def _disturb(call: Call, window: WindowArgument, channel: int) -> Call:
    """The call with noise on one channel of every window."""
    args, kwargs = copy_tensors((call.args, call.kwargs))
    values = window(args, kwargs)
    part = values[:, :, channel]
    noise = torch.randn(part.shape, generator=torch.Generator().manual_seed(channel)).to(part)
    part += noise * (part.abs().mean() + 1e-2)
    return Call(call.model, args, kwargs)


def _find_dim(
    h: Tensor,
    others: Sequence[Tensor],
    layout: SiteLayout,
    batch: int,
    probed: Sequence[int],
    channels: int,
) -> int | None:
    """The dimension of an activation, unfolded, that holds the channels."""
    if any(other.shape != h.shape for other in others) or not layout.fits(h.shape, batch):
        return None
    split, position = layout.unfold(h.shape, batch)
    changes = [(other != h).view(split) for other in others]
    for dim, size in enumerate(split):
        if dim == position or size != channels:
            continue
        rest = [d for d in range(len(split)) if d != dim]
        moved = [change.permute(dim, *rest).flatten(1).any(dim=1) for change in changes]
        expected = [torch.arange(channels, device=h.device) == channel for channel in probed]
        if all(torch.equal(m, e) for m, e in zip(moved, expected, strict=True)):
            return dim
    return None
