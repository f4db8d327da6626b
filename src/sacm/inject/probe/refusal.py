"""What is said of a model that runs by itself but not in the hands of the probe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from sacm.errors import ArgumentError, SACMError
from sacm.inject.probe.restore import restored_afterwards
from sacm.inject.probe.tree import copy_tensors
from sacm.inject.state import Call


@contextmanager
def refusing_to_be_probed(call: Call) -> Iterator[None]:
    """Explain an error that the model raises in the probe only; its own errors pass.

    Raises:
        ArgumentError: The model takes its arguments as they are, but not disturbed or cut.
    """
    try:
        yield
    except SACMError:
        raise
    except Exception as error:
        with restored_afterwards(call.model), torch.enable_grad():
            args, kwargs = copy_tensors((call.args, call.kwargs))
            call.model.forward(*args, **kwargs)
        raise ArgumentError(
            f"{type(call.model).__name__} cannot be probed: it takes this batch as it is, but with "
            f"few or disturbed windows it raised {type(error).__name__}: {error} Attach to the "
            "part of it that takes any values, with input_arg=… if need be."
        ) from error
