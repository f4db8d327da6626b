"""The table of torch functions that drop, and what handles a call of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from sacm.inject.functional.attention import handle_attention, handle_multi_head_attention
from sacm.inject.functional.calls import OwnerCalls
from sacm.inject.functional.dropout import (
    handle_dropout,
    handle_torch_dropout,
    handle_torch_dropout_inplace,
)

_ALPHA = "not covered: alpha dropout keeps mean and variance by its own formula"
_NATIVE = "not covered: returns its mask, which may be used for something else"


def list_alpha_dropout(owner: OwnerCalls, func: Any, *args: Any, **kwargs: Any) -> Any:
    """List alpha dropout as a site that stays ordinary, and call it."""
    owner.next_site(func.__name__).leave_ordinary(_ALPHA)
    return func(*args, **kwargs)


def list_native_dropout(owner: OwnerCalls, func: Any, *args: Any, **kwargs: Any) -> Any:
    """List `torch.native_dropout` as a site that stays ordinary, and call it."""
    owner.next_site(func.__name__).leave_ordinary(_NATIVE)
    return func(*args, **kwargs)


HANDLERS: dict[Any, Callable[..., Any]] = {
    F.dropout: handle_dropout,
    F.dropout1d: handle_dropout,
    F.dropout2d: handle_dropout,
    F.dropout3d: handle_dropout,
    torch.dropout: handle_torch_dropout,
    torch.dropout_: handle_torch_dropout_inplace,
    torch.feature_dropout: handle_torch_dropout,
    torch.feature_dropout_: handle_torch_dropout_inplace,
    F.scaled_dot_product_attention: handle_attention,
    F.multi_head_attention_forward: handle_multi_head_attention,
    F.alpha_dropout: list_alpha_dropout,
    F.feature_alpha_dropout: list_alpha_dropout,
    torch.alpha_dropout: list_alpha_dropout,
    torch.alpha_dropout_: list_alpha_dropout,
    torch.feature_alpha_dropout: list_alpha_dropout,
    torch.feature_alpha_dropout_: list_alpha_dropout,
    torch.native_dropout: list_native_dropout,
}
