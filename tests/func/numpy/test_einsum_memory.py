"""How results of einsum lie in memory decides whether `ravel` is a view: in every mode as in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

SUBSCRIPTS = ["ijk,ilk->ijl", "ijk,ikl->ijl", "ijk,ijl->lk", "ij,jk->ki", "iij->ji", "ij,jk,kl->li", "ij,kl->kjli"]
OPTIONS: list[dict[str, Any]] = [{}, {"optimize": True}, {"order": "F"}, {"order": "A"}]
MODES: dict[str, Callable[..., Any]] = {
    "eager": lambda f, *xs: func.jvp(f, xs, xs)[0],
    "vmap": lambda f, *xs: func.vmap(f)(*[x[None] for x in xs])[0],
    "jit": lambda f, *xs: func.jit(f)(*xs),
    "jit of vmap": lambda f, *xs: func.jit(func.vmap(f))(*[x[None] for x in xs])[0],
    "jit of jvp": lambda f, *xs: func.jit(lambda *xs: func.jvp(f, xs, xs)[0])(*xs),
}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_a_write_through_ravel_reaches_the_result_when_numpy_shows_it(subscripts: str, options: dict[str, Any]) -> None:
    def written(*operands: Any) -> Any:
        result = np.einsum(subscripts, *operands, **options)
        result.ravel()[0] = 100.0
        return result

    rng = np.random.default_rng(0)
    terms = subscripts.split("->")[0].split(",")
    for orders in itertools.product("CF", repeat=len(terms)):
        xs = [np.array(rng.normal(size=(2,) * len(t)), order=o) for t, o in zip(terms, orders, strict=True)]  # type: ignore[call-overload]
        for name, run in MODES.items():
            np.testing.assert_allclose(run(written, *xs), written(*xs), err_msg=f"{orders} {name}")


def test_one_program_serves_all_layouts_until_a_view_of_the_result_is_written() -> None:
    f = func.jit(lambda x, y: np.einsum("ijk,ilk->ijl", x, y))
    x = np.ones((2, 2, 2))
    f(x, x)
    f(x, np.asfortranarray(x))
    assert f.cache_info().misses == 1
