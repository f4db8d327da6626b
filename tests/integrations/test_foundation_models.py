"""The foundation models of the example, fine-tuned on random weights."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
import torch

import sacm
from tests.scripts import load_script

pytest.importorskip("transformers", reason="needs the `integrations` extra")
from sacm.integrations.huggingface import attach_transformer  # after the check

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the library's own
SCRIPT = Path(__file__).parents[2] / "examples" / "foundation_models.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return load_script(SCRIPT)


@pytest.mark.parametrize("name", ["patchtst", "timesfm", "timesfm2_5", "chronos"])
def test_model_is_tuned_saved_and_protected(example: ModuleType, name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    tuned = example.MODELS[name](None)
    series = example.make_series(600)
    rows = torch.from_numpy(series[:, 0]).unfold(0, example.LENGTH + example.HORIZON, 1)[:8]
    modulator = example.tune(tuned, series, 20)
    assert not torch.equal(modulator.scorer.weight.detach(), torch.ones(1))
    assert any(site.adaptive and site.reached for site in modulator.sites)

    torch.manual_seed(0)
    raw = example.MODELS[name](None)
    raw.model.load_state_dict(sacm.strip_state_dict(tuned.model.state_dict()))

    def answer(model: torch.nn.Module, rows: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return tuned.loss(model.eval(), rows)

    assert torch.equal(answer(tuned.model, rows), answer(raw.model, rows))

    broken = rows.clone()
    broken[0, 10] = 60.0
    harm = (answer(raw.model, broken) - answer(raw.model, rows)).abs()
    guard = sacm.Guard(window=example.LENGTH).fit(series)
    sacm.protect(tuned.model, guard, input_arg=tuned.input_arg, window_layout=tuned.layout)
    healthy, repaired = answer(tuned.model, rows), answer(tuned.model, broken)
    assert (repaired - healthy).abs() < 0.5 * harm


@pytest.mark.parametrize("name", ["timesfm", "timesfm2_5"])
def test_channels_of_timesfm_are_known_and_its_files_hold_the_scalars(
    example: ModuleType, name: str, tmp_path: Path
) -> None:
    model = example.MODELS[name](None).model
    modulator = attach_transformer(model, coverage="all")
    assert modulator.window.channels == 1
    model(past_values=torch.randn(4, example.LENGTH))
    modulator.mapper.gamma.data.fill_(3.0)
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path)  # the raw model leaves the scalars out
    window = torch.randn(4, example.LENGTH)
    with torch.no_grad():
        ours, theirs = (m.eval()(past_values=window).mean_predictions for m in (model, again))
    assert torch.equal(ours, theirs)
