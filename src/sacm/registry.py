"""Things by name: backbones, strategies, metrics, data sets, commands and whatever else has names.

Another package adds to them by declaring a module in the entry-point group `sacm.plugins`, which
registers what it offers when it is imported: once, when a name is unknown or names are listed.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, NamedTuple, TypeVar, cast

from sacm.errors import ArgumentError, SACMWarning, did_you_mean

PLUGIN_GROUP = "sacm.plugins"

T = TypeVar("T")
Registered = TypeVar("Registered")
_lock = threading.RLock()
_plugins_loaded = threading.Event()
_registries: list[Registry[Any]] = []


class Entry(NamedTuple):
    """A registered thing by the name it is shown by, and the class or function it came from."""

    name: str
    value: Any
    origin: Any
    group: str
    help: str


class Registry(Generic[T]):
    """Named things of one kind, in the order they were registered in, those of sacm first.

    Args:
        kind: What one of them is called in messages, such as "backbone".
        scope: What they serve, where there is one registry each, such as "forecasting".
        simplify: Maps names to one spelling; names of equal spelling are the same name.
    """

    def __init__(
        self, kind: str, *, scope: str = "", simplify: Callable[[str], str] = str.lower
    ) -> None:
        self.kind, self.simplify = kind, simplify
        self._scope = f" for {scope}" if scope else ""
        self._entries: dict[str, Entry] = {}  # by simplified name, aliases included
        _registries.append(self)

    def register(
        self,
        name: str,
        *,
        aliases: tuple[str, ...] = (),
        origin: object = None,
        group: str = "",
        help: str = "",
    ) -> Callable[[Registered], Registered]:
        """Return a decorator that registers what it is applied to, and returns it unchanged.

        It takes the thing itself, or the text `"package.module:attribute"` that says where it is.

        Args:
            name: The name it is listed by.
            aliases: Other names it is found by.
            origin: The class or function that the registered value was made from, if it is not
                the value itself. Registering the same one again (a reloaded file) replaces it.
            group: What it is listed under, such as the task of a data set.
            help: One line for listings.
        """

        def add(value: Registered) -> Registered:
            source: Any = value if origin is None else origin
            if hasattr(source, "__qualname__"):  # a class or a function, which may be reloaded
                source = f"{source.__module__}:{source.__qualname__}"
            for each in (name, *aliases):
                if not self.simplify(each):
                    raise ArgumentError(f"a {self.kind} needs a name, got {each!r}.")
                known = self._entries.get(self.simplify(each))
                if known is not None and known.origin != source:
                    raise ArgumentError(
                        f"a {self.kind} named {known.name!r} is already registered{self._scope}: "
                        "choose another name."
                    )
            entry = Entry(name, value, source, group, help)
            self._entries.update({self.simplify(each): entry for each in (name, *aliases)})
            return value

        return add

    def entry(self, name: str) -> Entry:
        """Look an entry up in any letter case; an unknown name is an `ArgumentError`."""
        if name not in self:
            raise self.unknown(name)
        return self._entries[self.simplify(name)]

    def get(self, name: str) -> T:
        """Return what a name stands for; what was registered as text is imported."""
        value = self.entry(name).value
        if isinstance(value, str):
            module, _, attribute = value.partition(":")
            value = getattr(import_module(module), attribute)
        return cast(T, value)

    def find(self, name: str) -> T | None:
        """Return what a name stands for; None if it is not registered."""
        return self.get(name) if name in self else None

    def names(self, group: str | None = None) -> list[str]:
        """List all names, or those of a group; nothing is imported."""
        load_plugins()
        entries = [e for key, e in self._entries.items() if key == self.simplify(e.name)]
        entries.sort(key=lambda entry: not str(entry.origin).startswith("sacm."))
        return [entry.name for entry in entries if group in (None, entry.group)]

    def items(self) -> list[tuple[str, T]]:
        """List all names with what they stand for."""
        return [(name, self.get(name)) for name in self.names()]

    def values(self) -> list[T]:
        """List everything registered, in the order of `names`."""
        return [value for _, value in self.items()]

    def unknown(self, name: str) -> ArgumentError:
        """Return the error about a name that is not registered."""
        known = self.names()
        return ArgumentError(
            f"there is no {self.kind} {name!r}{self._scope}.{did_you_mean(name, known)} "
            f"Known: {', '.join(known) or 'none'}."
        )

    def __contains__(self, name: str) -> bool:
        if self.simplify(name) not in self._entries:
            load_plugins()
        return self.simplify(name) in self._entries


def load_plugins() -> None:
    """Import the modules of the entry-point group once; what fails is a `SACMWarning`."""
    with _lock:
        if _plugins_loaded.is_set():
            return
        _plugins_loaded.set()  # first, because a plug-in may list names while it is imported
        for point in entry_points(group=PLUGIN_GROUP):
            try:
                point.load()
            except Exception as error:  # whatever is wrong with it, everything else goes on working
                reason = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")
                text = f"the plug-in {point.value} could not be loaded and is left out: {reason}."
                warnings.warn(text, SACMWarning, stacklevel=2)


@contextmanager
def temporary_entries() -> Iterator[None]:
    """Forget afterwards what is registered inside the block; for tests of plug-ins."""
    load_plugins()  # before the snapshot: they are imported once, and must not be forgotten
    before = [(registry, dict(registry._entries)) for registry in _registries]
    try:
        yield
    finally:
        for registry, entries in before:
            registry._entries = entries


def letters_and_digits(name: str) -> str:
    """Return a name in lower case without blanks, dashes and underscores."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


# Registries that a plug-in fills without importing torch: they are here, not beside what they hold.
COMMANDS: Registry[Any] = Registry("command")
CORRUPTIONS: Registry[Any] = Registry("fault")
DATASETS: Registry[Any] = Registry("data set", simplify=letters_and_digits)
GENERATED: Registry[Any] = Registry("generated data set")  # functions (noise level, channels)
METRICS: Registry[Any] = Registry("metric")
STRATEGIES: Registry[Any] = Registry("strategy")
TRAINING_FAULTS: Registry[Any] = Registry("fault")  # functions (data, ratio, seed) of a data set
