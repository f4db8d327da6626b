"""The networks of braindecode for recordings `[B, C, L]`."""

from __future__ import annotations

from benchmarks.third_party.case import Case, Configuration, Configurations, make_windows

SENSORS, LENGTH = 8, 400
NAMES = [
    "ATCNet",
    "AttentionBaseNet",
    "BIOT",
    "ContraWR",
    "CTNet",
    "Deep4Net",
    "EEGConformer",
    "EEGInceptionERP",
    "EEGInceptionMI",
    "EEGITNet",
    "EEGNet",
    "EEGNeX",
    "EEGSimpleConv",
    "EEGTCNet",
    "FBCNet",
    "FBLightConvNet",
    "FBMSNet",
    "IFNet",
    "MSVTNet",
    "SCCNet",
    "ShallowFBCSPNet",
    "SincShallowNet",
    "SPARCNet",
    "BDTCN",
    "TCN",
    "TIDNet",
    "TSception",
    "MEDFormer",
    "PBT",
    "SSTDPN",
    "HybridNet",
    "SyncNet",
    "DGCNN",
    "TCFormer",
]


def build(name: str) -> Case:
    import braindecode.models

    cls = getattr(braindecode.models, name)
    model = cls(n_chans=SENSORS, n_outputs=2, n_times=LENGTH, sfreq=100)
    window = make_windows(SENSORS, LENGTH, layout="BCL")
    return Case(model, (window,), channels=SENSORS, window_layout="BCL")


def configurations() -> Configurations:
    import braindecode.models  # noqa: F401  # so that a missing library is known here

    for name in NAMES:
        yield Configuration("braindecode", name, lambda n=name: build(n))
