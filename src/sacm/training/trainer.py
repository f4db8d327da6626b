"""One training run, from settings to tested weights; killed at any moment, it continues."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from lightning.fabric import Fabric
from torch import Tensor

from sacm.backbones.base import Backbone, DetectorNetwork
from sacm.data.corrupt import corrupt_training
from sacm.data.datasets import AnyData
from sacm.data.fingerprint import fingerprint
from sacm.data.load import resolve
from sacm.data.loader import WindowBatches
from sacm.data.windows import SplitWindows
from sacm.errors import DataError, SACMError
from sacm.files import (
    read_state,
    read_weights,
    write_csv,
    write_json,
    write_state,
    write_weights,
)
from sacm.settings import ResolvedSettings, RunSettings
from sacm.strategies.base import Strategy, StrategyRun, TrainingContext
from sacm.strategies.committee import check_processes, count_apart, turns
from sacm.tasks import get_task
from sacm.tasks.base import EVALUATION_BATCH, Task, scaler_of, to_device
from sacm.training.environment import environment
from sacm.training.epoch_statistics import Observed
from sacm.training.hardware import Hardware, make_fabric
from sacm.training.lock import alone_in
from sacm.training.optimizer import make_optimizer
from sacm.training.prepared import prepare_once
from sacm.training.prepared_windows import cut_prepared_windows
from sacm.training.progress import TrainingProgress
from sacm.training.run import (
    CALIBRATION_FILE,
    DEFAULT_FOLDER,
    Run,
    record_failure,
    remove_leftovers,
)
from sacm.training.seeds import derive_seed, seed_epoch


def train(
    settings: RunSettings,
    *,
    folder: str | Path = DEFAULT_FOLDER,
    hardware: Hardware | None = None,
    data: AnyData | None = None,
    on_epoch: Callable[[int, float], None] | None = None,
) -> Run:
    """Train, or continue, or simply return the run that these settings and these data name.

    `data` replaces what `settings.data` names, for data that are in memory. It is clean: what
    `settings.contamination` asks for is done here, so that test errors are in clean units.
    `on_epoch` is called with the number and the validation of every epoch, once it can be resumed
    from; what it raises ends the training.
    """
    hardware = hardware or Hardware()
    task = get_task(settings.task)
    if data is None:
        data = resolve(settings.data, task=settings.task, reading=settings.reading())
    resolved = task.resolve(settings, data)
    mark = fingerprint(data)
    run = Run(Path(folder) / resolved.run_id(mark))
    if run.finished:
        return run
    with alone_in(run.folder):
        if not run.finished:  # by another process, while this one waited
            _train(run, resolved, data, hardware, mark, on_epoch)
    return run


def _train(
    run: Run,
    settings: ResolvedSettings,
    data: AnyData,
    hardware: Hardware,
    mark: str,
    on_epoch: Callable[[int, float], None] | None,
) -> None:
    """Train a run to its end; `mark` is the fingerprint of its data."""
    fabric = make_fabric(hardware, settings, run)
    fabric.launch()
    if fabric.is_global_zero:
        write_json(run.folder / "config.json", settings.model_dump())
        write_json(run.folder / "environment.json", {**environment(), "fingerprint": mark})
    task = get_task(settings.task)
    try:
        training = Training(run, settings, task, data, fabric, show=hardware.show_progress)
        training.on_epoch = on_epoch
        training.run()
    except (SACMError, RuntimeError, MemoryError) as error:
        if fabric.is_global_zero:
            record_failure(run, error)
        raise
    fabric.barrier()  # the run is finished for every process, or for none


@dataclass
class _Progress:
    """What a resumed run must know."""

    epoch: int = 0  # finished epochs
    best: float | None = None
    best_epoch: int = 0
    waited: int = 0
    seconds: float = 0.0  # of training, with what the strategy does before it
    history: list[dict[str, Any]] = field(default_factory=list)


class Training:
    """The state of one run in memory."""

    def __init__(
        self,
        run: Run,
        settings: ResolvedSettings,
        task: Task[Any],
        data: AnyData,
        fabric: Fabric,
        *,
        show: bool,
    ) -> None:
        self.folder, self.settings, self.task, self.data = run.folder, settings, task, data
        self.fabric, self.show = fabric, show
        self.given = corrupt_training(data, settings.contamination, seed=settings.seed)
        prepared, self.preparing = prepare_once(
            settings.strategy, self.given, window=settings.input_len
        )
        self.strategy: Strategy = prepared.strategy
        self.notes = prepared.notes
        self.windows: SplitWindows[Any] = cut_prepared_windows(task, settings, data, prepared.data)
        self.shape = task.shape(settings, data)
        self.train_batches = self._train_batches(settings.batch_size)
        self.val_batches = WindowBatches(self.windows.val, EVALUATION_BATCH)
        # A small data set is passed over several times in what counts as one epoch.
        self.passes = math.ceil(task.minimum_steps / len(self.train_batches))
        self.progress = _Progress()
        self.on_epoch: Callable[[int, float], None] | None = None
        self._build()

    def _train_batches(self, batch_size: int, *, member: int = 0) -> WindowBatches[Any]:
        """Batches in an order of the run's seed; that of each further member is its own."""
        count = len(self.windows.train)
        if len(self.windows.val) == 0:
            raise DataError(
                f"{self.settings.data}: there are no validation windows to choose by: use more "
                "data or shorter windows."
            )
        # Dropping the last batch must not drop the only one.
        size = min(batch_size, max(1, count // self.fabric.world_size))
        return WindowBatches(
            self.windows.train,
            size,
            shuffle=True,
            drop_last=True,
            seed=self.settings.seed if not member else derive_seed(self.settings.seed, member),
            rank=self.fabric.global_rank,
            processes=self.fabric.world_size,
        )

    def _build(self) -> None:
        """Model, strategy and optimizer, in the order that pairing needs."""
        seed_epoch(self.settings.seed)
        fresh = partial(self.task.build, self.settings, self.shape)
        model = self.strategy.build(fresh).to(self.fabric.device)
        check_processes(model, self.fabric.world_size)
        if model.prepares:
            everything = torch.arange(len(self.windows.train))
            model.prepare(self.windows.train.batch(everything).x.to(self.fabric.device))
        context = TrainingContext(
            task=self.task.name,
            channels=self.data.channels,
            rows=len(getattr(self.data, "values", ())),
            train=WindowBatches(self.windows.train, 64, shuffle=True, seed=self.settings.seed),
            val=self.val_batches,
            seed=self.settings.seed,
        )
        started = time.perf_counter()
        self.strategy_run: StrategyRun = self.strategy.begin(model, context)
        # What a strategy trains beforehand is part of its price; a resumed run has paid it already.
        self.progress.seconds = self.preparing + time.perf_counter() - started
        self.model = model
        self.member_batches = [
            self.train_batches,
            *(
                self._train_batches(self.settings.batch_size, member=member)
                for member in range(1, count_apart(model))
            ),
        ]
        self.optimizer = make_optimizer(model, self.strategy_run, self.settings)
        compiled: Any = torch.compile(model) if self.settings.compile else model
        self.wrapped, self.wrapped_optimizer = self.fabric.setup(compiled, self.optimizer)
        if isinstance(model, DetectorNetwork):  # its loss is what runs the forward
            self.wrapped.mark_forward_method("training_loss")
        # One process in full precision needs none of what the wrapper does at every call.
        plain = self.fabric.world_size == 1 and self.settings.precision == "32-true"
        self.network = model if plain and not self.settings.compile else self.wrapped

    def run(self) -> None:
        """Train to the end, test, and leave a finished run folder."""
        self._resume()
        if self.fabric.is_global_zero:
            write_json(self.folder / "model.json", self.shape.to_dict())
        settings, progress = self.settings, self.progress
        steps = self.passes * len(self.train_batches)
        bar = TrainingProgress(
            f"{settings.backbone} {settings.strategy} seed {settings.seed}",
            epochs=settings.epochs,
            steps=steps,
            show=self.show and self.fabric.is_global_zero,
        )
        with bar:
            bar.start_at(progress.epoch)
            while progress.epoch < settings.epochs and progress.waited < settings.patience:
                self._epoch(progress.epoch + 1, bar)
        self._finish()

    def _epoch(self, epoch: int, bar: TrainingProgress) -> None:
        started = time.perf_counter()
        # Every rank its own, or they would all drop the same entries.
        seed_epoch(self.settings.seed, epoch, self.fabric.global_rank)
        self.strategy_run.begin_epoch(epoch)
        observed = self.train_epoch(epoch, bar)
        trained = time.perf_counter()
        value = self.task.validate(
            self.model, self.val_batches, self.strategy, self.settings.select
        )
        # Batch statistics are each rank's own; all must decide alike, by the weights that are kept.
        value = self.fabric.broadcast(value)
        self._record(epoch, value, observed, trained - started, time.perf_counter() - trained)
        assert self.progress.best is not None
        bar.epoch(epoch, select=self.settings.select, value=value, best=self.progress.best)
        if self.on_epoch is not None:
            self.on_epoch(epoch, value)

    def train_epoch(self, epoch: int, bar: TrainingProgress) -> Observed:
        """The optimizer steps of one epoch."""
        self.model.set_epoch(epoch)
        self.model.train()
        observed = Observed(lambda step: self._save_batch(epoch, step))
        for number in range(self.passes):
            for batches in self.member_batches:
                batches.set_epoch((epoch - 1) * self.passes + number)
            for own in zip(*self.member_batches, strict=True):
                observed.add(self.step(*own), self.strategy_run, where=f"epoch {epoch}")
                bar.step()
        observed.check(where=f"epoch {epoch}")
        return observed

    def _save_batch(self, epoch: int, step: int) -> Path:
        """Keep the batch of a step, cut again: losses may be looked at long after their steps.

        Networks that learn apart have one each.
        """
        number, place = divmod(step - 1, len(self.train_batches))
        kept = {}
        for member, batches in enumerate(self.member_batches):
            batches.set_epoch((epoch - 1) * self.passes + number, batch=place)
            kept[f"network {member + 1}"] = next(iter(batches))._asdict()
        path = self.folder / "failed_batch.pt"
        write_state(path, kept["network 1"] if len(kept) == 1 else kept)
        return path

    def step(self, *batches: Any) -> Tensor:
        """One optimizer step; the loss, detached.

        Args:
            batches: One for all networks, or one for each that learns apart.
        """
        placed = [to_device(batch, self.fabric.device) for batch in batches]
        self.wrapped_optimizer.zero_grad()
        losses = []
        for turn, _ in enumerate(turns(self.model)):
            batch = placed[turn if len(placed) > 1 else 0]
            loss = self.task.training_loss(self.network, batch, self.strategy, self.strategy_run)
            if type(self.model).auxiliary_loss is not Backbone.auxiliary_loss:
                loss = loss + self.model.auxiliary_loss()
            self.fabric.backward(loss)
            losses.append(loss.detach())
        if self.settings.gradient_clip:
            self.fabric.clip_gradients(
                self.wrapped, self.wrapped_optimizer, max_norm=self.settings.gradient_clip
            )
        self.wrapped_optimizer.step()
        self.strategy_run.after_step()
        return losses[0] if len(losses) == 1 else torch.stack(losses).mean()

    def _record(
        self, epoch: int, value: float, observed: Observed, seconds: float, checking: float
    ) -> None:
        """Remember an epoch: best weights first, then the place to resume at."""
        progress = self.progress
        if not math.isfinite(value):
            raise SACMError(
                f"validation {self.settings.select} is {value} after epoch {epoch}: lower the "
                "learning rate or look for extreme values in the data."
            )
        improved = self.task.better(value, progress.best, self.settings.select)
        if improved:
            progress.best, progress.best_epoch, progress.waited = value, epoch, 0
        else:
            progress.waited += 1
        progress.epoch = epoch
        progress.seconds += seconds
        row = {
            "epoch": epoch,
            "train_loss": observed.mean_loss(),
            f"val_{self.settings.select}": value,
            **observed.rates(),
            "train_seconds": round(seconds, 4),
            "validation_seconds": round(checking, 4),
            **self._watched(),
        }
        progress.history.append(row)
        self.fabric.log_dict(
            {k: v for k, v in row.items() if isinstance(v, int | float)}, step=epoch
        )
        if not self.fabric.is_global_zero:
            return
        if improved:
            write_weights(self.folder / "best.safetensors", self.model.state_dict())
        write_csv(self.folder / "history.csv", progress.history)
        write_state(
            self.folder / "last.pt",
            {
                "progress": vars(progress),
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "strategy": self.strategy_run.state_dict(),
                "precision": self.fabric.strategy.precision.state_dict(),
            },
        )

    def _watched(self) -> dict[str, float | None]:
        """Test results of this epoch's weights, if they are asked for."""
        if not self.settings.watch or not len(self.windows.test):
            return {}
        parts = (self.model, self.windows, self.data, self.settings, self.strategy)
        return {f"test_{name}": value for name, value in self.task.evaluate(*parts).row.items()}

    def _resume(self) -> None:
        path = self.folder / "last.pt"
        state = read_state(path)
        if state is None:
            return
        try:
            self.progress = _Progress(**state["progress"])
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.strategy_run.load_state_dict(state["strategy"])
            if state.get("precision"):  # the scale of the losses, in half precision
                self.fabric.strategy.precision.load_state_dict(state["precision"])
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError):
            raise SACMError(
                f"{path} was written by another version or is damaged, so the run cannot be "
                "resumed: delete it to start afresh."
            ) from None

    def _given_windows(self) -> SplitWindows[Any]:
        """Windows of the data as they came to the strategy, in the scale of those it made."""
        return self.task.windows(self.settings, self.given, scaler=scaler_of(self.windows))

    def _finish(self) -> None:
        """Test the chosen weights once."""
        progress = self.progress
        if not self.fabric.is_global_zero:
            return
        write_weights(self.folder / "last.safetensors", self.model.state_dict())
        self.model.load_state_dict(read_weights(self.folder / "best.safetensors"))
        started = time.perf_counter()
        self.strategy, said = self.task.conclude(
            self.model, self.windows, self._given_windows, self.strategy, self.settings.select
        )
        record: dict[str, Any] = {"notes": [*self.notes, *said]}
        if len(self.windows.test):
            result = self.task.evaluate(
                self.model, self.windows, self.data, self.settings, self.strategy
            )
            record |= {
                "test": result.row,
                "report": result.report,
                "evaluated_windows": result.evaluated,
                "test_windows": len(self.windows.test),
                "yardsticks": result.yardsticks,
            }
        calibration = self.task.calibrate(self.model, self.windows, self.settings, self.strategy)
        if calibration is not None:
            path = self.folder / CALIBRATION_FILE
            write_weights(path, calibration.tensors, metadata=calibration.text)
        self.strategy.save(self.folder)
        write_json(self.folder / "scaler.json", scaler_of(self.windows).to_dict())
        write_json(
            self.folder / "metrics.json",
            {
                **record,
                "best_epoch": progress.best_epoch,
                "epochs": progress.epoch,
                f"best_val_{self.settings.select}": progress.best,
                "parameters": sum(p.numel() for p in self.model.parameters()),
                "train_seconds": round(progress.seconds, 3),
                "test_seconds": round(time.perf_counter() - started, 3),
            },
        )
        for name in ("last.pt", "failure.json", "failed_batch.pt"):
            (self.folder / name).unlink(missing_ok=True)
        remove_leftovers(self.folder)  # of an earlier process that was killed
