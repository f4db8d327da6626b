"""`check_backbone`: what every network of this package, and of plug-ins, must hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves

from sacm.backbones.base import Backbone, DetectorNetwork, ForecastNetwork
from sacm.backbones.registry import BACKBONES, build, entry
from sacm.errors import ArgumentError
from sacm.inject.attach import attach, detach
from sacm.testing.shared import are_finite, require, run_checks, windows
from sacm.types import Size, TaskName

SHAPES = {  # batch, length, horizon, channels
    "one window": (1, 96, 24, 3),
    "odd length": (2, 99, 13, 3),
    "one channel": (2, 96, 24, 1),
    "short, horizon beyond it": (2, 24, 60, 7),
    "as many steps as channels": (2, 24, 24, 24),
}


@dataclass(frozen=True)
class BackboneCase:
    """A backbone for one task, by name."""

    name: str
    task: TaskName

    def __str__(self) -> str:
        return f"{self.name}-{self.task}"


def make(
    case: BackboneCase,
    *,
    length: int = 96,
    channels: int = 3,
    horizon: int = 24,
    classes: int = 4,
    size: Size = "small",
    prepare: bool = True,
    seed: int = 0,
    **settings: Any,
) -> Backbone:
    """Build a network that is ready to train; its weights depend on `seed` alone."""
    torch.manual_seed(seed)
    own = {"forecasting": {"horizon": horizon}, "classification": {"classes": classes}}
    settings |= {"input_len": length, "channels": channels, "size": size, **own.get(case.task, {})}
    model = build(case.name, case.task, **settings)
    if prepare:
        model.prepare(windows(16, length=length, channels=channels, seed=99))
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


def are_close(outputs: list[Tensor], expected: list[Tensor], *, tolerance: float) -> bool:
    """Compare two lists of tensors, absolutely and relatively; 0 asks for equality."""
    return len(outputs) == len(expected) > 0 and all(
        a.shape == b.shape and torch.allclose(a, b, atol=tolerance, rtol=tolerance)
        for a, b in zip(outputs, expected, strict=True)
    )


def dropouts(model: nn.Module) -> dict[str, nn.Dropout]:
    """Return the dropout sites of a network by name."""
    return {name: each for name, each in model.named_modules() if isinstance(each, nn.Dropout)}


def outputs_have_their_shapes(case: BackboneCase) -> None:
    """Outputs and losses are finite and of the right shape, whatever the sizes."""
    for name, (batch, length, horizon, channels) in SHAPES.items():
        model = make(case, length=length, horizon=horizon, channels=channels, classes=4)
        x = windows(batch, length=length, channels=channels)
        outputs = evaluate_network(model, x)
        expected = {
            "forecasting": (batch, horizon, channels),
            "classification": (batch, 4),
            "anomaly": (batch, length),
        }[case.task]
        shape = tuple(outputs[-1].shape)  # a detector's scores come last
        require(shape == expected, f"the output is {shape} instead of {expected} ({name})")
        fit = are_finite(outputs) and all(len(output) == batch for output in outputs)
        require(fit, f"outputs must be finite and have one row a window ({name})")
        loss = training_loss(model.train(), x)
        loss.backward()
        require(loss.shape == () and loss.isfinite(), f"the loss is {loss} ({name})")


def gradients_reach_every_parameter(case: BackboneCase) -> None:
    """No parameter is left out of the loss."""
    model = make(case)
    training_loss(model, windows(8)).backward()
    for name, parameter in model.named_parameters():
        require(parameter.grad is not None, f"{name} gets no gradient")
        require(are_finite([parameter.grad]), f"the gradient of {name} is not finite")
        # A key bias adds the same amount to all logits of a query: softmax cancels it.
        moves = name.endswith("key.bias") or bool(parameter.grad.abs().max() > 0)  # type: ignore[union-attr]
        require(moves, f"the gradient of {name} is 0 everywhere")


def windows_do_not_mix(case: BackboneCase) -> None:
    """A window alone and the same window in a batch give the same output, also a second time."""
    model, x = make(case), windows(7)
    before, together = x.clone(), evaluate_network(model, x)
    repeated = are_close(evaluate_network(model, x), together, tolerance=0.0)
    require(repeated, "two evaluations differ")
    require(torch.equal(x, before), "evaluation changes its input")
    for i in (0, 3, 6):
        alone = evaluate_network(model, x[i : i + 1])
        same = are_close(alone, [output[i : i + 1] for output in together], tolerance=1e-5)
        require(same, f"window {i} of a batch of 7 gives another output alone")


def weights_are_all_there_is(case: BackboneCase) -> None:
    """A network that loads the state dict of another gives the same outputs."""
    model, other, x = make(case, seed=0), make(case, seed=1, prepare=False), windows(3)
    other.load_state_dict(model.state_dict(), strict=True)
    same = are_close(evaluate_network(other, x), evaluate_network(model, x), tolerance=0.0)
    require(same, "another network with the same state dict gives another output")


def wrong_windows_are_refused(case: BackboneCase) -> None:
    """Windows of another shape are refused in one sentence, before torch meets them."""
    model = make(case)
    for shape in ((2, 95, 3), (2, 96, 4), (96, 3), (2, 3, 96)):
        what, said = f"a window {list(shape)} by a network for [B, 96, 3]", ""
        try:
            model(torch.zeros(shape))
        except ArgumentError as error:
            said = str(error)
        require(said, f"{what} must be refused with an ArgumentError")
        require("[B, 96, 3]" in said, f"the refusal of {what} should say [B, 96, 3]: {said}")


def layouts_are_stated_and_true(case: BackboneCase) -> None:
    """Every dropout states which rows belong to which window; the probe finds the same."""
    for length, channels, told in ((96, 3, False), (96, 1, True), (24, 1, True)):
        model = make(case, length=length, channels=channels)
        stated, sites = model.sacm_layouts, dropouts(model)
        require(sites, "the network has no nn.Dropout, so there is nothing to adapt")
        complete = set(stated) == set(sites)
        require(complete, "call self.state_layouts() at the end of __init__, for all dropouts")
        first = all(layout.dim == 0 and layout.batch_major for layout in stated.values())
        require(first, "the batch must be the slowest part of dimension 0 at every dropout")
        if not told:
            model.sacm_layouts = {}
        x = windows(5, length=length, channels=channels)
        modulator = attach(model, channels=channels, example_inputs=x)
        found = {site.name: site.layout for site in modulator.sites}
        require(found == stated, f"attach finds {found} and the network states {stated}")
        unused = [site.name for site in modulator.sites if not (site.adaptive and site.reached)]
        require(not unused, f"{unused} are not used in training")
        training_loss(model, windows(1, length=length, channels=channels)).backward()
        warned = [site.name for site in modulator.sites if site.warned]
        require(not warned, f"{warned} do not hold a batch of one window as stated")


def attached_training_works_and_evaluation_is_untouched(case: BackboneCase) -> None:
    """Gradients reach the modulator, evaluation stays equal, `detach` gives the keys back."""
    model, x = make(case), windows(6)
    raw, keys = evaluate_network(model, x), list(model.state_dict())
    modulator = attach(model, channels=3, example_inputs=x)
    same = are_close(evaluate_network(model, x), raw, tolerance=0.0)
    require(same, "attach changes the evaluation")
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    training_loss(model, x).backward()
    optimizer.step()  # a head that starts at zero lets nothing through before this
    optimizer.zero_grad()
    training_loss(model, x).backward()
    gradients = [p.grad for p in modulator.parameters() if p.grad is not None]
    require(are_finite(gradients), "a gradient of the modulator is not finite")
    reached = any(bool(gradient.abs().max() > 0) for gradient in gradients)
    require(reached, "no gradient reaches the modulator")
    require(list(detach(model).state_dict()) == keys, "detach does not give the keys back")


def detectors_keep_their_contract(case: BackboneCase) -> None:
    """Losses and scores call `forward` once, where `attach` sees the window."""
    if case.task != "anomaly":
        return
    model, x = make(case), windows(3)
    assert isinstance(model, DetectorNetwork), f"{case.name} must be a DetectorNetwork"
    calls: list[int] = []
    model.register_forward_hook(lambda *_: calls.append(1))
    for name in ("training_loss", "validation_loss", "anomaly_scores"):
        expected = (3, 96) if name == "anomaly_scores" else ()
        calls.clear()
        shape = tuple(getattr(model, name)(x).shape)
        require(len(calls) == 1, f"{name} calls forward {len(calls)} times instead of once")
        require(shape == expected, f"{name} gives {shape} instead of {expected}")
    for epoch in (1, 2, 50):
        model.set_epoch(epoch)
        require(model.training_loss(x).isfinite(), f"the loss of epoch {epoch} is not finite")


BackboneCheck = Callable[[BackboneCase], None]
CHECKS: tuple[BackboneCheck, ...] = (
    outputs_have_their_shapes,
    gradients_reach_every_parameter,
    windows_do_not_mix,
    weights_are_all_there_is,
    wrong_windows_are_refused,
    layouts_are_stated_and_true,
    attached_training_works_and_evaluation_is_untouched,
    detectors_keep_their_contract,
)


def check_backbone(backbone: str | type[Backbone], *, task: TaskName | None = None) -> None:
    """Check that a registered backbone keeps the contract of all backbones.

    It is built at `size="small"`, for windows of 24 to 99 steps and 1 to 24 channels: outputs,
    gradients, repeatable evaluation that keeps windows apart, refusal of wrong windows, and
    `sacm.attach` at every dropout. It takes a few seconds.

    Args:
        backbone: A registered name, or a class decorated with `sacm.backbones.register`.
        task: The task to check it for; without it, every task the name is registered for.

    Raises:
        AssertionError: If something does not hold; one sentence with the name of the backbone.
        ArgumentError: If no such backbone is registered.

    Example:
        >>> from sacm.testing import check_backbone
        >>> check_backbone("PatchTST", task="forecasting")
    """
    tasks: tuple[TaskName, ...] = get_args(TaskName) if task is None else (task,)
    if isinstance(backbone, str):
        entries = [entry(backbone, name) for name in tasks if backbone in BACKBONES[name]]
        if not entries:
            entry(backbone, tasks[0])  # raises, with the names that are registered
    else:
        registered = [each for name in tasks for each in BACKBONES[name].values()]
        entries = [each for each in registered if each.model is backbone]
        if not entries:
            raise ArgumentError(
                f"{backbone.__name__} is not registered: decorate it with sacm.backbones.register."
            )
    for each in entries:
        run_checks(f"{each.name} for {each.task}", CHECKS, BackboneCase(each.name, each.task))
