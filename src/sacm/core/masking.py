"""The mask: rates to activations, as one fused operation with straight-through gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sacm.core.distributed import rank
from sacm.core.randomness import random_words
from sacm.errors import ArgumentError


def adaptive_dropout(h: Tensor, rates: Tensor) -> Tensor:
    """Drop entries of `h` `[B, …]` at each sample's own rate `[B]`; training-time only."""
    if rates.dim() != 1 or h.dim() == 0 or h.shape[0] != rates.shape[0]:
        raise ArgumentError(
            f"adaptive_dropout needs h [B, …] and rates [B], got {list(h.shape)} and "
            f"{list(rates.shape)}."
        )
    keep = (1 - rates).view(-1, *(1,) * (h.dim() - 1))
    return masked(h, keep)


def masked(h: Tensor, keep: Tensor, mask_shape: torch.Size | None = None) -> Tensor:
    """Inverted dropout of `h` with keep probabilities `q` that broadcast over it.

    `mask_shape` broadcasts over `h` too: entries that share a mask entry drop together.
    """
    shape = h.shape if mask_shape is None else mask_shape
    if torch.compiler.is_compiling() or h.device.type not in ("cpu", "cuda"):
        return composed(h, keep, torch.rand(shape, device=h.device) < keep)
    return apply_mask(h, keep, draw_mask(h, keep, shape))


def composed(h: Tensor, keep: Tensor, mask: Tensor) -> Tensor:
    """`h (B + q - sg(q)) / q` written out: what a compiler fuses, and what tests compare with."""
    return h * ((mask + keep - keep.detach()) / keep).to(h.dtype)


def apply_mask(h: Tensor, keep: Tensor, mask: Tensor) -> Tensor:
    """`h B / q` for a given boolean mask `B`, with the straight-through gradient of `q`."""
    out: Tensor = _ApplyMask.apply(h, keep, mask)
    return out


@torch.no_grad()
def draw_mask(h: Tensor, keep: Tensor, shape: torch.Size) -> Tensor:
    """`B ~ Bernoulli(q)`, boolean `[shape]`, laid out in memory like `h` when shapes agree.

    Every 64-bit random word gives four 16-bit uniforms; each is compared with an integer threshold
    per sample, so no rate of activation size is ever built.
    """
    uniforms = random_words(-(-shape.numel() // 4), h.device, stream=rank()).view(torch.int16)
    strides = torch.empty_like(h, dtype=torch.int16).stride() if shape == h.shape else None
    uniforms = (
        uniforms[: shape.numel()].view(shape)
        if strides is None
        else uniforms.as_strided(shape, strides)
    )
    # u in [-2^15, 2^15) is kept when u <= threshold: q = 1 keeps all of them. Half precision
    # cannot count to 65536.
    share = keep.to(torch.promote_types(keep.dtype, torch.float32)) * 65536
    threshold = share.round_().sub_(32769).clamp_(min=-32768).to(torch.int16)
    return uniforms.le_(threshold).bool()


class _ApplyMask(torch.autograd.Function):
    """Saves the input and the boolean mask, and nothing else of activation size."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, keep: Tensor, mask: Tensor) -> Tensor:
        ctx.save_for_backward(h if keep.requires_grad else None, keep, mask)
        return _scale(h, keep, mask)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        h, keep, mask = ctx.saved_tensors
        # d out / d h = B / q; gradients are on when a derivative of this derivative is wanted.
        scale = composed if torch.is_grad_enabled() else _scale
        grad_h = scale(grad, keep, mask)
        if not ctx.needs_input_grad[1]:
            return grad_h, None, None
        # d out / d q = h (1 - B / q) / q, summed over what each q covers.
        difference = (grad - grad_h).mul_(h)
        dtype = torch.promote_types(h.dtype, torch.float32)
        grad_keep = difference.to(dtype).sum_to_size(keep.shape) / keep
        return grad_h, grad_keep, None


def _scale(values: Tensor, keep: Tensor, mask: Tensor) -> Tensor:
    """`values * mask / keep` in the dtype of `values`."""
    # int8 converts to floating point in vector registers; bool does not.
    factor = mask.view(torch.int8).to(values.dtype)
    out = factor.mul_(values) if factor.shape == values.shape else factor * values
    return torch.mul(out, 1 / keep, out=out)
