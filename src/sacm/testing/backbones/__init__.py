"""`check_backbone`: what every network of this package, and of plug-ins, must hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import torch

from sacm.backbones.base import Backbone
from sacm.backbones.registry import BACKBONES, entry
from sacm.errors import ArgumentError
from sacm.testing.backbones import arguments, attached, detectors, evaluation, shapes
from sacm.testing.case import BackboneCase
from sacm.types import TaskName

BackboneCheck = Callable[[BackboneCase], None]

CHECKS: tuple[BackboneCheck, ...] = (
    shapes.outputs_have_their_shapes,
    shapes.gradients_reach_every_parameter,
    shapes.gradients_reach_calendar_tables,
    shapes.double_precision_is_kept,
    shapes.autocast_works,
    evaluation.windows_do_not_mix,
    evaluation.evaluation_is_repeatable,
    evaluation.weights_are_all_there_is,
    evaluation.copies_are_independent,
    evaluation.forecasts_do_not_read_ahead,
    evaluation.calendar_is_used,
    arguments.wrong_windows_are_refused,
    arguments.wrong_sizes_are_refused,
    arguments.wrong_settings_are_refused,
    arguments.wrong_stamps_are_refused,
    attached.layouts_are_stated_and_fit,
    attached.every_site_becomes_adaptive,
    attached.the_probe_finds_the_stated_layouts,
    attached.small_windows_can_be_attached,
    attached.each_window_has_its_own_rate,
    attached.attached_training_works_and_evaluation_is_untouched,
)
DETECTOR_CHECKS: tuple[BackboneCheck, ...] = (
    detectors.forward_runs_once_a_call,
    detectors.reconstruction_scores_or_a_refusal,
    detectors.unknown_scores_are_refused,
    detectors.epochs_can_be_announced,
)


def check_backbone(backbone: str | type[Backbone], *, task: TaskName | None = None) -> None:
    """Check that a registered backbone keeps the contract of all backbones.

    It is built at `size="small"`, for windows of 24 to 99 steps and 1 to 24 channels: outputs,
    gradients, precision, repeatable evaluation that keeps windows apart, refusal of wrong
    arguments, and `sacm.attach` with a rate of its own for each window at every dropout.
    It takes a few seconds.

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
    with torch.random.fork_rng(devices=[]):  # checking changes nobody's random numbers
        for case in backbone_cases(backbone, task):
            for check in backbone_checks(case.task):
                _run(check, case)


def _run(check: BackboneCheck, case: BackboneCase) -> None:
    """Run one check; an error that the backbone raises is told as a sentence too."""
    try:
        check(case)
    except AssertionError:
        raise
    except Exception as error:
        what = check.__name__.replace("_", " ")
        raise AssertionError(
            f"{case.name} for {case.task}: {type(error).__name__} where {what}: {error}"
        ) from error


def backbone_checks(task: TaskName) -> tuple[BackboneCheck, ...]:
    """List the checks for networks of a task; each takes a `BackboneCase`."""
    return CHECKS + (DETECTOR_CHECKS if task == "anomaly" else ())


def backbone_cases(
    backbone: str | type[Backbone], task: TaskName | None = None
) -> list[BackboneCase]:
    """List what a name or a class is registered for.

    Raises:
        ArgumentError: If that is nothing.
    """
    tasks: tuple[TaskName, ...] = get_args(TaskName) if task is None else (task,)
    if isinstance(backbone, str):
        found = [entry(backbone, each) for each in tasks if backbone in BACKBONES[each]]
        if not found:
            entry(backbone, tasks[0])  # says that it is unknown, and what is known
    else:
        known = [each for one in tasks for each in BACKBONES[one].values()]
        found = [each for each in known if each.model is backbone]
        if not found:
            raise ArgumentError(
                f"{backbone.__name__} is not registered: decorate it with sacm.backbones.register."
            )
    return [BackboneCase(each.name, each.task) for each in found]
