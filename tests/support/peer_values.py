"""The results of the programs of `tests/project/peer_programs.py`.

`python -m tests.support.peer_values LIBRARY` runs programs of another library, away from the tests: these libraries
start threads, and set warnings that are errors here. It prints a JSON object from rows to values.
"""

import ast
import importlib
import json
import sys
import warnings
from typing import Any


def run_program(text: str, names: dict[str, Any]) -> Any:
    """The value of the last expression of a program."""
    body = ast.parse(text)
    last = body.body.pop()
    assert isinstance(last, ast.Expr), text
    names = dict(names)
    exec(compile(body, text, "exec"), names)
    return eval(compile(ast.Expression(last.value), text, "eval"), names)


def plain(value: Any) -> Any:
    """Numbers and nested lists of them, for arrays of any library in any structure."""
    if isinstance(value, dict):
        return [plain(value[key]) for key in sorted(value)]
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, str):
        return value
    if hasattr(value, "detach"):
        value = value.detach()
    import numpy as np

    array = np.asarray(value)
    return (array if array.dtype.kind in "fc" else array.astype(float)).tolist()


def exists(name: str) -> bool:
    """Whether a dotted name stands for something; modules on the way are imported."""
    parts = name.split(".")
    thing: Any = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        if not hasattr(thing, part):
            try:
                importlib.import_module(".".join(parts[:i]))
            except ImportError:
                return False
        thing = getattr(thing, part)
    return True


def names_for(library: str) -> dict[str, Any]:
    """The names that programs of a library know: its modules, and functions and arrays made of it."""
    import numpy as np

    names: dict[str, Any] = {"np": np, "s": 0.7}
    if library == "func":
        xp: Any = np
        names["func"] = importlib.import_module("func")
    elif library == "jax":
        xp = importlib.import_module("jax.numpy")
        jax = importlib.import_module("jax")
        names |= {"jax": jax, "jnp": xp, "lax": jax.lax}
    elif library == "torch":
        xp = torch = importlib.import_module("torch")
        names |= {"torch": torch, "F": importlib.import_module("torch.nn.functional")}
    else:
        xp = importlib.import_module("autograd.numpy")
        names |= {"autograd": importlib.import_module("autograd"), "np": xp}
    array = xp.tensor if library == "torch" else xp.array

    def f(a: Any) -> Any:
        return (xp.sin(a) * a).sum()

    def g(a: Any) -> Any:
        return xp.sin(a) * a[0]

    names |= {"f": f, "g": g, "x": array([0.5, 1.0, 2.0]), "v": array([1.0, 0.0, -1.0])}
    return names | {"plain": np.arange(12.0).reshape(3, 4), "exists": exists}


def outcome(text: str, names: dict[str, Any]) -> Any:
    """The plain value of a program, or "error" where it raises one."""
    try:
        return plain(run_program(text, names))
    except Exception:
        return "error"


def main(library: str) -> None:
    """Read programs by name from the standard input, and print their values."""
    warnings.simplefilter("ignore")
    programs = json.loads(sys.stdin.read())
    names = names_for(library)
    print(json.dumps({name: outcome(text, names) for name, text in programs.items()}))


if __name__ == "__main__":
    main(sys.argv[1])
