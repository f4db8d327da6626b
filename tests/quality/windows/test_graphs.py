"""Compiled and exported graphs give what eager mode gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sacm.quality.protect import protect
from sacm.quality.windows import module as module_file
from sacm.quality.windows import parts, window_model
from tests.quality.windows.rows import LENGTH, broken_windows, guard

GRAPH_FILES = (module_file, parts, window_model)


class Network(nn.Module):
    """A protected network in small."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.line = nn.Linear(LENGTH, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.line(x.transpose(1, 2))


def test_the_path_of_graphs_gives_what_eager_mode_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    x = broken_windows()
    expected = guard().inspect(x)
    for file in GRAPH_FILES:
        monkeypatch.setattr(file, "tracing", lambda: True)
    found = guard().inspect(x)
    assert torch.equal(found.flags, expected.flags)
    torch.testing.assert_close(found.repaired, expected.repaired, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(guard()(x), expected.repaired, rtol=1e-4, atol=1e-4)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_exported_and_onnx_models_repair_batches_of_any_size() -> None:
    reference = pytest.importorskip("onnx.reference")
    pytest.importorskip("onnxscript")
    model = protect(Network().eval(), guard())
    x = broken_windows()
    program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    for some in (x, x[:5], torch.cat([x, x])):
        torch.testing.assert_close(program.module()(some), model(some), rtol=1e-4, atol=1e-4)
    # Without its optimiser, which takes most of the time and changes no result.
    onnx = torch.onnx.export(program, dynamo=True, optimize=False, verbose=False)
    assert onnx is not None
    proto = onnx.model_proto
    evaluator = reference.ReferenceEvaluator(proto)
    for some in (x, x[:5]):
        (found,) = evaluator.run(None, {proto.graph.input[0].name: some.numpy()})
        assert np.allclose(found, model(some).detach().numpy(), rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_a_compiled_model_repairs_in_one_graph() -> None:
    model = protect(Network().eval(), guard())
    x = broken_windows()
    expected = model(x)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), expected, rtol=1e-4, atol=1e-4)
