"""Metrics to TensorBoard or MLflow, beside the run's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sacm.errors import ArgumentError

LOGGERS = ("tensorboard", "mlflow")


def make_logger(kind: str, folder: Path) -> Any:
    """A Lightning logger that writes into a run folder (or where MLflow's own settings say)."""
    if kind not in LOGGERS:
        raise ArgumentError(f"unknown logger {kind!r}: choose one of {', '.join(LOGGERS)}.")
    try:
        if kind == "tensorboard":
            from lightning.fabric.loggers.tensorboard import TensorBoardLogger

            return TensorBoardLogger(root_dir=folder, name="tensorboard", version="")
        from lightning.pytorch.loggers import MLFlowLogger

        return MLFlowLogger(experiment_name="sacm", run_name=folder.name)
    except ModuleNotFoundError:
        raise ArgumentError(f"the {kind} logger needs `pip install 'sacm[loggers]'`.") from None
