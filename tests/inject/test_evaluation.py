"""In evaluation the attached model is the raw one: outputs, graphs, and no work of ours."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import sacm

from . import models
from .models import CHANNELS, windows

MODELS: dict[str, Callable[[], nn.Module]] = {
    "mlp": models.MLP,
    "sequential": models.sequential,
    "batch-minor": models.BatchMinor,
    "conv": models.ConvNet,
    "encoder": lambda: models.Encoder(batch_first=True),
    "attention": models.Attention,
    "sdpa": models.ScaledDotProduct,
    "functional": models.Functional,
}
# Models without a dropout module would be returned unchanged otherwise.
COVERAGE = {"attention": "all", "sdpa": "all", "functional": "all"}
every_model = pytest.mark.parametrize("name", MODELS)


def pair(name: str, *, trained: bool = False) -> tuple[nn.Module, nn.Module]:
    """A raw model and its attached twin, in evaluation mode."""
    torch.manual_seed(0)
    raw = MODELS[name]()
    twin = copy.deepcopy(raw)
    modulator = sacm.attach(
        twin,
        channels=CHANNELS,
        example_inputs=windows(),
        coverage=COVERAGE.get(name, "all" if name == "encoder" else "modules"),
    )
    assert modulator.sites
    if trained:
        twin.train()(windows()).sum().backward()
        raw.load_state_dict(sacm.strip_state_dict(twin.state_dict()))
    return raw.eval(), twin.eval()


@every_model
@pytest.mark.parametrize("trained", [False, True])
def test_outputs_are_bit_identical(name: str, trained: bool) -> None:
    raw, twin = pair(name, trained=trained)
    for batch in (1, 3, 7):
        x = windows(batch, seed=batch)
        assert torch.equal(twin(x), raw(x))
        with torch.inference_mode():
            assert torch.equal(twin(x), raw(x))


def test_the_fast_path_of_the_transformer_encoder_is_still_taken() -> None:
    raw, twin = pair("encoder", trained=True)
    x, kernel = windows(), "aten::_transformer_encoder_layer_fwd"
    outputs = []
    for model in (raw, twin):
        with torch.inference_mode(), torch.profiler.profile() as profile:
            outputs.append(model(x))
        assert sum(event.key == kernel for event in profile.key_averages()) == 1, "not taken"
    assert torch.equal(*outputs)
    with torch.inference_mode():
        slow = _without_fast_path(raw, x)
    assert not torch.equal(slow, outputs[0]), "the two paths should differ in the last bits"


def _without_fast_path(model: nn.Module, x: Tensor) -> Tensor:
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        return model(x)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


@every_model
def test_nothing_of_ours_runs_in_evaluation(name: str) -> None:
    _, twin = pair(name)
    modulator = twin.sacm_modulator
    modulator.scorer.forward = modulator.mapper.forward = _forbidden
    state = torch.get_rng_state()
    twin(windows())
    assert modulator.rates is None
    assert modulator.scores is None
    assert torch.equal(torch.get_rng_state(), state)


def _forbidden(*_: object) -> Tensor:
    raise AssertionError("called in evaluation")


def graph_of(model: nn.Module, x: Tensor) -> tuple[list[tuple[str, str]], list[str]]:
    """Operations with their targets, and the names of the tensors a graph uses."""
    program = torch.export.export(model, (x,))
    nodes = [(node.op, str(node.target)) for node in program.graph.nodes]
    used = [*program.graph_signature.inputs_to_parameters.values()]
    return nodes, used


@every_model
def test_exported_graphs_are_the_same(name: str) -> None:
    raw, twin = pair(name, trained=True)
    (raw_nodes, raw_used), (nodes, used) = graph_of(raw, windows()), graph_of(twin, windows())
    operations = [node for node in nodes if node[0] == "call_function"]
    assert operations == [node for node in raw_nodes if node[0] == "call_function"]
    assert operations
    assert [key for key in used if "sacm_modulator" not in key] == raw_used
    exported = torch.export.export(twin, (windows(),)).module()
    assert torch.equal(exported(windows()), raw(windows()))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp", "encoder"])
def test_onnx_graphs_are_the_same(name: str, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="needs the `integrations` extra")
    pytest.importorskip("onnxscript", reason="needs the `integrations` extra")
    found = []
    for label, model in zip(("raw", "attached"), pair(name, trained=True), strict=True):
        path = tmp_path / f"{label}.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporter's own
            torch.onnx.export(model, (windows(),), path, dynamo=True, external_data=False)
        graph = onnx.load(path).graph
        tensors = {t.name: onnx.numpy_helper.to_array(t).tobytes() for t in graph.initializer}
        found.append(([(n.op_type, *n.input) for n in graph.node], tensors))
    (raw_nodes, raw_tensors), (nodes, tensors) = found
    assert nodes == raw_nodes
    assert tensors == raw_tensors
    assert len(nodes) > 3
