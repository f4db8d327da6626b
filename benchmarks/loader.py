"""Speed and memory of the window loader against a data set that yields item by item."""

from __future__ import annotations

import statistics
import tracemalloc
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

import sacm.data
from benchmarks import make_parser
from benchmarks.timing import interleave, ratio
from sacm.errors import DataError

INPUT_LEN, HORIZON, BATCH = 96, 96, 32
LABELS = {
    "numpy": "item by item, NumPy slices",
    "tensor": "item by item, tensor slices",
    "DataLoader": "our windows in torch's DataLoader",
}


class NumpyItems(Dataset[Any]):
    """One window at a time, as slices of the scaled array: the usual data set of this field."""

    def __init__(self, series: np.ndarray) -> None:
        self.series = series

    def __len__(self) -> int:
        return len(self.series) - INPUT_LEN - HORIZON + 1

    def __getitem__(self, index: int) -> Any:
        middle = index + INPUT_LEN
        return self.series[index:middle], self.series[middle : middle + HORIZON]


class TensorItems(NumpyItems):
    """The same from a tensor."""

    def __init__(self, series: np.ndarray) -> None:
        super().__init__(series)
        self.series = torch.from_numpy(series)


def epoch(batches: Iterable[Any]) -> int:
    return sum(1 for _ in batches)


def series() -> sacm.data.ForecastingData:
    try:
        data = sacm.data.load("ETTm1", download=False)
    except DataError:
        print("ETTm1 is not here: random numbers of its shape instead")
        return sacm.data.forecasting_data(
            np.random.default_rng(0).standard_normal((57_600, 7), dtype=np.float32),
            split=(0.6, 0.2, 0.2),
        )
    assert isinstance(data, sacm.data.ForecastingData)
    return data


def bench_speed(data: sacm.data.ForecastingData, rounds: int = 11) -> None:
    windows = sacm.data.forecasting_windows(data, input_len=INPUT_LEN, horizon=HORIZON)
    ours = sacm.data.WindowBatches(windows.train, BATCH, shuffle=True, drop_last=True)
    rows = data.splits.train
    scaled = windows.train.scaler.transform(data.values[rows.start : rows.stop])
    options: dict[str, Any] = {"batch_size": BATCH, "shuffle": True, "drop_last": True}
    numpy_items = DataLoader(NumpyItems(scaled), **options)
    tensor_items = DataLoader(TensorItems(scaled), **options)
    sampler = BatchSampler(RandomSampler(windows.train), BATCH, drop_last=True)
    through_torch = DataLoader(windows.train, batch_size=None, sampler=sampler)
    seconds = interleave(
        {
            "ours": lambda: epoch(ours),
            "numpy": lambda: epoch(numpy_items),
            "tensor": lambda: epoch(tensor_items),
            "DataLoader": lambda: epoch(through_torch),
        },
        rounds=rounds,
        warmup=1,
    )
    micro = 1e6 * statistics.median(seconds["ours"]) / len(ours)
    print(f"one epoch of ETTm1, L {INPUT_LEN}, H {HORIZON}, batch {BATCH}: {len(ours)} batches")
    print(f"  WindowBatches: {micro:.1f} us a batch; in its terms")
    for name, label in LABELS.items():
        print(f"  {label:34} {ratio(seconds[name], seconds['ours'])}")


def bench_memory(data: sacm.data.ForecastingData) -> None:
    tracemalloc.start()
    windows = sacm.data.forecasting_windows(data, input_len=INPUT_LEN, horizon=HORIZON)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    for part in windows:
        epoch(sacm.data.WindowBatches(part, BATCH))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = data.values.nbytes
    copies = sum(len(part) for part in windows) * (INPUT_LEN + HORIZON) * 4 * data.channels
    print(
        f"memory of all windows, in series of {size / 2**20:.1f} MiB: held {held / size:.2f}, "
        f"peak of an epoch {peak / size:.2f} (copied out they would be {copies / size:.0f})"
    )


def main() -> None:
    data = series()
    bench_speed(data)
    bench_memory(data)


if __name__ == "__main__":
    make_parser(__doc__).parse_args()
    main()
