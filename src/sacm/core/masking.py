"""The mask: rates to activations, as one fused operation with straight-through gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sacm.core.distributed import rank
from sacm.core.random_words import random_words
from sacm.core.validation import require_tensor
from sacm.errors import ArgumentError


class Keep(NamedTuple):
    """Keep probabilities, and what every site wants of them: worked out once for all sites."""

    share: Tensor  # q [B], with the graph of the rates
    inverse: Tensor  # 1 / q, broadcasts over the activation
    threshold: Tensor  # of 16-bit uniforms, broadcasts over the activation

    @staticmethod
    def of(share: Tensor) -> Keep:
        """From `q` of any shape."""
        q = share.detach()
        # u in [-2^15, 2^15) is kept when u <= threshold: q = 1 keeps all of them. Half precision
        # cannot count to 65536.
        scaled = q.to(torch.promote_types(q.dtype, torch.float32)) * 65536
        threshold = scaled.round_().sub_(32769).clamp_(min=-32768).to(torch.int16)
        return Keep(share, 1 / q, threshold)

    def along(self, dim: int, dims: int) -> Keep:
        """For activations of so many dimensions whose windows lie along `dim`."""
        rows = [1] * dims
        rows[dim] = -1
        return Keep(self.share, self.inverse.view(rows), self.threshold.view(rows))


def adaptive_dropout(h: Tensor, rates: Tensor) -> Tensor:
    """Drop entries of `h` `[B, …]` at each sample's own rate `[B]`; training-time only.

    A sample of rate 1 becomes zero, and gives no gradient.
    """
    require_tensor("h", h)
    require_tensor("rates", rates)
    if rates.dim() != 1 or h.dim() == 0 or h.shape[0] != rates.shape[0]:
        raise ArgumentError(
            f"adaptive_dropout needs h [B, …] and rates [B], got {list(h.shape)} and "
            f"{list(rates.shape)}."
        )
    all_gone = rates >= 1
    if rates.device.type == "cpu" and not torch.compiler.is_compiling():
        if bool(((rates < 0) | (rates > 1)).any()):
            raise ArgumentError("rates of adaptive_dropout must lie in [0, 1].")
        if not bool(all_gone.any()):  # the usual case, spared a pass over the activation
            return drop_entries(h, Keep.of(1 - rates).along(0, h.dim()))
    out = drop_entries(h, Keep.of(1 - rates.masked_fill(all_gone, 0)).along(0, h.dim()))
    return out.masked_fill(all_gone.view(-1, *[1] * (h.dim() - 1)), 0)


def drop_entries(h: Tensor, keep: Keep, mask_shape: Sequence[int] | None = None) -> Tensor:
    """Inverted dropout of `h` with keep probabilities `q` that broadcast over it.

    `mask_shape` broadcasts over `h` too: entries that share a mask entry drop together.
    """
    shape = h.shape if mask_shape is None else torch.Size(mask_shape)
    if torch.compiler.is_compiling() or h.device.type not in ("cpu", "cuda"):
        q = keep.share.view(keep.inverse.shape)
        return drop_entries_composed(h, q, torch.rand(shape, device=h.device) < q)
    return apply_mask(h, keep, draw_mask(h, keep, shape))


def drop_entries_composed(h: Tensor, q: Tensor, mask: Tensor) -> Tensor:
    """`h (B + q - sg(q)) / q` written out: what a compiler fuses, and what tests compare with."""
    return h * ((mask + q - q.detach()) / q).to(h.dtype)


def apply_mask(h: Tensor, keep: Keep, mask: Tensor) -> Tensor:
    """`h B / q` for a given boolean mask `B`, with the straight-through gradient of `q`."""
    out: Tensor = _ApplyMask.apply(h, keep.share, keep.inverse, mask)
    return out


def draw_mask(h: Tensor, keep: Keep, shape: torch.Size) -> Tensor:
    """`B ~ Bernoulli(q)`, boolean `[shape]`, laid out in memory like `h` when shapes agree.

    Every 64-bit random word gives four 16-bit uniforms; each is compared with an integer threshold
    per sample, so no rate of activation size is ever built.
    """
    uniforms = random_words(-(-shape.numel() // 4), h.device, stream=rank()).view(torch.int16)
    if shape != h.shape:
        uniforms = uniforms[: shape.numel()].view(shape)
    else:
        like = h if h.is_contiguous() else torch.empty_like(h, dtype=torch.int16)
        uniforms = uniforms.as_strided(shape, like.stride())
    # In place and then to bool: a comparison that writes bool is several times slower.
    return uniforms.le_(keep.threshold).bool()


class _ApplyMask(torch.autograd.Function):
    """Saves the input and the boolean mask, and nothing else of activation size."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, share: Tensor, inverse: Tensor, mask: Tensor) -> Tensor:
        ctx.save_for_backward(h if share.requires_grad else None, share, mask)
        ctx.inverse = inverse
        return _scale(h, inverse, mask)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        h, share, mask = ctx.saved_tensors
        # d out / d h = B / q; gradients are on when a derivative of this derivative is wanted.
        if torch.is_grad_enabled():
            grad_h = drop_entries_composed(grad, share.view(ctx.inverse.shape), mask)
        else:
            grad_h = _scale(grad, ctx.inverse, mask)
        if not ctx.needs_input_grad[1]:
            return grad_h, None, None, None
        # d out / d q = h (1 - B / q) / q, summed over what each q covers.
        difference = (grad - grad_h).mul_(h)
        dtype = torch.promote_types(h.dtype, torch.float32)
        covered = difference.to(dtype).sum_to_size(ctx.inverse.shape)
        return grad_h, covered.view(share.shape) / share, None, None


def _scale(values: Tensor, inverse: Tensor, mask: Tensor) -> Tensor:
    """`values * mask / q` in the dtype of `values`."""
    # int8 converts to floating point in vector registers; bool does not.
    factor = mask.view(torch.int8).to(values.dtype)
    out = factor.mul_(values) if factor.shape == values.shape else factor * values
    return torch.mul(out, inverse, out=out)
