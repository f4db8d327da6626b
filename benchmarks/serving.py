"""What a `Predictor` costs on top of the bare network, one window a request."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np
import torch

from benchmarks import make_parser
from benchmarks.timing import interleave, ratio
from sacm.data import forecasting_data
from sacm.inference import Predictor
from sacm.tasks import make_settings
from sacm.training import Hardware, train

LENGTH, HORIZON, CHANNELS, REQUESTS = 96, 96, 7, 1000


def _predictor(folder: str, strategy: str) -> Predictor:
    """PatchTST, small, after one epoch on noise."""
    rows = np.random.default_rng(0).normal(size=(800, CHANNELS)).astype(np.float32)
    settings = make_settings(
        task="forecasting",
        data="noise",
        backbone="PatchTST",
        size="small",
        strategy=strategy,
        input_len=LENGTH,
        horizon=HORIZON,
        epochs=1,
        stride=8,
    )
    data = forecasting_data(rows, split=(0.6, 0.4, 0.0))
    run = train(settings, folder=folder, data=data, hardware=Hardware(show_progress=False))
    return Predictor.load(run)


def main(rounds: int = 300) -> None:
    print(f"one window [{LENGTH}, {CHANNELS}] a request, PatchTST small, horizon {HORIZON}")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        # A guard looks at every window and is part of the model: it has a line of its own.
        predictor, guarded = _predictor(folder, "raw"), _predictor(folder, "guard")
    windows = np.random.default_rng(1).normal(size=(REQUESTS, LENGTH, CHANNELS))
    windows = windows.astype(np.float32)
    batch = torch.from_numpy(windows[:1])

    def bare() -> torch.Tensor:
        with torch.inference_mode():
            return predictor.network(batch)

    functions = {
        "bare network": bare,
        "predict [1, L, C]": lambda: predictor.predict(windows[:1]),
        "predict [L, C]": lambda: predictor.predict(windows[0]),
        "with a guard": lambda: guarded.predict(windows[0]),
    }
    seconds = interleave(functions, rounds=rounds, warmup=20)
    for name, own in seconds.items():
        bare_seconds = seconds["bare network"]
        fastest = min(own) / min(bare_seconds)
        print(
            f"{name:20} {1e3 * np.median(own):6.3f} ms   {ratio(own, bare_seconds)}   "
            f"fastest against fastest {fastest:.2f}"
        )
    expected = predictor.predict(windows)
    started = perf_counter()
    with ThreadPoolExecutor(4) as pool:
        found = np.stack(list(pool.map(predictor.predict, windows)))
    spent = perf_counter() - started
    largest = np.abs(found - expected).max()
    print(f"{REQUESTS} requests from 4 threads: {spent:.2f} s, against one batch {largest:.1e}")


if __name__ == "__main__":
    make_parser(__doc__).parse_args()
    main()
