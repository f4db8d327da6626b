"""The table of torch functions that drop, and what handles a call of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from sacm.inject.functional.attention import handle_attention, handle_multi_head_attention
from sacm.inject.functional.dropout import (
    handle_alpha_dropout,
    handle_dropout,
    handle_native_dropout,
    handle_torch_dropout,
    handle_torch_dropout_inplace,
)

HANDLERS: dict[Any, Callable[..., Any]] = {
    F.dropout: handle_dropout,
    F.dropout1d: handle_dropout,
    F.dropout2d: handle_dropout,
    F.dropout3d: handle_dropout,
    F.alpha_dropout: handle_alpha_dropout,
    F.feature_alpha_dropout: handle_alpha_dropout,
    torch.dropout: handle_torch_dropout,
    torch.feature_dropout: handle_torch_dropout,
    torch.alpha_dropout: handle_torch_dropout,
    torch.feature_alpha_dropout: handle_torch_dropout,
    torch.dropout_: handle_torch_dropout_inplace,
    torch.feature_dropout_: handle_torch_dropout_inplace,
    torch.alpha_dropout_: handle_torch_dropout_inplace,
    torch.feature_alpha_dropout_: handle_torch_dropout_inplace,
    torch.native_dropout: handle_native_dropout,
    F.scaled_dot_product_attention: handle_attention,
    F.multi_head_attention_forward: handle_multi_head_attention,
}
