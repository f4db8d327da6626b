"""Strategies that build the network: what is trained, saved and predicted with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from lightning.fabric import Fabric

from sacm import Predictor
from sacm.strategies import TrainingContext, parse
from sacm.tasks import get_task
from sacm.training import Run
from sacm.training.trainer import Training
from sacm_lab.rivals.committee import Committee
from tests.lab.rivals.cases import batches, network
from tests.training.cases import make_data, make_settings, small_run

CONTEXT = TrainingContext(
    "forecasting",
    2,
    600,
    train=batches(),
    val=batches()[:1],
    seed=0,
    batches=lambda number, epoch: iter(batches()[number:]),
)


def committee(text: str, task: str = "forecasting") -> Committee:
    torch.manual_seed(0)
    found = parse(text).build(lambda: network(task))  # type: ignore[arg-type]  # a task's name
    assert isinstance(found, Committee)
    return found


@pytest.fixture(scope="module")
def ensemble_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    return small_run("forecasting", folder, strategy="ensemble(k=2)", epochs=1)


def test_a_saved_ensemble_predicts_with_the_mean_of_its_members(ensemble_run: Run) -> None:
    model = ensemble_run.load_model()
    assert isinstance(model, Committee)
    first, second = model.members
    windows = np.random.default_rng(0).standard_normal((3, 24, 3)).astype(np.float32)
    predictor = Predictor.load(ensemble_run)
    scaled = predictor.scaler.transform(torch.from_numpy(windows))
    with torch.no_grad():
        expected = predictor.scaler.inverse((first(scaled) + second(scaled)) / 2)
        assert not torch.equal(first(scaled), second(scaled))
    np.testing.assert_allclose(predictor.predict(windows), expected.numpy(), rtol=1e-5, atol=1e-5)


def test_a_saved_ensemble_evaluates_as_it_did_in_the_run(ensemble_run: Run) -> None:
    found = Predictor.load(ensemble_run).evaluate(make_data("forecasting"))
    assert found.row["mse"] == pytest.approx(ensemble_run.row["mse"], rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "strategy"),
    [
        ("forecasting", "co_teaching"),
        ("classification", "ensemble(k=2)"),
        ("classification", "smoothing(samples=2)"),
        ("anomaly", "ema"),
        ("anomaly", "loe"),
    ],
)
def test_other_tasks_run_and_load(task: str, strategy: str, tmp_path: Path) -> None:
    run = small_run(task, tmp_path, strategy=strategy, epochs=1)
    found = Predictor.load(run).evaluate(make_data(task))
    name = {"classification": "accuracy", "anomaly": "auc_pr", "forecasting": "mae"}[task]
    assert found.row[name] == pytest.approx(run.row[name], rel=1e-5)


def test_members_learn_as_if_each_were_alone_from_batches_of_their_own() -> None:
    model, strategy = committee("ensemble(k=2)").eval(), parse("ensemble(k=2)")
    run = strategy.begin(model, CONTEXT)
    for member in model.members:
        for dropout in (member.first, member.second):
            dropout.p = 0.0
    model.train()
    run.begin_epoch(1)
    get_task("forecasting").training_loss(model, batches()[0], strategy, run).backward()
    together = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    for member, batch in zip(model.members, batches(), strict=False):
        (member(batch.x) - batch.y).abs().mean().backward()
    for found, parameter in zip(together, model.parameters(), strict=True):
        torch.testing.assert_close(found, parameter.grad)


def test_the_average_of_weights_is_the_recursion() -> None:
    model = committee("ema(decay=0.9)")
    run = parse("ema(decay=0.9)").begin(model, CONTEXT)
    network, average = model.members
    expected = network.head.weight.detach().clone()
    for step in range(1, 30):
        with torch.no_grad():
            network.head.weight.copy_(torch.randn_like(network.head.weight))
        run.after_step()
        share = max(0.1, 1 / (step + 1))
        expected = (1 - share) * expected + share * network.head.weight.detach()
    torch.testing.assert_close(average.head.weight, expected)
    x = batches()[0].x
    torch.testing.assert_close(model.eval()(x), average.eval()(x))
    assert not any(parameter.requires_grad for parameter in average.parameters())


def test_smoothing_answers_with_the_mean_over_its_noise_whatever_the_batch() -> None:
    model = committee("smoothing(sigma=0.5,samples=400)").eval()
    (member,) = model.members
    x = batches()[0].x
    with torch.no_grad():
        smooth = model(x)
        torch.testing.assert_close(smooth[:1], model(x[:1]))
        # The member is linear, so noise of mean zero hardly moves its mean answer.
        assert (smooth - member(x)).abs().max() < 0.1
        assert (member(x + 0.5 * torch.randn_like(x)) - member(x)).abs().max() > 0.1
    strategy = parse("smoothing(sigma=0.5)")
    torch.manual_seed(0)
    added = strategy.inputs(x, training=True) - x
    assert float(added.std()) == pytest.approx(0.5, rel=0.15)
    torch.testing.assert_close(strategy.inputs(x), x, rtol=0, atol=0)


def test_each_network_learns_from_what_fits_the_other() -> None:
    strategy = parse("co_teaching(forget=0.5,warmup=2)")
    model, batch = committee("co_teaching"), batches()[0]
    run = strategy.begin(model, CONTEXT)
    for member in model.members:
        for dropout in (member.first, member.second):
            dropout.p = 0.0
    run.begin_epoch(2)  # half of the eight windows are left out
    model.train()
    loss = get_task("forecasting").training_loss(model, batch, strategy, run)
    expected = torch.zeros(())
    with torch.no_grad():
        first, second = ((member(batch.x) - batch.y).abs() for member in model.members)
        for losses, peer in ((first, second), (second, first)):
            expected = expected + losses[peer.mean(dim=(1, 2)).argsort()[:4]].mean()
    torch.testing.assert_close(loss.detach(), expected)


def test_each_network_of_a_run_has_an_order_of_batches_of_its_own(tmp_path: Path) -> None:
    task, data = get_task("forecasting"), make_data("forecasting")
    settings = task.resolve(make_settings("forecasting", strategy="ensemble(k=2)"), data)
    training = Training(tmp_path, settings, data, Fabric(accelerator="cpu", devices=1))
    training.train_batches.set_epoch(0)
    first = torch.cat([batch.positions for batch in training.train_batches])
    second = torch.cat([batch.positions for batch in training._member_batches(1, 1)])
    assert len(first) == len(second)
    assert not torch.equal(first, second)
