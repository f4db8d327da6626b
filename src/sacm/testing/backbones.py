"""`check_backbone`: what every network of this package, and of plug-ins, must hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves

from sacm.backbones.base import Backbone, DetectorNetwork, ForecastNetwork
from sacm.backbones.registry import BACKBONES, BackboneEntry, build, entry
from sacm.inject.attach import attach, detach
from sacm.types import TaskName

SHAPES = ((1, 96, 24, 3), (2, 99, 13, 1), (2, 24, 60, 24))  # batch, length, horizon, channels


def require(condition: Any, sentence: str) -> None:
    """Raise an AssertionError with the sentence, unless the condition holds."""
    if not bool(condition):
        raise AssertionError(f"{sentence}.")


@contextmanager
def checking(subject: str) -> Iterator[None]:
    """Turn errors into AssertionErrors that name the subject; keep the random numbers of others."""
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        except Exception as error:
            kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            raise AssertionError(f"{subject}: {kind}{error}") from error


def windows(batch: int, *, length: int = 96, channels: int = 3, seed: int = 0) -> Tensor:
    """Make sines of random period and phase with noise, `[B, L, C]`."""
    generator = torch.Generator().manual_seed(seed)
    time = torch.arange(length)[None, :, None]
    period = 6 + 20 * torch.rand(batch, 1, channels, generator=generator)
    phase = 6.28 * torch.rand(batch, 1, channels, generator=generator)
    noise = 0.3 * torch.randn(batch, length, channels, generator=generator)
    return torch.sin(6.28 * time / period + phase) + noise


def are_finite(tensors: Iterable[Tensor | None]) -> bool:
    """Return whether all values of all tensors are finite."""
    return all(bool(tensor.isfinite().all()) for tensor in tensors if tensor is not None)


def are_close(outputs: Sequence[Tensor], expected: Sequence[Tensor], tolerance: float = 0) -> bool:
    """Compare two lists of tensors, absolutely and relatively; 0 asks for equality."""
    pairs = zip(outputs, expected, strict=True)
    return all(torch.allclose(a, b, atol=tolerance, rtol=tolerance) for a, b in pairs)


def make(case: BackboneEntry, *, prepare: bool = True, seed: int = 0, **settings: Any) -> Backbone:
    """Build a network that is ready to train; its weights depend on `seed` alone."""
    torch.manual_seed(seed)
    settings = {"size": "small", "channels": 3, "horizon": 24, "classes": 4, **settings}
    length = settings.pop("length", 96)
    model = build(case.name, case.task, input_len=length, **settings)
    if prepare:
        model.prepare(windows(16, length=length, channels=settings["channels"], seed=99))
    return model


def training_loss(model: Backbone, x: Tensor, stamps: Tensor | None = None) -> Tensor:
    """Compute the loss of one training step against arbitrary, fixed targets."""
    loss: Tensor
    if isinstance(model, DetectorNetwork):
        loss = model.training_loss(x)
    elif isinstance(model, ForecastNetwork):
        loss = (model(x, stamps) - x.mean(dim=1, keepdim=True) - 0.5).abs().mean()
    else:
        logits = model(x)
        labels = torch.arange(len(x)).clamp(max=logits.shape[1] - 1)  # unbalanced on purpose
        loss = F.cross_entropy(logits, labels)
    return loss + model.auxiliary_loss()


def evaluate_network(model: Backbone, x: Tensor, stamps: Tensor | None = None) -> list[Tensor]:
    """Return everything the network says of `x` in evaluation mode, each `[B, ...]`."""
    model.eval()
    with torch.no_grad():
        outputs = tree_leaves(model(x) if stamps is None else model(x, stamps))
        if isinstance(model, DetectorNetwork):
            outputs.append(model.anomaly_scores(x))
    return outputs


def outputs_have_their_shapes(case: BackboneEntry) -> None:
    """Outputs and losses are finite and of the right shape, whatever the sizes."""
    for batch, length, horizon, channels in SHAPES:
        model = make(case, length=length, horizon=horizon, channels=channels, classes=4)
        x = windows(batch, length=length, channels=channels)
        outputs = evaluate_network(model, x)
        own = {"forecasting": (horizon, channels), "classification": (4,), "anomaly": (length,)}
        shape, expected = tuple(outputs[-1].shape), (batch, *own[case.task])  # scores come last
        require(shape == expected, f"the output is {shape} instead of {expected}")
        fit = are_finite(outputs) and all(len(output) == batch for output in outputs)
        require(fit, f"outputs must be finite and have one row a window, for {list(x.shape)}")
        loss = training_loss(model.train(), x)
        loss.backward()
        require(loss.shape == () and loss.isfinite(), f"the loss is {loss}, for {list(x.shape)}")


def gradients_reach_every_parameter(case: BackboneEntry) -> None:
    """No parameter is left out of the loss."""
    model = make(case)
    training_loss(model, windows(8)).backward()
    for name, parameter in model.named_parameters():
        gradient = parameter.grad
        require(gradient is not None, f"{name} gets no gradient")
        # A key bias adds the same amount to all logits of a query: softmax cancels it.
        moves = name.endswith("key.bias") or (gradient is not None and bool(gradient.any()))
        require(moves and are_finite([gradient]), f"the gradient of {name} is 0 or not finite")


def windows_do_not_mix(case: BackboneEntry) -> None:
    """A window gives the same output alone, a second time, and after a restart."""
    model, other, x = make(case), make(case, seed=1, prepare=False), windows(7)
    together = evaluate_network(model, x)
    require(are_close(evaluate_network(model, x), together), "two evaluations differ")
    other.load_state_dict(model.state_dict())
    restarted = are_close(evaluate_network(other, x), together)
    require(restarted, "another network with the same state dict gives another output")
    alone = evaluate_network(model, x[:1])
    same = are_close(alone, [output[:1] for output in together], tolerance=1e-5)
    require(same, "window 0 of a batch of 7 gives another output alone")


def attach_adapts_every_dropout(case: BackboneEntry) -> None:
    """Layouts are stated and true, the modulator is trained, evaluation and keys stay."""
    model, x = make(case), windows(6)
    raw, keys, stated = evaluate_network(model, x), list(model.state_dict()), model.sacm_layouts
    sites = {name for name, each in model.named_modules() if isinstance(each, nn.Dropout)}
    complete = bool(stated) and set(stated) == sites
    require(complete, "call self.state_layouts() at the end of __init__, for all nn.Dropout")
    modulator = attach(model, example_inputs=x)
    require(all(site.reached for site in modulator.sites), "a dropout is not used in training")
    require(are_close(evaluate_network(model, x), raw), "attach changes the evaluation")
    optimizer = torch.optim.SGD(model.train().parameters(), lr=0.1)
    training_loss(model, x).backward()
    optimizer.step()  # a head that starts at zero lets nothing through before this
    training_loss(model, x).backward()
    gradients = [p.grad for p in modulator.parameters() if p.grad is not None]
    trained = are_finite(gradients) and any(bool(gradient.any()) for gradient in gradients)
    require(trained, "the gradient of the modulator is 0 or not finite")
    require(list(detach(model).state_dict()) == keys, "detach does not give the keys back")


CHECKS: tuple[Callable[[BackboneEntry], None], ...] = (
    outputs_have_their_shapes,
    gradients_reach_every_parameter,
    windows_do_not_mix,
    attach_adapts_every_dropout,
)


def check_backbone(backbone: str, *, task: TaskName | None = None) -> None:
    """Check a registered backbone; an AssertionError says in a sentence what does not hold.

    It is built at `size="small"`, for windows of 24 to 99 steps and 1 to 24 channels: outputs,
    gradients, repeatable evaluation that keeps windows apart, and `sacm.attach` at every dropout.
    It takes a few seconds.

    Args:
        backbone: A registered name.
        task: The task to check it for; without it, every task the name is registered for.

    Example:
        >>> from sacm.testing import check_backbone
        >>> check_backbone("PatchTST", task="forecasting")
    """
    tasks: tuple[TaskName, ...] = get_args(TaskName) if task is None else (task,)
    registered = [name for name in tasks if backbone in BACKBONES[name]]
    for name in registered or tasks[:1]:  # the first raises, with the names that are registered
        case = entry(backbone, name)
        with checking(f"{case.name} for {name}"):
            for check in CHECKS:
                check(case)
