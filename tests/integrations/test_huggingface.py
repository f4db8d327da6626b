from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PatchTSTConfig,
    PatchTSTForPrediction,
    TimeSeriesTransformerConfig,
    TimeSeriesTransformerForPrediction,
)

import sacm
from sacm.errors import ArgumentError
from sacm.integrations.huggingface import attach_transformer

from .series import cut_windows

CHANNELS, LENGTH, HORIZON = 2, 32, 4


def patch_model(seed: int = 0) -> PatchTSTForPrediction:
    torch.manual_seed(seed)
    return PatchTSTForPrediction(
        PatchTSTConfig(
            num_input_channels=CHANNELS,
            context_length=LENGTH,
            prediction_length=HORIZON,
            patch_length=8,
            patch_stride=8,
            d_model=16,
            num_attention_heads=2,
            num_hidden_layers=1,
            ffn_dim=16,
            ff_dropout=0.1,
            attention_dropout=0.1,
            loss="mse",
        )
    )


class Series(Dataset[Any]):
    """Windows and what follows them."""

    def __init__(self, count: int = 16) -> None:
        length = LENGTH + HORIZON
        self.values = torch.from_numpy(cut_windows(count + length - 1, length, CHANNELS))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        window = self.values[index]
        return {"past_values": window[:LENGTH], "future_values": window[LENGTH:]}


def batch(count: int = 8) -> dict[str, torch.Tensor]:
    rows = [Series()[i] for i in range(count)]
    return {key: torch.stack([row[key] for row in rows]) for key in rows[0]}


def test_windows_are_scored_as_the_library_passes_them() -> None:
    model = patch_model()
    modulator = attach_transformer(model)
    model.train()
    loss = model(**batch()).loss
    loss.backward()
    expected = sacm.SpectralScorer(CHANNELS)(batch()["past_values"]).scores
    assert modulator.scores is not None
    torch.testing.assert_close(modulator.scores, expected)
    assert all(parameter.grad is not None for parameter in modulator.parameters())


def test_univariate_model_has_flat_windows() -> None:
    model = TimeSeriesTransformerForPrediction(
        TimeSeriesTransformerConfig(
            prediction_length=HORIZON,
            context_length=LENGTH,
            lags_sequence=[1],
            d_model=8,
            encoder_layers=1,
            decoder_layers=1,
            encoder_ffn_dim=8,
            decoder_ffn_dim=8,
            num_time_features=1,
        )
    )
    modulator = attach_transformer(model, coverage="all")
    past, future = torch.randn(4, LENGTH + 1), torch.randn(4, HORIZON)
    model.train()
    model(
        past_values=past,
        past_time_features=torch.zeros(4, LENGTH + 1, 1),
        past_observed_mask=torch.ones_like(past),
        future_values=future,
        future_time_features=torch.zeros(4, HORIZON, 1),
    ).loss.backward()
    assert modulator.rates is not None
    assert modulator.rates.shape == (4,)


def test_model_of_another_kind_is_refused() -> None:
    model = BertForSequenceClassification(
        BertConfig(
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=1,
            intermediate_size=8,
            vocab_size=16,
        )
    )
    with pytest.raises(ArgumentError, match="takes no past_values"):
        attach_transformer(model)


def trainer_of(model: Any, folder: Path, *, steps: int = 4, **options: Any) -> Any:
    pytest.importorskip("accelerate", reason="transformers.Trainer needs accelerate")
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=8,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        learning_rate=1e-2,
        **options,
    )
    return Trainer(
        model,
        arguments,
        train_dataset=Series(),
        eval_dataset=Series(),
    )


@pytest.mark.filterwarnings("ignore")  # the library's own
def test_trainer_trains_the_scalars_and_resumes(tmp_path: Path) -> None:
    model, fresh = patch_model(), patch_model(seed=1)
    learnt = attach_transformer(model).scorer.weight
    first = trainer_of(model, tmp_path, steps=20, logging_steps=1, save_steps=20)
    first.train()
    assert not torch.equal(learnt, torch.ones(CHANNELS))
    resumed = attach_transformer(fresh).scorer.weight
    second = trainer_of(fresh, tmp_path, steps=21)
    second.train(resume_from_checkpoint=True)
    assert second.state.global_step == 21
    assert abs(resumed - learnt).max() < abs(learnt - 1).max()


@pytest.mark.filterwarnings("ignore")  # the library's own
def test_protected_model_trains_and_evaluates_on_repaired_windows(tmp_path: Path) -> None:
    rows = torch.randn(400, CHANNELS, generator=torch.Generator().manual_seed(2))
    guard = sacm.Guard(window=LENGTH).fit(rows.numpy())
    model = patch_model()
    sacm.protect(model, guard, input_arg="past_values")
    attach_transformer(model)
    trainer_of(model, tmp_path, steps=1).train()
    broken = batch()
    broken["past_values"][0, 5] = torch.nan
    with torch.no_grad():
        assert torch.isfinite(model.eval()(**broken).prediction_outputs).all()
    assert "guard" not in " ".join(model.state_dict())


def adapted() -> Any:
    peft = pytest.importorskip("peft", reason="needs the `integrations` extra")
    settings = peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"])
    return peft.get_peft_model(patch_model(), settings)


@pytest.mark.filterwarnings("ignore")  # the library's own
def test_adapters_are_trained_with_scalars(tmp_path: Path) -> None:
    model = adapted()
    modulator = attach_transformer(model)
    trainer_of(model, tmp_path).train()
    assert not torch.equal(modulator.scorer.weight, torch.ones(CHANNELS))
    raw = adapted()
    with torch.no_grad():
        state = {k: v for k, v in model.state_dict().items() if "sacm_modulator" not in k}
        raw.load_state_dict(state)
        ours = model.eval()(**batch()).prediction_outputs
        assert torch.equal(raw.eval()(**batch()).prediction_outputs, ours)
