"""Apply dropout at each window's own rate: one fused operation, straight-through gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from sacm.errors import ArgumentError

_LARGE = 1 << 14  # from this many words on, NumPy's generator is faster despite its seeding


class Keep(NamedTuple):
    """Keep probabilities and what every site needs of them, computed once for all sites."""

    probability: Tensor  # q = 1 - p [B], with the graph of the rates
    scale: Tensor  # 1 / q, broadcasts over the activation
    highest_kept: Tensor  # int16: random numbers up to this one are kept; broadcasts likewise

    @staticmethod
    def of(probability: Tensor) -> Keep:
        """Compute scale and threshold from `q` of any shape."""
        q = probability.detach()
        # u in [-2^15, 2^15) is kept when u <= highest_kept: q = 1 keeps all of them. Half
        # precision cannot count to 65536.
        scaled = q.to(torch.promote_types(q.dtype, torch.float32)) * 65536
        highest_kept = scaled.round_().sub_(32769).clamp_(min=-32768).to(torch.int16)
        return Keep(probability, 1 / q, highest_kept)

    def along(self, dim: int, dims: int) -> Keep:
        """Return a view for activations of `dims` dimensions whose windows lie along `dim`."""
        rows = [1] * dims
        rows[dim] = -1
        return Keep(self.probability, self.scale.view(rows), self.highest_kept.view(rows))


def adaptive_dropout(h: Tensor, rates: Tensor) -> Tensor:
    """Drop entries of `h` at each sample's own rate; for training only.

    Kept entries are divided by the keep probability, so the expected value stays `h`. Gradients
    reach `h` and, straight through, `rates`.

    Args:
        h: Activation `[B, ...]`.
        rates: Dropout rates `[B]`, each in [0, 1), which is checked on the CPU.

    Example:
        >>> adaptive_dropout(torch.ones(2, 3), torch.tensor([0.0, 0.5]))[0]
        tensor([1., 1., 1.])
    """
    for name, value in (("h", h), ("rates", rates)):
        if not isinstance(value, Tensor):
            raise ArgumentError(f"{name} must be a torch tensor, got {type(value).__name__}.")
    if rates.dim() != 1 or h.dim() == 0 or h.shape[0] != rates.shape[0]:
        raise ArgumentError(
            f"adaptive_dropout needs h [B, …] and rates [B], got {list(h.shape)} and "
            f"{list(rates.shape)}."
        )
    cheap_to_check = rates.device.type == "cpu" and not torch.compiler.is_compiling()
    if cheap_to_check and not bool(((rates >= 0) & (rates < 1)).all()):
        raise ArgumentError("rates of adaptive_dropout must lie in [0, 1).")
    return drop_entries(h, Keep.of(1 - rates).along(0, h.dim()))


def drop_entries(h: Tensor, keep: Keep, mask_shape: Sequence[int] | None = None) -> Tensor:
    """Apply inverted dropout to `h` with keep probabilities `q` that broadcast over it.

    `mask_shape` broadcasts over `h` too: entries that share a mask entry drop together.
    """
    shape = h.shape if mask_shape is None else torch.Size(mask_shape)
    if torch.compiler.is_compiling() or h.device.type not in ("cpu", "cuda"):
        q = keep.probability.view(keep.scale.shape)
        return drop_entries_composed(h, q, torch.rand(shape, device=h.device) < q)
    out: Tensor = ApplyMask.apply(h, keep.probability, keep.scale, draw_mask(h, keep, shape))
    return out


def drop_entries_composed(h: Tensor, q: Tensor, mask: Tensor) -> Tensor:
    """Compute `h (B + q - sg(q)) / q` step by step, for compilers to fuse and tests to compare."""
    return h * ((mask + q - q.detach()) / q).to(h.dtype)


def draw_mask(h: Tensor, keep: Keep, shape: torch.Size) -> Tensor:
    """Draw `B ~ Bernoulli(q)`: boolean `[shape]`, laid out in memory like `h` if shapes agree.

    Every 64-bit random word gives four 16-bit uniforms; each is compared with an integer threshold
    per sample, so no rate of activation size is ever built.
    """
    rank = dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
    words = draw_random_words(-(-shape.numel() // 4), h.device, stream=rank)
    uniforms = words.view(torch.int16)
    if shape != h.shape:
        uniforms = uniforms[: shape.numel()].view(shape)
    else:
        like = h if h.is_contiguous() else torch.empty_like(h, dtype=torch.int16)
        # `like` is dense and does not overlap itself: its strides address exactly `numel` entries,
        # and there are at least that many uniforms. So this view stays inside the buffer.
        uniforms = uniforms.as_strided(shape, like.stride())
    # In place and then to bool: a comparison that writes bool is several times slower.
    return uniforms.le_(keep.highest_kept).bool()


class ApplyMask(torch.autograd.Function):
    """`h B / q` for a boolean mask `B`, with the straight-through gradient of `q`.

    Saves the input and the mask, and nothing else of activation size.
    """

    @staticmethod
    def forward(ctx: Any, h: Tensor, probability: Tensor, scale: Tensor, mask: Tensor) -> Tensor:
        ctx.save_for_backward(h if probability.requires_grad else None, probability, mask)
        ctx.scale = scale
        return _multiply(h, scale, mask)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        h, probability, mask = ctx.saved_tensors
        # d out / d h = B / q; gradients are on when a derivative of this derivative is wanted.
        if torch.is_grad_enabled():
            grad_h = drop_entries_composed(grad, probability.view(ctx.scale.shape), mask)
        else:
            grad_h = _multiply(grad, ctx.scale, mask)
        if not ctx.needs_input_grad[1]:
            return grad_h, None, None, None
        # d out / d q = h (1 - B / q) / q, summed over what each q covers.
        difference = (grad - grad_h).mul_(h)
        dtype = torch.promote_types(h.dtype, torch.float32)
        covered = difference.to(dtype).sum_to_size(ctx.scale.shape)
        return grad_h, covered.view(probability.shape) / probability, None, None


def _multiply(values: Tensor, scale: Tensor, mask: Tensor) -> Tensor:
    """Compute `values * mask * scale` in the dtype of `values`."""
    # int8 converts to floating point in vector registers; bool does not.
    factor = mask.view(torch.int8).to(values.dtype)
    out = factor.mul_(values) if factor.shape == values.shape else factor * values
    return torch.mul(out, scale, out=out)


def draw_random_words(count: int, device: torch.device, *, stream: int = 0) -> Tensor:
    """Draw `[count]` int64 words in which every bit is random.

    All randomness comes from torch's default generators, so that `torch.manual_seed` and
    activation checkpointing work as usual. Another `stream` (the rank of the process) gives
    independent words from the same seed.
    """
    if not stream and (device.type != "cpu" or count < _LARGE):
        return torch.empty(count, dtype=torch.int64, device=device).random_(-(2**63), None)
    seed = [int(torch.empty((), dtype=torch.int64).random_()), stream]
    if device.type == "cpu":
        # SFC64 fills memory about three times as fast as torch's Mersenne Twister.
        return torch.from_numpy(np.random.SFC64(seed).random_raw(count).view(np.int64))
    mixed = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> 1)
    generator = torch.Generator(device).manual_seed(mixed)
    words = torch.empty(count, dtype=torch.int64, device=device)
    return words.random_(-(2**63), None, generator=generator)
