"""Concrete and variational dropout and the information bottleneck, against known distributions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch.distributions import Normal, kl_divergence

from sacm import strip_state_dict
from sacm.errors import ArgumentError
from sacm.strategies import TrainingContext, parse
from sacm.strategies.bottleneck import BottleneckLayer, normal_divergence
from sacm.strategies.learned_dropout import ConcreteLayer, GaussianLayer, log_uniform_divergence
from sacm.strategies.site_layers import PlacedRun
from sacm.testing.strategy_cases import batches, network
from tests.training.cases import small_run

CONTEXT = TrainingContext("forecasting", 2, 600, train=batches(), val=batches()[:1], seed=0)


def test_concrete_dropout_drops_at_its_rate_and_keeps_the_mean() -> None:
    torch.manual_seed(0)
    layer = ConcreteLayer(0.3)
    out = layer(torch.ones(400, 100))
    assert float((out < 0.5 / 0.7).float().mean()) == pytest.approx(0.3, abs=0.01)
    assert float(out.detach().mean()) == pytest.approx(1, abs=0.02)
    penalty = layer.penalty()
    assert penalty is not None
    assert float(penalty.detach()) == pytest.approx(-100 * stats.bernoulli(0.3).entropy(), rel=1e-5)
    out.square().mean().backward()
    assert layer.logit.grad is not None
    assert layer.logit.grad > 0  # the noise of a higher rate costs more


def test_gaussian_dropout_has_the_variance_of_its_rate() -> None:
    torch.manual_seed(0)
    layer = GaussianLayer(0.2)
    out = layer(torch.full((400, 100), 3.0)).detach()
    assert float(out.var()) == pytest.approx(9 * 0.25, rel=0.03)
    assert float(out.mean()) == pytest.approx(3, rel=0.01)


def test_the_divergence_from_the_log_uniform_prior_is_that_of_integration() -> None:
    def exact(variance: float) -> float:
        """The divergence up to a constant: E ln|1 + sqrt(a) e| - ln(a) / 2."""
        spread = np.sqrt(variance)

        def integrand(e: float) -> float:
            return float(stats.norm.pdf(e) * np.log(abs(1 + spread * e)))

        pole = -1 / spread
        inside = abs(pole) < 8
        value = integrate.quad(integrand, -8, 8, points=[pole] if inside else None, limit=200)[0]
        return float(value - 0.5 * np.log(variance))

    places = [0.1, 0.5, 1.0, 5.0]
    found = log_uniform_divergence(torch.tensor(places).log()).tolist()
    expected = [exact(place) for place in places]
    np.testing.assert_allclose(np.diff(found), np.diff(expected), atol=0.03)
    assert (np.diff(found) < 0).all()


def test_the_bottleneck_is_a_draw_around_the_representation_and_its_divergence() -> None:
    mean, log_variance = torch.randn(5, 4), torch.randn(5, 4)
    expected = kl_divergence(Normal(mean, (0.5 * log_variance).exp()), Normal(0.0, 1.0))
    torch.testing.assert_close(normal_divergence(mean, log_variance), expected)
    torch.manual_seed(0)
    layer = BottleneckLayer(4)
    out = layer(torch.ones(20_000, 4)).detach()
    assert float(out.std()) == pytest.approx(np.exp(-2), rel=0.02)
    penalty = layer.penalty()
    assert penalty is not None
    expected_sum = 4 * 0.5 * (1 + np.exp(-4) - 1 + 4)
    assert float(penalty.detach()) == pytest.approx(expected_sum, rel=1e-5)
    assert layer.penalty() is None  # given once


def test_layers_act_in_training_alone_and_leave_the_network_as_it_was() -> None:
    for text in ("concrete", "variational", "bottleneck"):
        torch.manual_seed(0)
        model, plain = network("forecasting"), network("forecasting")
        plain.load_state_dict(model.state_dict())
        run = parse(text).begin(model, CONTEXT)
        assert isinstance(run, PlacedRun)
        x = batches()[0].x
        assert torch.equal(model.eval()(x), plain.eval()(x))
        assert not torch.equal(model.train()(x), model(x))
        assert {id(p) for p in run.scalars()} <= {id(p) for p in model.parameters()}


def test_the_bottleneck_sits_at_the_last_dropout_that_is_not_the_answer() -> None:
    model = network("forecasting")
    run = parse("bottleneck").begin(model, CONTEXT)
    assert isinstance(run, PlacedRun)
    (layer,) = run.layers
    assert isinstance(layer, BottleneckLayer)
    assert layer.log_variance.in_features == 32  # `second`, between the two Linears


def test_a_run_with_learned_rates_predicts_as_a_raw_network(tmp_path: Path) -> None:
    run = small_run("forecasting", tmp_path, strategy="concrete", epochs=1)
    keys = run.load_model().state_dict()
    assert not [key for key in keys if "sacm" in key]


def test_a_bottleneck_goes_with_the_method_in_either_order() -> None:
    for text in ("bottleneck+sacm", "sacm+bottleneck"):
        model = network("forecasting").train()
        run = parse(text).begin(model, CONTEXT)
        model(batches()[0].x)
        kinds = {"sacm_site_layers.bottleneck.0.log_variance.bias", "sacm_modulator.mapper.gamma"}
        assert kinds <= set(model.state_dict())
        assert run.rates() is not None
        assert not [key for key in strip_state_dict(model.state_dict()) if "sacm" in key]


def test_clashes_and_wrong_options_are_one_sentence() -> None:
    with pytest.raises(ArgumentError, match="sacm and concrete both set the dropout rates"):
        parse("sacm+concrete")
    for text in ("concrete(rate=0)", "variational(weight=-1)", "bottleneck(beta=0)"):
        with pytest.raises(ArgumentError, match=text.partition("(")[0]):
            parse(text)
    with pytest.raises(ArgumentError, match="no module of the model matches 'nowhere'"):
        parse("bottleneck(at=nowhere)").begin(network("forecasting"), CONTEXT)
    with pytest.raises(ArgumentError, match="concrete works on the dropout modules"):
        parse("concrete").begin(torch.nn.Linear(2, 2), CONTEXT)
