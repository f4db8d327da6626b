"""Networks for images of timm and torchvision, with windows folded to small images."""

from __future__ import annotations

from typing import Any

from torch import nn

from benchmarks.third_party.case import (
    CHANNELS,
    AsImage,
    Case,
    Configuration,
    Configurations,
    make_windows,
)

SIDE = 32
TIMM: dict[str, dict[str, Any]] = {
    "vit_tiny_patch16_224": {"img_size": SIDE, "patch_size": 8, "depth": 2, "proj_drop_rate": 0.2},
    "vit_tiny_patch16_224 attention": {
        "img_size": SIDE,
        "patch_size": 8,
        "depth": 2,
        "attn_drop_rate": 0.2,
        "pos_drop_rate": 0.2,
    },
    "vit_tiny_patch16_224 drop path": {
        "img_size": SIDE,
        "patch_size": 8,
        "depth": 2,
        "drop_path_rate": 0.3,
        "drop_rate": 0.2,
    },
    "vit_tiny_patch16_224 patch drop": {
        "img_size": SIDE,
        "patch_size": 8,
        "depth": 2,
        "patch_drop_rate": 0.3,
        "proj_drop_rate": 0.2,
    },
    "deit_tiny_patch16_224": {"img_size": SIDE, "patch_size": 8, "depth": 2, "proj_drop_rate": 0.2},
    "mixer_s32_224": {"img_size": SIDE, "patch_size": 8, "num_blocks": 1, "proj_drop_rate": 0.2},
    "gmlp_ti16_224": {"img_size": SIDE, "patch_size": 8, "num_blocks": 1, "drop_rate": 0.2},
    "resnet10t": {"drop_rate": 0.2},
    "resnet10t drop path": {"drop_rate": 0.2, "drop_path_rate": 0.3},
    "mobilenetv3_small_050": {"drop_rate": 0.2},
    "efficientnet_lite0": {"drop_rate": 0.2, "drop_path_rate": 0.2},
    "convnext_atto": {"drop_rate": 0.2, "drop_path_rate": 0.2},
    "poolformer_s12": {"drop_rate": 0.2, "proj_drop_rate": 0.2},
    "xcit_nano_12_p16_224": {"img_size": SIDE, "depth": 2, "proj_drop_rate": 0.2},
}
TORCHVISION = ("squeezenet1_1", "mobilenet_v3_small", "alexnet", "shufflenet_v2_x0_5")


def as_image(network: nn.Module, side: int) -> Case:
    return Case(AsImage(network, side), (make_windows(CHANNELS, side * side),))


def build_timm(name: str) -> Case:
    import timm

    return as_image(timm.create_model(name.split()[0], num_classes=4, **TIMM[name]), SIDE)


def build_torchvision(name: str) -> Case:
    import torchvision.models

    return as_image(getattr(torchvision.models, name)(num_classes=4), 64)


def build_vit() -> Case:
    from torchvision.models import VisionTransformer

    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "mlp_dim": 16, "num_classes": 4}
    network = VisionTransformer(SIDE, 8, dropout=0.2, attention_dropout=0.2, **sizes)
    return as_image(network, SIDE)


def build_swin() -> Case:
    from torchvision.models import SwinTransformer

    network = SwinTransformer(
        patch_size=[4, 4],
        embed_dim=8,
        depths=[1, 1],
        num_heads=[2, 2],
        window_size=[4, 4],
        dropout=0.2,
        attention_dropout=0.2,
        stochastic_depth_prob=0.2,
        num_classes=4,
    )
    return as_image(network, SIDE)


def configurations() -> Configurations:
    import timm  # noqa: F401  # so that a missing library is known here
    import torchvision  # noqa: F401

    for name in TIMM:
        yield Configuration("timm", name, lambda n=name: build_timm(n))
    for name in TORCHVISION:
        yield Configuration("torchvision", name, lambda n=name: build_torchvision(n))
    yield Configuration("torchvision", "VisionTransformer", build_vit)
    yield Configuration("torchvision", "SwinTransformer", build_swin)
