"""Strategies that build the network: what is trained, saved and predicted with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from lightning.fabric import Fabric

from sacm import Predictor
from sacm.errors import ArgumentError
from sacm.strategies import TrainingContext, parse
from sacm.strategies.co_teaching import CoTeachingRun
from sacm.strategies.committee import Committee, check_processes, turns
from sacm.tasks import get_task
from sacm.testing.strategy_cases import batches, network
from sacm.training import Run
from sacm.training.trainer import Training
from tests.training.cases import make_data, make_settings, small_run

CONTEXT = TrainingContext("forecasting", 2, 600, train=batches(), val=batches()[:1], seed=0)


def committee(text: str, task: str = "forecasting") -> Committee:
    torch.manual_seed(0)
    found = parse(text).build(lambda: network(task))  # type: ignore[arg-type]  # a task's name
    assert isinstance(found, Committee)
    return found


@pytest.fixture(scope="module")
def ensemble_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    return small_run("forecasting", folder, strategy="ensemble(k=2)+sacm", epochs=1)


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


def test_members_learn_as_if_each_were_alone() -> None:
    model, batch = committee("ensemble(k=2)").eval(), batches()[0]
    model.turn = 0
    task, strategy = get_task("forecasting"), parse("ensemble(k=2)")
    run = strategy.begin(model, CONTEXT)
    for member in model.members:
        for dropout in (member.first, member.second):
            dropout.p = 0.0
    model.train()
    for _ in turns(model):
        task.training_loss(model, batch, strategy, run).backward()
    together = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    for member in model.members:
        (member(batch.x) - batch.y).abs().mean().backward()
    for found, parameter in zip(together, model.parameters(), strict=True):
        torch.testing.assert_close(found, parameter.grad)


def test_the_average_of_weights_is_the_recursion() -> None:
    model = committee("ema(decay=0.9)")
    run = parse("ema(decay=0.9)").begin(model, CONTEXT)
    network, average = model.all_members
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
    assert [id(m) for m in model.trained] == [id(network)]


def test_smoothing_answers_with_the_mean_over_its_noise_whatever_the_batch() -> None:
    model = committee("smoothing(sigma=0.5,samples=400)").eval()
    (member,) = model.all_members
    x = batches()[0].x
    with torch.no_grad():
        smooth = model(x)
        torch.testing.assert_close(smooth[:1], model(x[:1]))
        # The member is linear, so noise of mean zero hardly moves its mean answer.
        assert (smooth - member(x)).abs().max() < 0.1
        assert (member(x + 0.5 * torch.randn_like(x)) - member(x)).abs().max() > 0.1
    strategy = parse("smoothing(sigma=0.5)")
    torch.manual_seed(0)
    added = strategy.training_inputs(x) - x
    assert float(added.std()) == pytest.approx(0.5, rel=0.15)
    torch.testing.assert_close(strategy.inputs(x), x, rtol=0, atol=0)


def test_each_network_learns_from_what_fits_the_other() -> None:
    model, batch = committee("co_teaching(forget=0.5,warmup=2)"), batches()[0]
    run = parse("co_teaching(forget=0.5,warmup=2)").begin(model, CONTEXT)
    assert isinstance(run, CoTeachingRun)
    shares = []
    for epoch in (1, 2, 3):
        run.begin_epoch(epoch)
        shares.append(run.share)
    assert shares == [0.25, 0.5, 0.5]
    seen = []

    def watch(batch: object, prediction: torch.Tensor) -> torch.Tensor:
        seen.append(CoTeachingRun.keep(run, batch, prediction))
        return seen[-1]

    run.keep = watch  # type: ignore[method-assign]  # to see what is kept
    task, strategy = get_task("forecasting"), parse("co_teaching")
    model.train()
    for _ in turns(model):
        task.training_loss(model, batch, strategy, run)
    model.eval()
    for kept, peer in zip(seen, reversed(model.all_members), strict=True):
        with torch.no_grad():
            losses = (peer(batch.x) - batch.y).abs().mean(dim=(1, 2))
        chosen = set(losses.argsort()[:4].tolist())
        assert set(kept[:, 0, 0].nonzero().flatten().tolist()) == chosen


def test_several_networks_train_in_one_process() -> None:
    with pytest.raises(ArgumentError, match="trains 2 networks, which works in one process"):
        check_processes(committee("co_teaching"), 2)
    check_processes(committee("co_teaching"), 1)
    check_processes(committee("ema"), 2)  # its average is not trained


def test_clashes_and_wrong_options_are_one_sentence() -> None:
    with pytest.raises(ArgumentError, match="ensemble and ema both change the network"):
        parse("ensemble+ema")
    with pytest.raises(ArgumentError, match="co_teaching is for forecasting and classification"):
        parse("co_teaching").check_task("anomaly")
    wrong = ("ensemble(1)", "ema(1)", "smoothing(0)", "smoothing(samples=0)", "co_teaching(0)")
    for text in wrong:
        with pytest.raises(ArgumentError, match=text.partition("(")[0]):
            parse(text)


def test_members_of_an_ensemble_learn_from_batches_of_their_own(tmp_path: Path) -> None:
    task, data = get_task("forecasting"), make_data("forecasting")

    def orders(strategy: str) -> list[list[int]]:
        settings = task.resolve(make_settings("forecasting", strategy=strategy), data)
        fabric = Fabric(accelerator="cpu", devices=1)
        training = Training(Run(tmp_path), settings, task, data, fabric, show=False)
        return [batches.order(0).tolist() for batches in training.member_batches]

    first, second = orders("ensemble(k=2)")
    assert first == orders("raw")[0]
    assert first != second
    assert sorted(first) == sorted(second)
    assert len(orders("co_teaching(0.2)")) == 1  # its networks teach each other the same batch
