"""The torch-function mode that sees every call while an owner runs."""

from __future__ import annotations

from typing import Any

from torch.overrides import TorchFunctionMode

from sacm.inject.functional.handlers import HANDLERS
from sacm.inject.functional.shared import Interception


class Interceptor(TorchFunctionMode):
    """Leads dropping calls to their handler; all other calls run as they are."""

    def __init__(self, shared: Interception) -> None:
        super().__init__()
        self.shared = shared
        self.outer = shared.interceptor

    def __enter__(self) -> Interceptor:
        self.shared.interceptor = self
        super().__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        self.shared.interceptor = self.outer

    def __torch_function__(
        self, func: Any, _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        handler = HANDLERS.get(func)
        # Around a probe in mid-forward there is an outer interceptor: it leaves calls to the inner.
        if handler is None or self is not self.shared.interceptor:
            return func(*args, **kwargs)
        owner = self.shared.stack[-1]
        return func(*args, **kwargs) if owner.exempt else handler(owner, func, *args, **kwargs)
