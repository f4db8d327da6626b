"""The fifteen architectures, one file each, behind one interface."""

from __future__ import annotations

# In the order in which `names` lists their networks.
# isort: off
from sacm.backbones import (  # noqa: F401  (importing a file registers its networks)
    informer,
    crossformer,
    patchtst,
    timesnet,
    itransformer,
    timemixer,
    wpmixer,
    timefilter,
    multipatchformer,
    nsformer,
    inceptiontime,
    minirocket,
    anomtrans,
    tranad,
    dcdetector,
)

# isort: on
from sacm.backbones.base import (
    Backbone,
    ClassifierNetwork,
    DetectorNetwork,
    ForecastNetwork,
    ReconstructionDetector,
)
from sacm.backbones.registry import Description, build, describe, names, register

__all__ = [
    "Backbone",
    "ClassifierNetwork",
    "Description",
    "DetectorNetwork",
    "ForecastNetwork",
    "ReconstructionDetector",
    "build",
    "describe",
    "names",
    "register",
]
