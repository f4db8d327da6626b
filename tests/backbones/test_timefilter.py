from __future__ import annotations

import copy
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from sacm import backbones
from sacm.backbones.base import Backbone
from sacm.backbones.timefilter import (
    FilteredGraph,
    Router,
    TimeFilterConfig,
    choose_experts,
    relation_regions,
)

from .cases import noise

TINY = TimeFilterConfig(width=8, hidden=16, heads=2, blocks=2)


def forecaster(**settings: object) -> Backbone:
    torch.manual_seed(0)
    return backbones.build(
        "TimeFilter",
        "forecasting",
        input_len=48,
        horizon=6,
        channels=3,
        size="small",
        **settings,
    )


def test_every_pair_of_nodes_is_of_one_kind() -> None:
    regions = relation_regions(3, 4)  # node = 4 * channel + patch
    assert torch.equal(regions.sum(dim=0), 1 - torch.eye(12, dtype=torch.long))
    assert regions[0, 1].nonzero().flatten().tolist() == [5, 9]  # same patch, other channels
    assert regions[1, 1].nonzero().flatten().tolist() == [0, 2, 3]  # same channel, other patches
    assert regions[2, 1].nonzero().flatten().tolist() == [4, 6, 7, 8, 10, 11]


@given(
    weights=st.lists(st.integers(1, 100), min_size=3, max_size=3, unique=True),
    top_p=st.floats(0.05, 0.95),
)
def test_experts_are_taken_while_those_before_hold_no_more(
    weights: list[int], top_p: float
) -> None:
    probabilities = torch.tensor(weights, dtype=torch.float64) / sum(weights)
    expected, gathered = [False] * 3, 0.0
    for expert in probabilities.argsort(descending=True).tolist():
        expected[expert] = gathered <= top_p
        gathered += probabilities[expert].item()
    assert choose_experts(probabilities, top_p).tolist() == expected
    assert any(expected)


def naive_graph(layer: FilteredGraph, x: Tensor, top_p: float) -> Tensor:
    """Row by row, in evaluation mode."""
    nodes, width = x.shape[0], x.shape[1] // layer.heads
    value, rows = layer.value(x), []
    for i in range(nodes):
        mixed = []
        for head in range(layer.heads):
            part = x[:, head * width : (head + 1) * width]
            row = F.gelu(layer.target(part) @ layer.source(part[i]))
            row[row.argsort()[: layer.pruned]] = 0
            chosen = choose_experts((layer.router.gate(row)).softmax(dim=0), top_p)
            keep = [
                j == i or any(chosen[e] and layer.regions[e, i, j] for e in range(3))
                for j in range(nodes)
            ]
            weights = (row * torch.tensor(keep)).softmax(dim=0)
            mixed.append(weights @ value[:, head * width : (head + 1) * width])
        rows.append(torch.cat(mixed))
    return torch.stack(rows)


def test_graph_equals_one_row_at_a_time() -> None:
    torch.manual_seed(0)
    layer = FilteredGraph(TINY, channels=3, patches=5).eval()
    x = noise(2, 15, 8)
    with torch.no_grad():
        found, _ = layer(x)
        expected = torch.stack([naive_graph(layer, window, TINY.top_p) for window in x])
    assert layer.pruned == 1
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_kept_relations_sum_to_one_after_dropout() -> None:
    layer = FilteredGraph(TINY, channels=3, patches=5).train()
    layer.value.weight.data.zero_()
    layer.value.bias.data.fill_(1.0)
    mixed, _ = layer(noise(4, 15, 8))
    torch.testing.assert_close(mixed, torch.ones_like(mixed))


def test_balance_counts_kept_probability_by_expert() -> None:
    router = Router(4, TimeFilterConfig(entropy_weight=0.1))
    probabilities = torch.tensor([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])[None, None]
    chosen = choose_experts(probabilities, 0.5)
    importance = torch.tensor([0.6, 0.0, 0.7])
    entropy = -(probabilities * probabilities.log()).sum() / 2
    expected = importance.var() / importance.mean() ** 2 + 0.1 * entropy
    torch.testing.assert_close(router.balance(probabilities, chosen), expected)


def router_change(model: Backbone) -> float:
    """How far the routers move in one step."""
    gates = [p for name, p in model.named_parameters() if ".router." in name]
    before = [gate.detach().clone() for gate in gates]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = model.train()(noise(8, 48, 3)).square().mean() + model.auxiliary_loss()
    loss.backward()
    optimizer.step()
    return min((one - other).abs().max().item() for one, other in zip(gates, before, strict=True))


def test_routers_learn_from_the_balance_loss_alone() -> None:
    assert router_change(forecaster()) > 0
    assert router_change(forecaster(balance_weight=0.0)) == 0


def test_balance_does_not_grow_with_the_batch() -> None:
    model = forecaster().train()
    x = noise(4, 48, 3)
    torch.manual_seed(1)
    model(x)
    once = model.auxiliary_loss().item()
    torch.manual_seed(1)
    model(x.repeat(8, 1, 1))
    assert model.auxiliary_loss().item() == pytest.approx(once, rel=0.5)


def test_auxiliary_loss_belongs_to_training() -> None:
    model = forecaster()
    assert model.auxiliary_loss() == 0
    model.train()(noise(2, 48, 3))
    assert model.auxiliary_loss() > 0
    model.eval()(noise(2, 48, 3))
    assert model.auxiliary_loss() == 0


def test_copies_leave_the_last_balance_behind() -> None:
    model = forecaster().train()
    model(noise(2, 48, 3))
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.auxiliary_loss() == 0
        twin(noise(2, 48, 3))
        assert twin.auxiliary_loss() > 0
    assert model.auxiliary_loss() > 0


def test_a_window_that_does_not_fill_its_patches_is_extended_in_front() -> None:
    model = backbones.build(
        "TimeFilter", "forecasting", input_len=45, horizon=6, channels=3, size="small"
    ).eval()
    seen: list[Tensor] = []
    model.tokens.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    x = noise(2, 45, 3)
    model(x)
    normal, _ = model.revin.normalise(x)
    extended = torch.cat((normal[:, :1].expand(-1, 3, -1), normal), dim=1)  # [B, 48, C]
    for node in range(18):
        channel, patch = divmod(node, 6)
        assert torch.equal(seen[0][:, node], extended[:, 8 * patch : 8 * patch + 8, channel])
