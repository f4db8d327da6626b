"""Everything that decides the result of a run, in one validated record."""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePath
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from sacm.backbones.base import ScoreKind
from sacm.backbones.registry import Size, entry
from sacm.errors import ArgumentError
from sacm.strategies.registry import canonical
from sacm.types import TaskName

_FILE_SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".npy", ".npz", ".ts")

Selection = Literal["mae", "mse", "accuracy", "loss"]

SELECTIONS: dict[TaskName, tuple[Selection, ...]] = {  # the first is the paper's
    "forecasting": ("mae", "mse"),
    "classification": ("accuracy", "loss"),
    "anomaly": ("loss",),
}
# Accepted and without effect, these would tell two equal runs apart.
_UNUSED: dict[TaskName, tuple[str, ...]] = {
    "forecasting": ("score",),
    "classification": ("horizon", "stride", "train_fraction", "score"),
    "anomaly": ("horizon", "train_fraction"),
}


class RunSettings(BaseModel):
    """What to train on what, and how. None means: as the task's preset says.

    Two runs with equal settings and equal data are the same run.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: TaskName
    data: str
    backbone: str = "PatchTST"
    size: Size = "paper"
    strategy: str = "sacm"
    seed: int = Field(42, ge=0)
    input_len: int | None = Field(None, ge=1)
    horizon: int | None = Field(None, ge=1)
    batch_size: int | None = Field(None, ge=1)
    stride: int = Field(1, ge=1)
    epochs: int = Field(100, ge=1)
    patience: int = Field(10, ge=1)
    learning_rate: float = Field(2e-4, gt=0, allow_inf_nan=False)
    weight_decay: float = Field(5e-4, ge=0, allow_inf_nan=False)
    select: Selection | None = None
    score: ScoreKind = "native"
    train_fraction: float = Field(1.0, gt=0, le=1)
    precision: Literal["32-true", "bf16-mixed", "16-mixed"] = "32-true"
    compile: bool = False
    overrides: dict[str, Any] = Field(default_factory=dict)

    @field_validator("strategy")
    @classmethod
    def _spelling(cls, value: str) -> str:
        return canonical(value)

    @model_validator(mode="after")
    def _fits_the_task(self) -> RunSettings:
        allowed = SELECTIONS[self.task]
        if self.select is not None and self.select not in allowed:
            names = " or ".join(allowed)
            raise ArgumentError(f"select = {self.select!r}: {self.task} chooses by {names}.")
        for name in _UNUSED[self.task]:
            value = getattr(self, name)
            if value != type(self).model_fields[name].default:
                raise ArgumentError(f"{name} = {value!r}: {self.task} has no use for it.")
        return self

    @classmethod
    def make(cls, **values: Any) -> RunSettings:
        """Settings from plain values; a wrong one is one sentence."""
        try:
            settings = cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            cause = first.get("ctx", {}).get("error")
            if isinstance(cause, ArgumentError):
                raise cause from None
            field = ".".join(map(str, first["loc"]))
            raise ArgumentError(f"{field} = {first['input']!r}: {first['msg'].lower()}.") from None
        known = entry(settings.backbone, settings.task).name
        return settings.model_copy(update={"backbone": known})

    def sizes(self) -> dict[str, int]:
        """`input_len` and `horizon` of settings that a task has completed."""
        assert self.input_len is not None
        assert self.horizon is not None
        return {"input_len": self.input_len, "horizon": self.horizon}

    def run_id(self, fingerprint: str) -> str:
        """A readable name that ends in a hash of the settings and the data."""
        record = json.dumps({**self.model_dump(), "fingerprint": fingerprint}, sort_keys=True)
        digest = hashlib.sha256(record.encode()).hexdigest()[:10]
        data = PurePath(self.data).name
        if PurePath(self.data).suffix in _FILE_SUFFIXES:
            data = PurePath(self.data).stem
        strategy = "".join(c if c.isalnum() else "-" for c in self.strategy).strip("-")
        parts = [data, self.backbone, strategy, f"seed{self.seed}", digest]
        return "_".join(parts)
