"""Programs for executors that need a launcher or a cluster: `python -m tests.support.engine_programs mpi`, or `ray`.

A program compares maps, Jacobians, sums and their derivatives on the executor with those without, and looks at errors.
"""

from __future__ import annotations

import importlib
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

import func
from func.errors import ChunkError, ExecutorError, WorkerLostError

ROOT = Path(__file__).parents[2]
X = np.random.default_rng(2).normal(size=(20, 3))
W = np.array([0.5, -1.0, 2.0])


class OddError(Exception):
    """An error that cannot be made again from its arguments."""

    def __init__(self, code: int, where: str) -> None:
        super().__init__(f"code {code} at {where}")


def odd(x: Any) -> Any:
    raise OddError(3, "here")


def failing(x: Any) -> Any:
    if x[0] == X[7, 0]:
        raise KeyError("seven")
    return x


def dying(x: Any) -> Any:
    if x[0] == X[7, 0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def loss(w: Any, x: Any) -> Any:
    return np.log1p(np.exp(x @ w))


def whole(w: Any, executor: Any) -> Any:
    scale = np.sum(w)
    return np.sum(func.vmap(lambda x: np.sin(x @ w) * scale, executor=executor, chunk_size=6)(X))


def check(executor: Any) -> None:
    """Results, derivatives and errors of an executor."""
    own, plain = [
        [
            func.map(lambda x: x @ W, X, executor=place),
            func.value_and_grad(whole)(W, place),
            func.hessian(whole)(W, place),
            func.jacobian(lambda w: np.outer(w, w), executor=place)(W),
            func.value_and_grad(func.sum_over(loss, X, executor=place, chunk_size=6))(W),
            func.sum_over(loss, X, executor=place, chunk_size=6).norms(W),
        ]
        for place in (executor, None)
    ]
    for x, y in zip(func.tree.leaves(own), func.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13)
    workers = set(func.map(lambda x: 0 * x[0] + os.getpid(), X, executor=executor, chunk_size=1).tolist())
    assert os.getpid() not in workers
    try:
        func.map(failing, X, executor=executor, chunk_size=4)
    except KeyError as error:
        assert type(error) is KeyError and error.__notes__[0].startswith("func.map(failing): chunk 1 (rows 4 to 7) ")
    else:
        raise AssertionError("no error")
    try:
        func.map(odd, X, executor=executor, chunk_size=4)
    except ChunkError as error:
        assert type(error) is ChunkError and "code 3 at here" in str(error)
    else:
        raise AssertionError("no error")


def mpi() -> None:
    """`mpiexec -n 3 python -m mpi4py.futures -m tests.support.engine_programs mpi`: one parent, two workers."""
    pools: Any = importlib.import_module("mpi4py.futures")
    with pools.MPIPoolExecutor() as executor:
        check(executor)
    try:
        func.map(np.sin, X, executor=executor)
    except ExecutorError as error:
        assert "the executor MPIPoolExecutor has been shut down" in str(error)
    else:
        raise AssertionError("no error")


def ray() -> None:
    """The class of docs/workers.md on a Ray of two workers."""
    cluster: Any = importlib.import_module("ray")
    page = (ROOT / "docs" / "workers.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```text\n(import ray\n.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)
    cluster.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        check(names["RayExecutor"]())
        try:
            func.map(dying, X, executor=names["RayExecutor"](max_retries=0), chunk_size=4)
        except WorkerLostError as error:
            assert "workers of RayExecutor died while chunk 1 ran" in str(error)
        else:
            raise AssertionError("no error")
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    {"mpi": mpi, "ray": ray}[sys.argv[1]]()
    print("done")
