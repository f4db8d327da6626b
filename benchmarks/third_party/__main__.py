"""`python -m benchmarks.third_party [LIBRARY …] [--out FILE]`: judge `attach` on other libraries.

Needs the libraries themselves, none of which sacm needs; those not installed are named and left
out. The extras to install are in `EXTRAS`.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import logging
import os
import sys
from collections import Counter
from dataclasses import astuple, fields
from pathlib import Path

import torch

from benchmarks.third_party.judge import Verdict, judge

EXTRAS = {  # file in `libraries`, and what to install for it
    "torch_layers": "torch",
    "transformers_models": "transformers",
    "neuralforecast_models": "neuralforecast",
    "darts_models": "darts",
    "gluonts_models": "gluonts",
    "pypots_models": "pypots",
    "braindecode_models": "braindecode",
    "tsai_models": "tsai",
    "timm_models": "timm torchvision",
    "foundation_models": "chronos-forecasting momentfm",
    "forecasting_models": "pytorch-forecasting",
    "lucidrains_models": "x-transformers vit-pytorch performer-pytorch reformer-pytorch …",
}
KINDS = ("right", "ordinary", "refused", "wrong", "traceback", "unavailable")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*", help=f"from {', '.join(EXTRAS)}; default: all")
    parser.add_argument("--only", default="", help="configurations whose name holds this text")
    parser.add_argument("--out", type=Path, help="a CSV file with one line per configuration")
    options = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    verdicts: list[Verdict] = []
    for library in options.libraries or EXTRAS:
        try:
            module = importlib.import_module(f"benchmarks.third_party.libraries.{library}")
            found = list(module.configurations())
        except ImportError as error:
            print(f"{library}: not installed ({error}); pip install {EXTRAS[library]}", flush=True)
            continue
        for configuration in found:
            if options.only in configuration.name:
                verdicts.append(judge(configuration))
                _show(verdicts[-1])
        if options.out is not None:
            write(options.out, verdicts)
    count = Counter(verdict.kind for verdict in verdicts)
    print(", ".join(f"{count[kind]} {kind}" for kind in KINDS))
    sys.exit(bool(count["wrong"] or count["traceback"]))


def _show(verdict: Verdict) -> None:
    sites = f"{verdict.adaptive}/{verdict.sites}"
    text = f"{verdict.library} {verdict.name} [{verdict.coverage}]"
    print(f"{verdict.kind:11} {sites:>7}  {text}  {verdict.sentence[:300]}", flush=True)


def write(path: Path, verdicts: list[Verdict]) -> None:
    """Write a table, one line per configuration."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([field.name for field in fields(Verdict)])
        table.writerows(astuple(verdict) for verdict in verdicts)


if __name__ == "__main__":
    main()
