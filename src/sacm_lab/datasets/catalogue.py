"""All public data sets by name, as `from sacm_lab.datasets.catalogue import ETTh1` finds them."""

from __future__ import annotations

from sacm.errors import ArgumentError
from sacm_lab.datasets.anomaly import ANOMALY_SETS
from sacm_lab.datasets.classification import CLASSIFICATION_SETS
from sacm_lab.datasets.forecasting import FORECASTING_SETS
from sacm_lab.datasets.public import PublicDataset

PUBLIC: dict[str, PublicDataset] = {
    dataset.name: dataset for dataset in (*FORECASTING_SETS, *CLASSIFICATION_SETS, *ANOMALY_SETS)
}


def __getattr__(name: str) -> PublicDataset:
    """Give a data set as an attribute of this module, which the registry refers to."""
    if name not in PUBLIC:
        raise AttributeError(name)
    return PUBLIC[name]


def public_dataset(name: str) -> PublicDataset:
    """Find a public data set in any spelling.

    Raises:
        ArgumentError: If there is none, or a function of a plug-in makes it.
    """
    from sacm.data.load import find

    dataset = find(name)
    if not isinstance(dataset, PublicDataset):
        raise ArgumentError(f"{dataset.name} is made by its plug-in: there is nothing to fetch.")
    return dataset
