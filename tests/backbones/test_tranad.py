from __future__ import annotations

import torch
from torch import Tensor

from sacm import backbones
from sacm.backbones.tranad import Passes, TranAD

from .cases import noise


def detector(length: int = 20, *, prepared: bool = True, **settings: object) -> TranAD:
    torch.manual_seed(0)
    model = backbones.build(
        "TranAD", "anomaly", input_len=length, channels=3, size="small", **settings
    )
    if prepared:
        model.prepare(noise(50, length, 3, seed=5))
    return model


def refined_error(passes: Passes) -> Tensor:
    return (passes.refined - passes.scaled).square().mean()


def test_second_decoder_ascends_in_pass_two_and_all_else_descends() -> None:
    model, x = detector(dropout=0.0), noise(4, 20, 3)
    names, parameters = zip(*model.named_parameters(), strict=True)
    plain = torch.autograd.grad(refined_error(model.eval()(x)), parameters, allow_unused=True)
    routed = torch.autograd.grad(refined_error(model.train()(x)), parameters, allow_unused=True)
    for name, one, other in zip(names, plain, routed, strict=True):
        sign = -1 if name.startswith("second_decoder.") else 1
        torch.testing.assert_close(other, sign * one, atol=1e-7, rtol=1e-4)
        assert one.abs().sum() > 0


def test_training_and_evaluation_give_the_same_numbers_without_dropout() -> None:
    model, x = detector(dropout=0.0), noise(4, 20, 3)
    for one, other in zip(model.train()(x), model.eval()(x), strict=True):
        torch.testing.assert_close(one, other)


def test_focus_is_the_error_of_pass_one() -> None:
    model, x = detector().eval(), noise(4, 20, 3)
    with torch.no_grad():
        passes = model(x)
        memory = model.encode(passes.scaled, (passes.first - passes.scaled) ** 2)
        expected = model.second_decoder(model.decoder_tokens(passes.scaled), memory)
    torch.testing.assert_close(passes.refined, expected)
    assert not torch.allclose(passes.refined, passes.second)


def test_windows_are_scaled_by_the_range_of_training_data() -> None:
    model = detector(prepared=False)
    train = 50 + 20 * torch.rand(30, 20, 3, generator=torch.Generator().manual_seed(0))
    model.prepare(train)
    assert torch.equal(model.low, train.flatten(0, 1).min(dim=0).values)
    assert torch.equal(model.high, train.flatten(0, 1).max(dim=0).values)
    scaled = model.eval()(train).scaled
    assert 0 <= scaled.min() <= 1e-6
    assert 0.99 < scaled.max() < 1


def test_loss_shifts_weight_to_pass_two_with_the_epochs() -> None:
    model, x = detector(dropout=0.0).eval(), noise(4, 20, 3)
    passes = model(x)
    first = (passes.first - passes.scaled).square().mean()
    second = (passes.second - passes.scaled).square().mean()
    for epoch, weight in ((1, 0.9), (2, 0.81), (5, 0.59049), (7, 0.5), (100, 0.5)):
        model.set_epoch(epoch)
        expected = weight * (first + second) + (1 - weight) * refined_error(passes)
        torch.testing.assert_close(model.training_loss(x), expected)


def test_epoch_and_range_survive_a_resume() -> None:
    model, twin = detector(), detector(prepared=False)
    model.set_epoch(4)
    twin.load_state_dict(model.state_dict())
    x = noise(4, 20, 3)
    assert twin.epoch == 4
    assert torch.equal(twin.eval().training_loss(x), model.eval().training_loss(x))


def test_scores_average_both_passes() -> None:
    model, x = detector().eval(), noise(4, 20, 3)
    with torch.no_grad():
        v, first, _, refined = model(x)
        expected = ((first - v) ** 2 / 2 + (refined - v) ** 2 / 2).mean(dim=2)
        torch.testing.assert_close(model.anomaly_scores(x), expected)
        torch.testing.assert_close(model.validation_loss(x), expected.mean())
        rebuilt = model.low + first * (model.high - model.low + 1e-4)
        torch.testing.assert_close(
            model.anomaly_scores(x, score="reconstruction"), (rebuilt - x).abs().mean(dim=2)
        )


def test_decoders_do_not_look_ahead_in_their_own_input() -> None:
    decoder = detector().first_decoder.eval()
    tokens, memory = noise(2, 20, 32), noise(2, 20, 32, seed=1)
    changed = tokens.clone()
    changed[:, 12:] += 1
    with torch.no_grad():
        before, after = decoder(tokens, memory), decoder(changed, memory)
    assert torch.equal(before[:, :12], after[:, :12])
    assert not torch.allclose(before[:, 12:], after[:, 12:])
