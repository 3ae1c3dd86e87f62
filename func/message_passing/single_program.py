"""spmd: one function on all processes of an MPI communicator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from func.errors import ArgumentError
from func.interpreters.compiled_backward import passes_by_nodes
from func.interpreters.core.scopes import current_transform, running_vmaps
from func.interpreters.host.source import at_line
from func.interpreters.rank_axis import RankAxis, running_on
from func.message_passing.communicator import check_communicator, communicator_of
from func.message_passing.message_counts import MessageCounts
from func.transforms.boundary import name_of
from func.transforms.transformed import transform


@transform
def spmd(
    f: Callable[..., Any],
    comm: Any,
    axis_name: str = "ranks",
    *,
    check: bool = True,
    timeout: float | None = None,
) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """Run a function on every process of an MPI communicator: single program, multiple data.

    Each process calls the result with its own arguments and gets its own output. Inside, `func.collectives` finds the
    processes under `axis_name`. A program that runs under `func.vmap(f, axis_name="ranks")` in one process runs
    unchanged under `func.spmd(f, comm, "ranks")`, with equal results up to the order of sums. Transforms go inside:
    `func.spmd(func.grad(f), comm)`. Their derivatives are those of the vmap: `func.grad` of a loss on each rank
    differentiates the sum of the losses of all ranks. So differentiate the part of each rank, or the `pmean` of the
    parts; their `psum` would count for each rank.

    The first call, in which all processes take part, duplicates the communicator. `result.traffic` counts the messages
    and bytes of its calls.

    Args:
        f: The function.
        comm: A communicator of mpi4py, such as `MPI.COMM_WORLD`.
        axis_name: The name for `func.collectives`.
        check: Ranks compare their next actions before each message, and meet at the end. An error on one rank then
            raises on all, and ranks that differ get an error instead of waiting forever. It costs one message of 32
            bytes each time. Without it, an error ends all processes by `MPI_Abort`.
        timeout: Seconds that a rank waits for the others in a collective; None: forever.

    Raises:
        ArgumentError: A transform runs around the call (a ValueError).
        CollectiveError: Ranks called different collectives, or one waited too long (a RuntimeError).
        CommunicatorError: comm is not a communicator, or was freed (a ValueError).
        RankError: The function failed on another rank; the message has its traceback (a RuntimeError).

    Example:
        In one process:

        >>> import numpy as np, func
        >>> def share(x):
        ...     return x / func.collectives.psum(x, "ranks")
        >>> func.vmap(share, axis_name="ranks")(np.array([1.0, 1.0, 2.0]))
        array([0.25, 0.25, 0.5 ])

        On three, with `mpiexec -n 3 python program.py`: `func.spmd(share, MPI.COMM_WORLD)(x)`, where x is 1.0, 1.0
        and 2.0.
    """
    if not isinstance(axis_name, str):
        raise TypeError(f"func.spmd: axis_name must be a string, got {axis_name!r}")
    if timeout is not None and not timeout > 0:
        raise ArgumentError(f"func.spmd: timeout must be a positive number of seconds, or None, got {timeout!r}")
    check_communicator(comm)
    traffic = MessageCounts()

    def on_all_ranks(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        around = current_transform()
        if around is not None:
            raise ArgumentError(
                f"func.spmd of {name_of(f)} is called inside of func.{around.transform}{at_line()}\n"
                f"Transforms go inside, where errors of one rank reach the others: "
                f"func.spmd(func.{around.transform}(f), comm)."
            )
        ranks = communicator_of(comm, check, timeout)
        outer = ranks.meters
        ranks.meters = (*outer, traffic)
        with running_on(RankAxis(axis_name, ranks, len(running_vmaps()))), passes_by_nodes():
            try:
                out = f(*args, **kwargs)
                ranks.finish()
            except BaseException as error:
                ranks.fail(error)
                raise
            finally:
                ranks.meters = outer
                ranks.channel.has_announced = False
        return out

    on_all_ranks.traffic = traffic  # type: ignore[attr-defined]
    return on_all_ranks
