"""One training run, from settings to tested weights; killed at any moment, it continues."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from sacm.backbones.base import Backbone, DetectorNetwork
from sacm.data.batches import WindowBatches
from sacm.data.datasets import AnyData, ForecastingData, fingerprint
from sacm.data.load import resolve
from sacm.errors import DataError, RunError, SACMError
from sacm.files import (
    read_state,
    read_weights,
    write_csv,
    write_json,
    write_state,
    write_weights,
)
from sacm.settings import AUTO, ResolvedSettings, RunSettings
from sacm.strategies.base import StrategyRun, TrainingContext
from sacm.strategies.race import RECORD, Race, RaceResult, decide
from sacm.strategies.registry import parse
from sacm.tasks import get_task
from sacm.tasks.base import EVALUATION_BATCH, Trained, to_device
from sacm.training.hardware import Hardware, environment, make_fabric, seed_epoch
from sacm.training.preparation import cut_windows, prepare_data
from sacm.training.progress import TrainingProgress, check_losses, say, summarise_epoch
from sacm.training.run import (
    BEST_FILE,
    CALIBRATION_FILE,
    DEFAULT_FOLDER,
    Run,
    alone_in,
    record_failure,
    write_fingerprint,
)

if TYPE_CHECKING:
    from lightning.fabric import Fabric

_RESUME, _RACE_FOLDER = "last.pt", "race"
_CHECK_EVERY = 50  # steps between looks at the loss where looking makes the device wait


def train(
    settings: RunSettings,
    *,
    folder: str | Path = DEFAULT_FOLDER,
    hardware: Hardware | None = None,
    data: AnyData | None = None,
    on_epoch: Callable[[int, float], None] | None = None,
) -> Run:
    """Train, or continue, or simply return the run that these settings and these data name.

    Args:
        settings: What to train.
        folder: Where run folders lie.
        hardware: Where to train.
        data: Data in memory, in place of what `settings.data` names; `settings.contamination` is
            done here, so that test errors are in clean units.
        on_epoch: Called with the number and the validation of every epoch, once it can be resumed
            from; what it raises ends the training.
    """
    hardware, task = hardware or Hardware(), get_task(settings.task)
    if data is None:
        data = resolve(settings.data, task=settings.task, reading=settings.reading())
    resolved = task.resolve(settings, data)
    data = task.divide(resolved, data)
    mark = fingerprint(data)
    run = Run(Path(folder) / resolved.run_id(mark))
    if run.finished:
        return run
    with alone_in(run.folder):
        if run.finished:  # by another process, while this one waited
            return run
        fabric, show = make_fabric(hardware, resolved), hardware.show_progress
        write_json(run.folder / "config.json", resolved.model_dump())
        write_json(run.folder / "environment.json", {**environment(), "fingerprint": mark})
        try:
            race = _race(run.folder, resolved, data, fabric, show=show)
            if race is not None:
                if resolved.backbone == AUTO:
                    resolved = resolved.model_copy(update={"overrides": {"members": race.members}})
                    write_json(run.folder / "config.json", resolved.model_dump())
                resolved = resolved.model_copy(update={"strategy": race.winner})
            training = Training(run.folder, resolved, data, fabric, show=show)
            training.race, training.on_epoch = race, on_epoch
            training.run()
        except (SACMError, RuntimeError, MemoryError) as error:
            record_failure(run, error)
            raise
    return run


def _race(
    folder: Path, settings: ResolvedSettings, data: AnyData, fabric: Fabric, *, show: bool
) -> RaceResult | None:
    """What candidates or strategies won; None if none compete.

    Members of a race begin as runs of their own would, in folders of their own, so that a killed
    race continues. The winner's files then become the run's, which goes on from there.
    """
    if (folder / RECORD).exists():
        return RaceResult.load(folder)
    if settings.backbone == AUTO:
        from sacm.training.contest import hold_contest

        assert isinstance(data, ForecastingData)  # no other task has candidates
        return hold_contest(folder, settings, data, fabric, show=show)
    strategy = parse(settings.strategy)
    if not isinstance(strategy, Race):
        return None
    members: dict[str, Training] = {}
    for number, member in enumerate(strategy.members):
        changed = settings.model_copy(update={"strategy": member})
        training = Training(folder / _RACE_FOLDER / str(number), changed, data, fabric, show=show)
        training.train_until(min(strategy.epochs, settings.epochs))
        members[member] = training
    result = decide(
        {name: training.progress.validation for name, training in members.items()},
        {name: training.progress.seconds for name, training in members.items()},
        select=settings.select,
    )
    for name in (BEST_FILE, "history.csv", _RESUME):
        shutil.copyfile(members[result.winner].folder / name, folder / name)
    result.save(folder)  # last: from here on the race is over
    return result


@dataclass
class _Progress:
    """What a resumed run must know."""

    epoch: int = 0  # finished epochs
    best: float | None = None
    best_epoch: int = 0
    waited: int = 0
    seconds: float = 0.0  # of training, with what the strategy does before it
    history: list[dict[str, Any]] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    steps: int = 0


@dataclass(eq=False)
class Training:
    """The state of one run in memory."""

    folder: Path
    settings: ResolvedSettings
    data: AnyData  # clean
    fabric: Fabric
    show: bool = False  # progress

    def __post_init__(self) -> None:
        settings = self.settings
        self.task = get_task(settings.task)
        self.race: RaceResult | None = None
        self.title = f"{settings.backbone} {settings.strategy} seed {settings.seed}"
        self.steps = (self.task.minimum_steps, sys.maxsize)  # fewest and most of an epoch
        self.deadline = time.monotonic() + (settings.time_limit or math.inf)  # steps stop there
        self.on_epoch: Callable[[int, float], None] | None = None
        prepared = prepare_data(settings, self.data)
        self.strategy, self.notes = prepared.strategy, prepared.notes
        self.progress = _Progress(seconds=prepared.seconds)
        self.windows = cut_windows(self.task, settings, self.data, prepared.data)
        if len(self.windows.val) == 0:
            why = "there are no validation windows to choose by: use more data or shorter windows"
            raise DataError(f"{settings.data}: {why}.")
        self.shape = self.task.shape(settings, self.data, self.windows.scaler)
        self.train_batches = self._training_batches(settings.seed)
        self.val_batches: Any = WindowBatches(self.windows.val, EVALUATION_BATCH)
        self._build()

    @property
    def passes(self) -> int:
        """Passes over the data in one epoch."""
        return math.ceil(self.steps[0] / len(self.train_batches))

    def _training_batches(self, seed: int) -> WindowBatches[Any]:
        # Dropping the last batch must not drop the only one.
        size = min(self.settings.batch_size, max(1, len(self.windows.train)))
        return WindowBatches(self.windows.train, size, shuffle=True, drop_last=True, seed=seed)

    def _build(self) -> None:
        """Model, strategy and optimizer, in the order that pairing needs."""
        settings, fabric = self.settings, self.fabric
        seed_epoch(settings.seed)
        model = self.strategy.build(partial(self.task.build, settings, self.shape))
        model = model.to(fabric.device)
        if model.prepares:
            everything = torch.arange(len(self.windows.train))
            model.prepare(self.windows.train.batch(everything).x.to(fabric.device))
        context = TrainingContext(
            task=self.task.name,
            channels=self.data.channels,
            rows=len(getattr(self.data, "values", ())),
            train=WindowBatches(self.windows.train, 64, shuffle=True, seed=settings.seed),
            val=self.val_batches,
            seed=settings.seed,
            batches=self._member_batches,
        )
        started = time.perf_counter()
        self.strategy_run: StrategyRun = self.strategy.begin(model, context)
        # Preparation counts in train_seconds, but not again after a resume.
        self.progress.seconds += time.perf_counter() - started
        self.model = model
        # Adam with coupled weight decay; none on the strategy's own scalars.
        scalars = self.strategy_run.scalars
        own = {id(scalar) for scalar in scalars}
        rest = [p for p in model.parameters() if p.requires_grad and id(p) not in own]
        groups: list[dict[str, Any]] = [{"params": rest, "weight_decay": settings.weight_decay}]
        if scalars:
            groups.append({"params": scalars, "weight_decay": 0.0})
        # One kernel for all parameters: on a CPU a fraction of the time of one call for each.
        self.optimizer = torch.optim.Adam(groups, lr=settings.learning_rate, fused=True)
        compiled: Any = torch.compile(model) if settings.compile else model
        self.wrapped, self.wrapped_optimizer = fabric.setup(compiled, self.optimizer)
        if isinstance(model, DetectorNetwork):  # its loss is what runs the forward
            self.wrapped.mark_forward_method("training_loss")
        # Full precision needs none of what the wrapper does at every call.
        plain = settings.precision == "32-true" and not settings.compile
        self.network = model if plain else self.wrapped

    def _member_batches(self, member: int, epoch: int) -> Iterator[Any]:
        """The batches of an epoch for a further network, in an order of its own."""
        seeds = np.random.SeedSequence([self.settings.seed, member])
        return self._epoch_batches(self._training_batches(int(seeds.generate_state(1)[0])), epoch)

    def _epoch_batches(self, batches: WindowBatches[Any], epoch: int) -> Iterator[Any]:
        """What counts as one epoch, which takes several passes over a small data set."""
        for number in range(self.passes):
            batches.set_epoch((epoch - 1) * self.passes + number)
            yield from (to_device(batch, self.fabric.device) for batch in batches)

    def run(self) -> None:
        """Train to the end, test, and leave a finished run folder."""
        write_json(self.folder / "model.json", asdict(self.shape))
        if self.settings.backbone == AUTO:  # its candidates are trained
            self.model.load_state_dict(read_weights(self.folder / BEST_FILE))
        else:
            self.train_until(self.settings.epochs)
        self._finish()

    def train_until(self, epochs: int) -> None:
        """Train until so many epochs are done, patience is at its end, or the time is over."""
        if not self.progress.epoch:  # else this process has trained it until here
            self._resume()
        progress = self.progress
        steps = min(self.passes * len(self.train_batches), self.steps[1])
        done = progress.epoch * steps
        lines = TrainingProgress(self.title, epochs * steps, self.show, done, self.deadline)
        while progress.epoch < epochs and progress.waited < self.settings.patience:
            if self.out_of_time and progress.epoch:
                break
            self._epoch(progress.epoch + 1, lines)

    @property
    def out_of_time(self) -> bool:
        """Whether the time limit is reached."""
        return time.monotonic() >= self.deadline

    def _epoch(self, epoch: int, lines: TrainingProgress) -> None:
        started, select = time.perf_counter(), self.settings.select
        row: dict[str, Any] = {"epoch": epoch, **self.train_epoch(epoch, lines)}
        trained = time.perf_counter()
        value = self.task.validate(self.trained, self.val_batches)
        row |= {f"val_{select}": value, "train_seconds": round(trained - started, 4)}
        row["validation_seconds"] = round(time.perf_counter() - trained, 4)
        self.progress.seconds += trained - started
        self._record(epoch, value, row)
        best = self.progress.best or value
        lines.validation = f" · epoch {epoch}: validation {select} {value:.4f}, best {best:.4f}"
        if self.on_epoch is not None:
            self.on_epoch(epoch, value)

    def train_epoch(self, epoch: int, lines: TrainingProgress) -> dict[str, float]:
        """The optimizer steps of one epoch; their mean loss, and the rates of the windows."""
        seed_epoch(self.settings.seed, epoch)
        self.strategy_run.begin_epoch(epoch)
        self.model.set_epoch(epoch)
        self.model.train()
        losses, rates = list[Tensor](), list[Tensor]()
        for batch in self._epoch_batches(self.train_batches, epoch):
            if losses and (len(losses) >= self.steps[1] or self.out_of_time):
                break
            losses.append(self.step(batch))
            if self.strategy_run.rates is not None:
                rates.append(self.strategy_run.rates)
            if losses[-1].device.type == "cpu" or len(losses) % _CHECK_EVERY == 0:
                check_losses(losses, epoch)
            lines.step(losses[-1])
        check_losses(losses, epoch)
        self.progress.steps += len(losses)
        return summarise_epoch(losses, rates)

    def step(self, batch: Any) -> Tensor:
        """One optimizer step; the loss, detached."""
        self.wrapped_optimizer.zero_grad()
        batch = to_device(batch, self.fabric.device)
        loss = self.task.training_loss(self.network, batch, self.strategy, self.strategy_run)
        if type(self.model).auxiliary_loss is not Backbone.auxiliary_loss:
            loss = loss + self.model.auxiliary_loss()
        self.fabric.backward(loss)
        if self.settings.gradient_clip:
            self.fabric.clip_gradients(
                self.wrapped, self.wrapped_optimizer, max_norm=self.settings.gradient_clip
            )
        self.wrapped_optimizer.step()
        self.strategy_run.after_step()
        return loss.detach()

    def _record(self, epoch: int, value: float, row: dict[str, Any]) -> None:
        """Save an epoch: first the best weights, then the state to resume from."""
        progress = self.progress
        if not math.isfinite(value):
            raise RunError(
                f"validation {self.settings.select} is {value} after epoch {epoch}: lower the "
                "learning rate or look for extreme values in the data."
            )
        sign = -1 if self.settings.select == "accuracy" else 1
        improved = progress.best is None or sign * value < sign * progress.best
        if improved:
            progress.best, progress.best_epoch = value, epoch
        progress.epoch, progress.waited = epoch, 0 if improved else progress.waited + 1
        progress.validation.append(value)
        if self.settings.watch and len(self.windows.test):
            result = self.task.evaluate(self.trained, self.windows, self.data)
            row |= {f"test_{name}": error for name, error in result.row.items()}
        progress.history.append(row)
        if improved:
            write_weights(self.folder / BEST_FILE, self.model.state_dict())
        write_csv(self.folder / "history.csv", progress.history)
        write_state(
            self.folder / _RESUME,
            {
                "progress": vars(progress),
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "strategy": self.strategy_run.state_dict(),
                "precision": self.fabric.strategy.precision.state_dict(),
            },
        )

    @property
    def trained(self) -> Trained:
        """The network as it is now, with its settings and its strategy."""
        return Trained(self.model, self.settings, self.strategy)

    def _resume(self) -> None:
        path = self.folder / _RESUME
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
        say(f"{self.title}: resumed from epoch {self.progress.epoch}", show=self.show)

    def _finish(self) -> None:
        """Test the chosen weights once, and keep what predictions need."""
        folder, progress, windows = self.folder, self.progress, self.windows
        write_weights(folder / "last.safetensors", self.model.state_dict())
        self.model.load_state_dict(read_weights(folder / BEST_FILE))
        started = time.perf_counter()
        record: dict[str, Any] = {"notes": list(self.notes)}
        if self.race is not None:
            record = {"notes": [*self.notes, self.race.sentence], "race": asdict(self.race)}
            if self.race.error is not None:  # candidates, whose mean is not trained any further
                progress.best = self.race.error
        if len(windows.test):
            result = self.task.evaluate(self.trained, windows, self.data)
            record |= {**result.record(), "test_windows": len(windows.test)}
        if calibration := self.task.calibrate(self.trained, windows, self.data):
            write_weights(folder / CALIBRATION_FILE, calibration.tensors, metadata=calibration.text)
        self.strategy.save(folder)
        write_json(folder / "scaler.json", windows.scaler.to_dict())
        write_fingerprint(folder)
        record |= {
            "best_epoch": progress.best_epoch,
            "epochs": progress.epoch,
            f"best_val_{self.settings.select}": progress.best,
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "train_seconds": round(progress.seconds, 3),
            "test_seconds": round(time.perf_counter() - started, 3),
        }
        write_json(folder / "metrics.json", record)
        for name in (_RESUME, "failure.json"):
            (folder / name).unlink(missing_ok=True)
        shutil.rmtree(folder / _RACE_FOLDER, ignore_errors=True)
        for leftover in folder.glob(".*.tmp"):  # of an earlier process that was killed
            leftover.unlink(missing_ok=True)
