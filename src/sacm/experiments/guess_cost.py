"""How long an epoch takes by what one of the same network took elsewhere: a guess, in no time."""

from __future__ import annotations

import statistics
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from sacm.data.datasets import AnyData, ClassificationData, ForecastingData
from sacm.files import read_json
from sacm.settings import ResolvedSettings
from sacm.tasks import get_task

TABLE = Path(__file__).with_name("typical_costs.json")  # by `python -m benchmarks.typical_costs`
_TRAINED = 0.8  # share of the training cases or rows that are not held out


class Typical(NamedTuple):
    """Milliseconds of a training window of `steps` steps, with its share of the validation.

    A window of C channels takes `fixed + C * per_channel`.
    """

    fixed: float
    per_channel: float
    steps: int


class Extent(NamedTuple):
    """How large a data set is: its channels, and the rows or cases of its training part."""

    channels: int
    train: int

    @classmethod
    def of(cls, data: AnyData) -> Extent:
        """The extent of data that are loaded."""
        if isinstance(data, ForecastingData):
            return cls(data.channels, len(data.splits.train))
        cases = data.X_train if isinstance(data, ClassificationData) else data.train
        return cls(data.channels, len(cases))


def guess_epoch(settings: ResolvedSettings, extent: Extent) -> float:
    """Seconds of an epoch and its validation, as on the machine that the table was made on."""
    typical = find_typical(settings.task, settings.backbone, settings.size)
    steps = settings.input_len + settings.horizon
    a_window = typical.fixed + typical.per_channel * extent.channels
    return count_windows(settings, extent) * a_window * steps / typical.steps / 1000


def count_windows(settings: ResolvedSettings, extent: Extent) -> float:
    """Training windows of an epoch, about; a small data set is passed over several times."""
    if settings.task == "forecasting":
        rows = extent.train - settings.input_len - settings.horizon + 1
        count = rows * settings.train_fraction
    else:
        count = extent.train * _TRAINED
    least = get_task(settings.task).minimum_steps * settings.batch_size
    return max(count / settings.stride, least)


def find_typical(task: str, backbone: str, size: str) -> Typical:
    """The costs of a network; of one that the table lacks, those in the middle of its task."""
    table = read_table()
    found = table.get(f"{task}|{backbone}|{size}")
    if found is not None:
        return found
    others = [own for name, own in table.items() if name.startswith(f"{task}|")]
    middle = (statistics.median(values) for values in zip(*others, strict=True))
    fixed, per_channel, steps = middle
    return Typical(fixed, per_channel, int(steps))


@lru_cache(maxsize=1)
def read_table() -> dict[str, Typical]:
    """The table of typical costs, by task, backbone and size."""
    return {name: Typical(**own) for name, own in read_json(TABLE).items()}
