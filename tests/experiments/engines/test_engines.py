from __future__ import annotations

import os

import pytest

from sacm.errors import ArgumentError, SACMError
from sacm.experiments.engines import make_engine, threads_for
from sacm.experiments.engines.local import LocalEngine, describe_error, exit_reason


def test_engines_by_name():
    engine = make_engine("local", workers=3)
    assert isinstance(engine, LocalEngine)
    assert engine.workers == 3
    with pytest.raises(ArgumentError, match="no engine 'slurm': use local or ray"):
        make_engine("slurm", workers=1)
    with pytest.raises(ArgumentError, match="--workers must be at least 1, got 0"):
        make_engine("local", workers=0)


def test_workers_share_the_cores(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = os.cpu_count() or 1
    assert threads_for(1) == cores
    assert threads_for(cores) == 1
    assert threads_for(10 * cores) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads_for(1) == 1


def test_how_a_process_died_in_words():
    assert (
        exit_reason(-9) == "the worker process was killed by SIGKILL (perhaps for want of memory)."
    )
    assert exit_reason(-11) == "the worker process was killed by SIGSEGV."
    assert exit_reason(3) == "the worker process ended with code 3."


def test_errors_are_one_line():
    assert describe_error(SACMError("the loss is nan:\n lower it")) == "the loss is nan: lower it"
    assert describe_error(MemoryError()) == "MemoryError: no message"
    assert describe_error(KeyError("width")) == "KeyError: 'width'"
