"""Speed and memory of the core: the adaptive op, whole training steps, and the import."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn

import sacm
from benchmarks import make_parser
from benchmarks.timing import interleave, ratio
from sacm.core.dropout import drop_entries_composed

OP_SHAPES = ((224, 12, 512), (32, 96, 512), (32, 8, 96, 96))


def bench_op(rounds: int = 40) -> None:
    print("adaptive dropout, forward + backward, relative to nn.Dropout(0.1)")
    for shape in OP_SHAPES:
        seconds = interleave(op_steps(shape), rounds=rounds)
        base = seconds["nn.Dropout"]
        print(
            f"  {list(shape)!s:18} adaptive {ratio(seconds['adaptive'], base)}   "
            f"composed {ratio(seconds['composed'], base)}   "
            f"nn.Dropout {1e3 * statistics.median(base):.1f} ms"
        )


def op_steps(shape: tuple[int, ...]) -> dict[str, Callable[[], object]]:
    """One forward and backward pass of each way to drop."""
    h = torch.randn(shape, requires_grad=True)
    rates = torch.linspace(0.05, 0.44, shape[0]).requires_grad_()
    grad = torch.randn(shape)
    dropout = nn.Dropout(0.1)

    def formula() -> Tensor:
        keep = (1 - rates).view(-1, *(1,) * (h.dim() - 1))
        return drop_entries_composed(h, keep, torch.rand_like(h) < keep)

    return {
        "nn.Dropout": lambda: dropout(h).backward(grad),
        "adaptive": lambda: sacm.adaptive_dropout(h, rates).backward(grad),
        "composed": lambda: formula().backward(grad),
    }


class Encoder(nn.Module):
    """A transformer encoder over time steps."""

    def __init__(self, channels: int = 7, width: int = 128) -> None:
        super().__init__()
        self.embed = nn.Linear(channels, width)
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, channels)

    def forward(self, x: Tensor) -> Tensor:
        """`[B, L, C]` to `[B, L, C]`."""
        return self.head(self.encoder(self.embed(x)))


class ConvNet(nn.Module):
    """Four convolutions, each followed by dropout."""

    def __init__(self, channels: int = 7, width: int = 128) -> None:
        super().__init__()
        widths = [channels, *[width] * 4]
        self.blocks = nn.Sequential(
            *(
                nn.Sequential(nn.Conv1d(a, b, 5, padding=2), nn.ReLU(), nn.Dropout(0.1))
                for a, b in pairwise(widths)
            )
        )
        self.head = nn.Conv1d(width, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """`[B, L, C]` to `[B, L, C]`."""
        return self.head(self.blocks(x.transpose(1, 2))).transpose(1, 2)


def _pair(kind: type[nn.Module], x: Tensor) -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    raw, attached = kind(), kind()
    attached.load_state_dict(raw.state_dict())
    sacm.attach(attached, channels=x.shape[2], example_inputs=x)
    return raw, attached


def training_step(model: nn.Module, x: Tensor) -> Callable[[], object]:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        (model(x) - x).abs().mean().backward()
        optimizer.step()

    return step


def bench_step(rounds: int = 25) -> None:
    print("whole training step +SACM relative to raw, batch 32, L 96, C 7")
    x = torch.randn(32, 96, 7)
    for kind in (Encoder, ConvNet):
        raw, attached = _pair(kind, x)
        seconds = interleave(
            {"raw": training_step(raw, x), "sacm": training_step(attached, x)}, rounds=rounds
        )
        print(f"  {kind.__name__:10} {ratio(seconds['sacm'], seconds['raw'])}")


def saved_bytes(model: nn.Module, x: Tensor) -> tuple[int, int]:
    """Bytes kept for the backward pass (each storage once), and entries at the dropout sites."""
    storages: dict[int, int] = {}
    entries = 0

    def count(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal entries
        entries += output.numel()

    hooks = [m.register_forward_hook(count) for m in model.modules() if isinstance(m, nn.Dropout)]

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        loss = model(x).abs().mean()
    for hook in hooks:
        hook.remove()
    del loss
    return sum(storages.values()), entries


def bench_memory() -> None:
    print("memory kept for the backward pass, +SACM minus raw, per activation at a dropout site")
    x = torch.randn(32, 96, 7)
    for kind in (Encoder, ConvNet):
        raw, attached = _pair(kind, x)
        (raw_bytes, entries), (sacm_bytes, _) = saved_bytes(raw, x), saved_bytes(attached, x)
        print(
            f"  {kind.__name__:10} {(sacm_bytes - raw_bytes) / entries:+.2f} bytes "
            f"(raw {raw_bytes / 2**20:.1f} MiB, +SACM {sacm_bytes / 2**20:.1f} MiB)"
        )


def bench_import(rounds: int = 9) -> None:
    code = "import torch, time; t = time.time(); import sacm; sacm.attach; print(time.time() - t)"
    command = [sys.executable, "-c", code]
    seconds = [
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for _ in range(rounds)
    ]
    print(f"import sacm, after torch: {1e3 * statistics.median(seconds):.0f} ms")


def main() -> None:
    bench_op()
    bench_step()
    bench_memory()
    bench_import()


if __name__ == "__main__":
    make_parser(__doc__).parse_args()
    main()
