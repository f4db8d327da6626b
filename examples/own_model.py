"""Attach SACM to a PyTorch model of your own and look at the rates that it gives.

Half of the training windows carry extra noise. The script trains a small network on all of them,
prints which of its dropouts became adaptive, and compares the rates of both kinds of windows.

Run: python examples/own_model.py [--quick] [--out FOLDER]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import Tensor, nn

import sacm

LENGTH, HORIZON, CHANNELS = 96, 24, 3


def make_windows(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sines with little or much noise.

    Returns:
        Inputs `[N, 96, 3]`, targets `[N, 24, 3]`, and which windows are noisy `[N]`.
    """
    generator = torch.Generator().manual_seed(0)
    time = torch.arange(LENGTH + HORIZON)[None, :, None]
    phase = 6.28 * torch.rand(count, 1, CHANNELS, generator=generator)
    clean = torch.sin(6.28 * time / torch.tensor([24.0, 16.0, 12.0]) + phase)
    noisy = torch.arange(count) % 2 == 1
    level = torch.where(noisy, 0.8, 0.1)[:, None, None]
    series = clean + level * torch.randn(clean.shape, generator=generator)
    return series[:, :LENGTH], clean[:, LENGTH:], noisy


class Network(nn.Module):
    """Each channel through two layers over time, with dropout between them."""

    def __init__(self) -> None:
        super().__init__()
        self.expand = nn.Linear(LENGTH, 64)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(64, HORIZON)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.expand(x.transpose(1, 2)))  # [B, C, 64]
        return self.head(self.dropout(hidden)).transpose(1, 2)  # [B, H, C]


def train(model: nn.Module, x: Tensor, y: Tensor, epochs: int) -> float:
    """Train as ever; SACM needs no change to the loop. Returns the last loss."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            loss = (model(x[rows]) - y[rows]).square().mean()
            loss.backward()
            optimizer.step()
    return loss.item()


def draw(rates: Tensor, noisy: Tensor, path: Path) -> None:
    """Histogram of the rates of both kinds of windows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.subplots()
    for label, chosen in (("clean windows", ~noisy), ("noisy windows", noisy)):
        axes.hist(rates[chosen].numpy(), bins=20, alpha=0.7, label=label)
    axes.set_xlabel("dropout rate")
    axes.set_ylabel("windows")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main(arguments: list[str] | None = None) -> None:
    """Run the example; the arguments are those of the command line."""
    parser = argparse.ArgumentParser(description="Attach SACM to a model of your own.")
    parser.add_argument("--quick", action="store_true", help="a few windows and epochs only")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder of the figure")
    options = parser.parse_args(arguments)

    torch.manual_seed(0)
    x, y, noisy = make_windows(64 if options.quick else 512)
    model = Network()
    modulator = sacm.attach(model, channels=CHANNELS, example_inputs=x[:4])
    print(modulator.summary(), end="\n\n")

    loss = train(model, x, y, epochs=2 if options.quick else 20)
    print(f"training loss {loss:.3f}")

    model.train()
    model(x)  # one forward over all windows, to read the rates
    rates = modulator.rates
    print(f"mean rate of clean windows {rates[~noisy].mean():.3f}")
    print(f"mean rate of noisy windows {rates[noisy].mean():.3f}")
    draw(rates, noisy, options.out / "own_model.png")

    sacm.detach(model)  # the ordinary network again, with the weights just trained
    print("after detach:", model.dropout)


if __name__ == "__main__":
    main()
