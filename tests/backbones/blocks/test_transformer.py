from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sacm.backbones.blocks.transformer import MLP, EncoderLayer


def carry_over(layer: EncoderLayer, torch_layer: nn.TransformerEncoderLayer) -> None:
    attention = layer.attention
    projections = (attention.query, attention.key, attention.value)
    torch_layer.load_state_dict(
        {
            "self_attn.in_proj_weight": torch.cat([p.weight for p in projections]),
            "self_attn.in_proj_bias": torch.cat([p.bias for p in projections]),
            "self_attn.out_proj.weight": attention.output.weight,
            "self_attn.out_proj.bias": attention.output.bias,
            "linear1.weight": layer.mlp.expand.weight,
            "linear1.bias": layer.mlp.expand.bias,
            "linear2.weight": layer.mlp.contract.weight,
            "linear2.bias": layer.mlp.contract.bias,
            "norm1.weight": layer.attention_norm.weight,
            "norm1.bias": layer.attention_norm.bias,
            "norm2.weight": layer.mlp_norm.weight,
            "norm2.bias": layer.mlp_norm.bias,
        }
    )


def test_layer_equals_torch_post_norm_layer() -> None:
    torch.manual_seed(0)
    layer = EncoderLayer(16, 4, 32, 0.1).eval()
    reference = nn.TransformerEncoderLayer(
        16, 4, 32, dropout=0.1, activation="gelu", batch_first=True
    ).eval()
    carry_over(layer, reference)
    x = torch.randn(3, 7, 16)
    torch.testing.assert_close(layer(x), reference(x), atol=1e-5, rtol=1e-5)


def test_options_go_to_the_attention() -> None:
    torch.manual_seed(0)
    layer = EncoderLayer(16, 4, 32, 0.1).eval()
    x, memory = torch.randn(3, 7, 16), torch.randn(3, 5, 16)
    y = layer.attention_norm(x + layer.attention(x, memory))
    torch.testing.assert_close(layer(x, memory=memory), layer.mlp_norm(y + layer.mlp(y)))


def test_another_attention_takes_the_place() -> None:
    class Reverse(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.flip(1)

    layer = EncoderLayer(16, 4, 32, 0.1, Reverse()).eval()
    x = torch.randn(3, 7, 16)
    y = layer.attention_norm(x + x.flip(1))
    torch.testing.assert_close(layer(x), layer.mlp_norm(y + layer.mlp(y)))


def test_mlp_drops_its_hidden_layer() -> None:
    mlp = MLP(4, 6, 0.5).eval()
    seen: list[Tensor] = []
    mlp.dropout.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    x = torch.randn(2, 4)
    found = mlp(x)
    torch.testing.assert_close(seen[0], F.gelu(mlp.expand(x), approximate="none"))
    torch.testing.assert_close(found, mlp.contract(seen[0]))
