"""The layout probe: disturb single windows and watch which rows of every site move.

One pass with the batch as it is, and one for each of some windows that are disturbed alone. A row
belongs to the window that moves it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from sacm.errors import ArgumentError, LayoutError, SACMError
from sacm.inject.restore import collect_tensors, copy_tensors, is_same, restored_afterwards
from sacm.inject.sites import ModulationState, Site, SiteLayout
from sacm.inject.window import Arguments, WindowArgument

_NOISE = 1e-5  # movements this much smaller than the largest are rounding, not dependence
_FAINT = 0.1  # a part still belongs to a window if no other moves it by more than this share
_COMMON = 0.5  # the same for windows that move all others alike, as a mean over the batch does
_ALIKE = 0.2  # of the largest movement

# Strength of a disturbance, and the cross-talk between windows that counts as none. A choice made
# for the whole batch at once (the lags with the highest mean correlation) may flip under a strong
# disturbance of one window and move all of them; a weak one does not flip it.
_ATTEMPTS = ((1.0, 0.0), (1e-3, _FAINT), (1.0, _FAINT))
_MOST_DISTURBED = 8  # windows of a batch that are disturbed, one by one
_COPIES = 3  # of a single window: there must be another one to tell it from
_SEEDS = 3  # tried to reach all sites where training leaves out layers at random

Call = tuple[Site, int]  # a site and the position among its calls


class Probe:
    """Runs an attached model on copies of one batch, with single windows disturbed.

    The arguments are those of a call with a batch of any size; a single window is repeated.
    """

    def __init__(
        self, model: nn.Module, arguments: Arguments, window: WindowArgument, state: ModulationState
    ) -> None:
        self.model, self.window, self.state = model, window, state
        self.name = type(model).__name__
        self.outputs: list[Tensor] = []  # of the last run
        self.random_state = torch.empty(0)  # after it; equal if as many random numbers were drawn
        self.count = window(*arguments).shape[0]
        if self.count == 0:
            raise ArgumentError(f"{self.name}: an empty batch cannot be probed.")
        self.arguments: Arguments = copy_tensors(arguments)
        if self.count == 1:
            self.count = _COPIES
            self.arguments = copy_tensors(arguments, _repeat_row)
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

    def run(self, arguments: Arguments | None = None, *, seed: int = 0) -> dict[Call, Tensor]:
        """Run the model once in training mode; returns the activations of all calls."""
        calls: dict[Call, Tensor] = {}
        counts = Counter[Site]()
        shown: list[tuple[Site, Tensor, int]] = []

        def tap(site: Site, h: Tensor) -> Tensor:
            calls[site, counts[site]] = h.detach().clone()
            counts[site] += 1
            shown.append((site, h, h._version))
            # A copy, as dropout gives: changes in place must not reach the activation itself.
            return h.clone()

        with restored_afterwards(self.model, seed=seed), torch.no_grad():
            for module in self.model.modules():
                module.training = not isinstance(module, _NormBase)
            args, kwargs = copy_tensors(arguments or self.arguments)
            self.state.tap = tap
            try:
                returned = self.model.forward(*args, **kwargs)
            finally:
                self.state.tap = None
            for site, h, version in shown:
                site.overwritten |= h._version != version
            self.outputs = [output.detach().clone() for output in collect_tensors(returned)]
            self.random_state = torch.get_rng_state()
        return calls

    def find_randomness(self) -> None:
        """Find out whether the outputs depend on the seed although no site drops."""
        self.run(seed=0)
        first, _ = self.outputs, self.run(seed=1)
        self.state.is_random = not all(map(is_same, first, self.outputs))

    def find_layouts(self, seeds: Sequence[int] = range(_SEEDS)) -> None:
        """Fill in `layouts` and `reached` of the sites, or raise one LayoutError for all.

        Layouts that are known are checked.
        """
        problems: dict[str, str] = {}
        reached: set[Site] = set()
        for seed in seeds:
            base = self.run(seed=seed)
            if not {site for site, _ in base} <= reached:
                reached |= {site for site, _ in base}
                problems = self._examine(base, seed) | problems
        if problems:
            lines = "\n".join(f"  {sentence}" for sentence in problems.values())
            raise LayoutError(
                f"{len(problems)} dropout site(s) of {self.name} have no known layout:\n{lines}\n"
                f"To leave them as ordinary dropout: skip={list(problems)}"
            )

    def _examine(self, base: Mapping[Call, Tensor], seed: int) -> dict[str, str]:
        """Let the sites learn layouts, or check those that they know; describe other calls."""
        problems: dict[str, str] = {}
        candidates: dict[Call, list[SiteLayout]] = {}
        for (site, index), h in base.items():
            site.reached = True
            known = site.known_layouts(h.shape, self.count)
            if site.adaptive and site.stated is None:
                candidates[site, index] = known or list(list_candidates(h.shape, self.count))
            elif site.adaptive and h.numel() and not known:
                why = f"does not hold {self.count} windows as stated ({site.stated})"
                problems[site.name] = _describe(site, h.shape, why)
        for (site, index), moves in self._disturb_windows(base, seed, candidates).items():
            if moves:
                why = (
                    f"mixes the rows of the {self.count} probed windows: they depend on other "
                    "windows, as when forward sorts, shuffles or routes them"
                )
                problems.setdefault(site.name, _describe(site, base[site, index].shape, why))
            elif not site.layouts and site.name not in problems:
                site.leave_ordinary("depends on no window that input_arg gives")
        return problems

    def _disturb_windows(
        self,
        base: Mapping[Call, Tensor],
        seed: int,
        candidates: Mapping[Call, Sequence[SiteLayout]],
    ) -> dict[Call, bool]:
        """Let sites learn layouts that explain calls; returns whether windows move the others."""
        random_state = self.random_state
        generator = torch.Generator().manual_seed(seed)
        windows = torch.randperm(self.count, generator=generator)[:_MOST_DISTURBED]
        unexplained: dict[Call, bool] = {}
        remaining = list(candidates)
        for strength, cross_talk in _ATTEMPTS:
            passes = []
            for window in windows.tolist() if remaining else ():
                passes.append(self._run_disturbed(window, strength, seed))
                if self.state.is_random and not torch.equal(self.random_state, random_state):
                    return {}  # other random numbers, also of another thread: no evidence
            for call in remaining:
                h, others = base[call], [calls.get(call) for calls in passes]
                if any(other is None or other.shape != h.shape for other in others):
                    continue
                changes = [movement(h, other) for other in others if other is not None]
                unexplained[call] = unexplained.get(call, False) or any(c.any() for c in changes)
                for layout in candidates[call]:
                    moved = torch.stack([layout.measure(each, self.count) for each in changes])
                    if explains(moved, windows, cross_talk):
                        learnt = tuple(h.shape), layout
                        if learnt not in call[0].layouts:
                            call[0].layouts.append(learnt)
                        del unexplained[call]
                        break
            remaining = [call for call, moves in unexplained.items() if moves]
        return unexplained

    def _run_disturbed(self, window: int, strength: float, seed: int) -> dict[Call, Tensor]:
        """Run the model with noise added to one window, in units of its mean amplitude."""
        changed: Arguments = copy_tensors(self.arguments)
        generator = torch.Generator().manual_seed(window + 1)
        for tensor in self._window_tensors(changed):
            values = tensor[window]
            noise = torch.randn(values.shape, generator=generator).to(values)
            values += noise * (values.abs().mean() + 1e-2) * strength
        try:
            return self.run(changed, seed=seed)
        except SACMError:
            raise
        except Exception as error:
            raise ArgumentError(
                f"{self.name} cannot be probed: it takes this batch as it is, but with disturbed "
                f"windows it raised {type(error).__name__}: {error} Attach to the part of it that "
                "takes any values, with input_arg=… if need be."
            ) from error


def _repeat_row(tensor: Tensor) -> Tensor:
    return tensor.repeat_interleave(_COPIES, 0) if tensor.shape[:1] == (1,) else tensor.clone()


def _describe(site: Site, shape: Sequence[int], why: str) -> str:
    return (
        f"{site.name} ({site.kind}): an activation {list(shape)} {why}; "
        f"state it with site_layouts={{{site.name!r}: SiteLayout(dim=…, fold=…)}}"
    )


def movement(base: Tensor, other: Tensor) -> Tensor:
    """Return how far each entry of an activation moved, same shape; rounding counts as 0."""
    if not base.numel():
        return torch.zeros(1)
    change = (torch.nan_to_num(other) - torch.nan_to_num(base)).abs().cpu().double()
    return change.masked_fill(change <= _NOISE * change.max(), 0.0)


def list_candidates(shape: Sequence[int], windows: int) -> Iterator[SiteLayout]:
    """Return every layout that could hold `windows` windows in this shape; the usual ones first."""
    for dim, size in enumerate(shape):
        if 0 not in shape and size % windows == 0:
            fold = size // windows
            yield SiteLayout(dim, fold)
            if fold > 1:
                yield SiteLayout(dim, fold, batch_major=False)


def explains(moved: Tensor, windows: Tensor, cross_talk: float = 0.0) -> bool:
    """Return whether every disturbed window moved its own part of an activation and no other.

    `moved` `[passes, B]` is how far the part of each window moved, `windows` `[passes]` the window
    that was disturbed. Cross-talk, as by a scale of the whole batch, is small beside what the same
    window does to its own part, or alike in all parts.
    """
    column = windows.unsqueeze(1)
    own, foreign = moved.gather(1, column), moved.scatter(1, column, 0.0)
    limit = torch.zeros(())
    if cross_talk:
        middle = moved.scatter(1, column, torch.nan).nanmedian(dim=1, keepdim=True).values
        common = middle > _ALIKE * foreign.amax(dim=1, keepdim=True)
        largest = torch.maximum(own, torch.zeros_like(moved[:1]).scatter(1, column.T, own.T))
        limit = torch.where(common, _COMMON, cross_talk) * largest
    return bool((own > 0).any()) and bool((foreign <= limit).all())
