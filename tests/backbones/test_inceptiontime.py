from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from sacm import backbones
from sacm.backbones.base import Backbone
from sacm.backbones.inceptiontime import InceptionModule, InceptionTimeConfig

from .cases import noise

TINY = InceptionTimeConfig(filters=3, bottleneck=4, kernels=(5, 3, 1))


def classifier(channels: int = 2, **settings: object) -> Backbone:
    torch.manual_seed(0)
    return backbones.build(
        "InceptionTime",
        "classification",
        input_len=20,
        channels=channels,
        classes=3,
        size="small",
        **settings,
    )


def test_module_concatenates_convolutions_and_the_pooled_path() -> None:
    module, x = InceptionModule(2, TINY).eval(), noise(4, 2, 11)
    narrow = F.conv1d(x, module.bottleneck.weight)
    paths = [
        F.conv1d(narrow, convolution.weight, padding=kernel // 2)
        for convolution, kernel in zip(module.convolutions, (5, 3, 1), strict=True)
    ]
    extended = F.pad(x, (1, 1), value=-torch.inf)
    pooled = torch.stack([extended[..., i : i + 11] for i in range(3)]).amax(dim=0)
    paths.append(F.conv1d(pooled, module.pooled.weight))
    expected = module.norm(torch.cat(paths, dim=1)).relu()
    torch.testing.assert_close(module(x), expected)


def test_one_channel_needs_no_bottleneck() -> None:
    assert isinstance(InceptionModule(1, TINY).bottleneck, nn.Identity)
    assert InceptionModule(2, TINY).bottleneck.out_channels == 4


def test_skips_span_three_modules() -> None:
    model, x = classifier().eval(), noise(4, 20, 2)
    first, second = model.groups
    z = x.transpose(1, 2)
    with torch.no_grad():
        for group in (first, second):
            start = z
            for module in group.inceptions:
                z = module(z)
            z = F.relu(z + group.skip_norm(group.skip(start)))
        expected = model.output(z.mean(dim=2))
        torch.testing.assert_close(model(x), expected)
    assert len(first.inceptions) == len(second.inceptions) == 3


def test_dropout_acts_before_the_skip_is_added() -> None:
    model, x = classifier(dropout=0.999999).train(), noise(4, 20, 2)
    group = model.groups[0]
    for module in group.modules():  # keep training-mode dropout, fix the statistics
        if isinstance(module, nn.BatchNorm1d):
            module.eval()
    skipped = F.relu(group.skip_norm(group.skip(x.transpose(1, 2))))
    torch.testing.assert_close(group(x.transpose(1, 2)), skipped)
