"""Exported C: a robot arm and a controller against CasADi's C, and twelve workloads against `func.jit`.

`python -m benchmarks.c_export [--rounds N] [--only TEXT] [--portable | --targets] [--threads N]` prints a row for each
function and whether the bars hold. One compiler, with the same options, compiles both texts. C code times the calls, in
interleaved rounds, and the minimum counts. CasADi is left out where it does not import.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve

import func
from func.compilation.c_export import CModule

FLAGS = ("-std=c99", "-O3", "-fno-math-errno", "-fno-trapping-math")
TARGETS = '-DFUNC_TARGETS="default","arch=x86-64-v3","arch=x86-64-v4"'
TIME_BAR, SIZE_BAR, JIT_BAR = 0.6, 0.5, 1.5
"""At most these shares of CasADi's time and of its source, and of `func.jit`'s time."""
BLOCK = 0.004
"""Seconds that a contestant runs in a round."""


# -- the arm: recursive Newton-Euler and composite inertias, in Featherstone's spatial algebra ------------------------
JOINTS = 7
TURNS = [0, -1, 1, 1, -1, 1, 1]
"""Quarter turns about x from one joint's axis to the next."""
OFFSETS = [(0, 0, 0.333), (0, 0, 0), (0, -0.316, 0), (0.0825, 0, 0), (-0.0825, 0.384, 0), (0, 0, 0), (0.088, 0, 0)]
MASSES = [4.97, 0.65, 3.23, 3.59, 1.23, 1.67, 0.74]
CENTRES = [(0.004, 0.002, -0.05), (-0.003, -0.03, 0.003), (0.028, 0.039, -0.067), (-0.053, 0.104, 0.027)]
CENTRES += [(-0.012, 0.041, -0.038), (0.06, -0.014, -0.01), (0.01, -0.004, 0.062)]
GRAVITY = 9.81


def skew(x: Any, xp: Any) -> Any:
    """The matrix of the cross product with x."""
    return xp.matrix([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def inertia(link: int) -> Any:
    """The spatial inertia of a link: numbers."""
    mass, centre = MASSES[link], skew(CENTRES[link], NUMPY)
    own = np.diag([0.03, 0.02, 0.01]) * mass / 3
    return np.block([[own + mass * centre @ centre.T, mass * centre], [mass * centre.T, mass * np.eye(3)]])


def dynamics(q: Any, speed: Any, torque: Any, xp: Any, solve: Callable[..., Any]) -> Any:
    """The accelerations of the joints."""
    axis = xp.vector([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    velocity = xp.vector([0.0] * 6)
    acceleration = xp.vector([0.0, 0.0, 0.0, 0.0, 0.0, GRAVITY])
    moves, forces = [], []
    for i in range(JOINTS):
        c, s = xp.cos(q[i]), xp.sin(q[i])
        quarter = np.array(
            [[1.0, 0.0, 0.0], [0.0, 1.0 - abs(TURNS[i]), -TURNS[i]], [0.0, TURNS[i], 1.0 - abs(TURNS[i])]]
        )
        turn = (quarter @ xp.matrix([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])).T
        move = xp.block([[turn, np.zeros((3, 3))], [-turn @ skew(OFFSETS[i], NUMPY), turn]])
        velocity = move @ velocity + axis * speed[i]
        acceleration = move @ acceleration + crossed(velocity, axis * speed[i], xp)
        momentum = inertia(i) @ velocity
        forces.append(inertia(i) @ acceleration + crossed_dual(velocity, momentum, xp))
        moves.append(move)
    bias: list[Any] = [0.0] * JOINTS
    rows: list[list[Any]] = [[0.0] * JOINTS for _ in range(JOINTS)]
    composite = [inertia(i) for i in range(JOINTS)]
    for i in reversed(range(JOINTS)):
        bias[i] = forces[i][2]
        if i > 0:
            forces[i - 1] = forces[i - 1] + moves[i].T @ forces[i]
            composite[i - 1] = composite[i - 1] + moves[i].T @ composite[i] @ moves[i]
        force = composite[i] @ axis
        rows[i][i] = force[2]
        for j in reversed(range(i)):
            force = moves[j + 1].T @ force
            rows[i][j] = rows[j][i] = force[2]
    return solve(xp.matrix(rows), torque - xp.vector(bias))


def crossed(v: Any, m: Any, xp: Any) -> Any:
    """The spatial cross product of motions."""
    return xp.join([xp.cross(v[:3], m[:3]), xp.cross(v[:3], m[3:]) + xp.cross(v[3:], m[:3])])


def crossed_dual(v: Any, f: Any, xp: Any) -> Any:
    """The spatial cross product of a motion and a force."""
    return xp.join([xp.cross(v[:3], f[:3]) + xp.cross(v[3:], f[3:]), xp.cross(v[:3], f[3:])])


NUMPY = SimpleNamespace(
    cos=np.cos,
    sin=np.sin,
    cross=np.cross,
    vector=lambda values: np.array(values),  # looked up in the call: transforms replace it
    matrix=lambda rows: np.array(rows),
    block=np.block,
    join=np.concatenate,
)
SOLVERS = {
    "LU": np.linalg.solve,
    "Cholesky": lambda matrix, right: cho_solve(cho_factor(matrix, lower=True), right),
    "positive": lambda matrix, right: solve(matrix, right, assume_a="pos"),
}


def accelerations(solver: str) -> Callable[..., Any]:
    """The arm's forward dynamics as a function of NumPy."""

    def arm(q: Any, speed: Any, torque: Any) -> Any:
        return dynamics(q, speed, torque, NUMPY, SOLVERS[solver])

    return arm


def with_jacobian(solver: str) -> Callable[..., Any]:
    """The same and its Jacobian by angles and speeds."""
    value = accelerations(solver)

    def arm(q: Any, speed: Any, torque: Any) -> Any:
        by_angles, by_speeds = func.jacobian(value, (0, 1))(q, speed, torque)
        return value(q, speed, torque), np.concatenate([by_angles, by_speeds], axis=1)

    return arm


def casadi_arm(solver: str, derivative: bool) -> Any:
    """The arm for CasADi, as a graph of scalars."""
    ca = import_module("casadi")
    xp = SimpleNamespace(
        cos=ca.cos,
        sin=ca.sin,
        cross=ca.cross,
        vector=lambda values: ca.vertcat(*values),
        matrix=lambda rows: ca.vertcat(*[ca.horzcat(*row) for row in rows]),
        block=lambda rows: ca.blockcat(rows),
        join=lambda parts: ca.vertcat(*parts),
    )

    def solve(matrix: Any, right: Any) -> Any:
        return ca.solve(matrix, right) if solver == "QR" else ca.ldl_solve(right, *ca.ldl(matrix))

    q, speed, torque = (ca.SX.sym(name, JOINTS) for name in ("q", "speed", "torque"))
    out = dynamics(q, speed, torque, xp, solve)
    outs = [out, ca.densify(ca.jacobian(out, ca.vertcat(q, speed)))] if derivative else [out]
    return ca.Function("peer", [q, speed, torque], [ca.densify(each) for each in outs])


# -- the controller: a car that follows a path ------------------------------------------------------------------------
STEPS = 100
PATH = np.stack([0.1 * np.arange(STEPS), np.sin(0.05 * np.arange(STEPS))], axis=1)


def drive(state: Any, u: Any, xp: Any) -> list[Any]:
    """The position, heading and speed of a car after a step."""
    x, y, heading, speed = (state[k] for k in range(4))
    return [
        x + 0.1 * speed * xp.cos(heading),
        y + 0.1 * speed * xp.sin(heading),
        heading + 0.1 * speed * u[1],
        speed + 0.1 * u[0],
    ]


def control_cost(u: Any, start: Any) -> Any:
    """The cost of 100 steps of control (100, 2)."""

    def step(carry: Any, inputs: Any) -> tuple[Any, None]:
        state, total = carry
        now, target = inputs
        after = np.stack(drive(state, now, np))
        miss = after[:2] - target
        return (after, total + miss @ miss + 0.1 * now @ now), None

    (_, total), _ = func.scan(step, (start, 0.0), (u, PATH))
    return total


def cost_and_gradient(u: Any, start: Any) -> Any:
    """The cost and its gradient."""
    gradient, cost = func.grad_and_value(control_cost)(u, start)
    return cost, gradient


def cost_gradient_hessian(u: Any, start: Any) -> Any:
    """The cost, its gradient and its Hessian (200, 200)."""
    cost, gradient = cost_and_gradient(u, start)
    return cost, gradient, func.hessian(control_cost)(u, start).reshape(2 * STEPS, 2 * STEPS)


def casadi_controller(hessian: bool, scalars: bool) -> Any:
    """The controller for CasADi: a graph of scalars, or a map that accumulates."""
    ca = import_module("casadi")
    kind = ca.SX if scalars else ca.MX
    u, start = kind.sym("u", 2 * STEPS), kind.sym("start", 4)
    inputs = ca.reshape(u, 2, STEPS)
    if scalars:
        total, state = 0, start
        for k in range(STEPS):
            state = ca.vertcat(*drive(state, inputs[:, k], ca))
            total = total + ca.sumsqr(state[:2] - PATH[k]) + 0.1 * ca.sumsqr(inputs[:, k])
    else:
        x, now = ca.SX.sym("x", 4), ca.SX.sym("now", 2)
        move = ca.Function("move", [x, now], [ca.vertcat(*drive(x, now, ca))])
        states = move.mapaccum(STEPS)(start, inputs)
        total = ca.sumsqr(states[:2, :] - PATH.T) + 0.1 * ca.sumsqr(u)
    outs = [total]
    if hessian:
        second, first = ca.hessian(total, u)
        outs += [ca.densify(first), ca.densify(second)]
    else:
        outs += [ca.densify(ca.gradient(total, u))]
    return ca.Function("peer", [u, start], outs)


# -- compiled calls, timed in C ---------------------------------------------------------------------------------------
DRIVER = """
#include <stdlib.h>
#include <string.h>
#include <time.h>
{prelude}
static double *memory[{count}];
static double work[{workspace}];
void *place(int number, long size) {{ return memory[number] = calloc((size_t)size + 1, 8); }}
double seconds(long repeats) {{
    struct timespec begin, end;
    {setup}
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long i = 0; i < repeats; ++i) {{
        {call};
    }}
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}}
"""


class Timed:
    """A compiled function with arguments in its memory."""

    def __init__(
        self, source: str, driver: str, args: Sequence[Any], sizes: Sequence[int], folder: Path, flags: Sequence[str]
    ) -> None:
        folder.mkdir()
        (folder / "code.c").write_text(source)
        (folder / "driver.c").write_text(driver)
        library = folder / "code.so"
        words = ["gcc", "-shared", "-fPIC", "-o", str(library)]
        begin = time.perf_counter()
        (folder / "code.o").unlink(missing_ok=True)
        subprocess.run(["gcc", *flags, "-fPIC", "-c", "-o", str(folder / "code.o"), str(folder / "code.c")], check=True)
        self.compiling = time.perf_counter() - begin
        subprocess.run([*words, "-O1", str(folder / "driver.c"), str(folder / "code.o"), "-lm"], check=True)
        self.size = len(source)
        self._library = ctypes.CDLL(str(library))
        self._library.seconds.restype = ctypes.c_double
        self._library.place.restype = ctypes.POINTER(ctypes.c_double)
        places = []
        for number, size in enumerate(sizes):
            address = self._library.place(number, ctypes.c_long(size))
            places.append(np.ctypeslib.as_array(address, (max(1, size),))[:size])
        for array, arg in zip(places, args, strict=False):
            array[:] = np.ravel(arg)
        self.outputs = places[len(args) :]
        self.repeats = 1
        while self.run() * self.repeats < BLOCK:
            self.repeats *= 2

    def run(self) -> float:
        """Seconds for a call."""
        return float(self._library.seconds(ctypes.c_long(self.repeats))) / self.repeats


def ours(module: CModule, args: Sequence[Any], folder: Path, flags: Sequence[str]) -> Timed:
    """Exported C."""
    count = len(module.inputs) + len(module.outputs)
    passed = [
        f"*memory[{place}]" if place < len(module.inputs) and array.by_value else f"memory[{place}]"
        for place, array in enumerate((*module.inputs, *module.outputs))
    ]
    driver = DRIVER.format(
        prelude=module.header,
        count=count,
        workspace=module.workspace // 8 + 8,
        setup="",
        call=f"{module.name}({', '.join(passed)}, work)",
    )
    sizes = [int(np.prod(array.shape)) for array in (*module.inputs, *module.outputs)]
    folder_source = module.source.replace(f'#include "{module.name}.h"', module.header)
    made = Timed(folder_source, driver, args, sizes, folder, flags)
    made.size = len(module.source)
    return made


def theirs(function: Any, args: Sequence[Any], folder: Path, flags: Sequence[str]) -> Timed:
    """CasADi's C."""
    ca = import_module("casadi")
    generator = ca.CodeGenerator("code.c", {"with_header": False})
    generator.add(function)
    source = generator.dump()
    inputs, outputs = function.n_in(), function.n_out()
    sizes = [function.nnz_in(i) for i in range(inputs)] + [function.nnz_out(i) for i in range(outputs)]
    setup = (
        f"const double *arg[{function.sz_arg()} + 1]; double *res[{function.sz_res()} + 1]; "
        f"static long long iw[{function.sz_iw()} + 1];"
        + "".join([f" arg[{i}] = memory[{i}];" for i in range(inputs)])
        + "".join([f" res[{i}] = memory[{inputs + i}];" for i in range(outputs)])
    )
    driver = DRIVER.format(
        prelude="int peer(const double **, double **, long long *, double *, int);",
        count=inputs + outputs,
        workspace=function.sz_w() + 8,
        setup=setup,
        call="peer(arg, res, iw, work, 0)",
    )
    return Timed(source, driver, args, sizes, folder, flags)


class Work(NamedTuple):
    """A function, and the ways to write it for CasADi."""

    title: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    peers: dict[str, Callable[[], Any]]
    transposed: bool = False
    """Whether CasADi's matrices, by columns, are transposes of ours."""


def works() -> list[Work]:
    """The functions that both have."""
    rng = np.random.default_rng(0)
    state = tuple([rng.normal(size=JOINTS) for _ in range(3)])
    controls = 0.1 * rng.normal(size=(STEPS, 2)), np.array([0.0, 0.0, 0.1, 1.0])
    rows = []
    for solver in SOLVERS:
        peers = {name: (lambda name=name: casadi_arm(name, False)) for name in ("QR", "LDL")}
        rows.append(Work(f"arm, {solver}", accelerations(solver), state, peers))
        peers = {name: (lambda name=name: casadi_arm(name, True)) for name in ("QR", "LDL")}
        rows.append(Work(f"arm and Jacobian, {solver}", with_jacobian(solver), state, peers))
    rows.append(
        Work(
            "control, cost and gradient",
            cost_and_gradient,
            controls,
            {"scalars": lambda: casadi_controller(False, True), "mapaccum": lambda: casadi_controller(False, False)},
        )
    )
    rows.append(
        Work(
            "control, cost, gradient and Hessian",
            cost_gradient_hessian,
            controls,
            {"mapaccum": lambda: casadi_controller(True, False)},
        )
    )
    return rows


def agree(work: Work, mine: Timed, peer: Timed) -> bool:
    """Whether the results are equal; matrices of CasADi lie by columns."""
    wanted = func.tree.leaves(work.function(*work.args))
    for value, ours_, theirs_ in zip(wanted, mine.outputs, peer.outputs, strict=True):
        expected = np.asarray(value)
        by_columns = theirs_.reshape(expected.shape[::-1]).T if "arm" in work.title else theirs_.reshape(expected.shape)
        for got in (ours_.reshape(expected.shape), by_columns):
            if not np.allclose(got, expected, rtol=1e-7, atol=1e-7 * np.max(np.abs(expected))):
                return False
    return True


def beside_casadi(rounds: int, only: str, flags: Sequence[str]) -> None:
    """Print the table of both."""
    shares = f"ratio (bar {TIME_BAR}) | source, kB | CasADi, kB | ratio (bar {SIZE_BAR})"
    print(f"| function | us | CasADi, us | {shares} | gcc, s |")
    print("|---|---|---|---|---|---|---|---|")
    for work in works():
        if only not in work.title:
            continue
        with tempfile.TemporaryDirectory() as folder:
            module = func.to_c(work.function, name="code", finite=True)(*work.args)
            mine = ours(module, work.args, Path(folder) / "func", flags)
            mine.run()
            for title, write in work.peers.items():
                peer = theirs(write(), work.args, Path(folder) / title, flags)
                peer.run()
                same = agree(work, mine, peer)
                best = [float("inf"), float("inf")]
                for _ in range(rounds):
                    best = [min(best[0], mine.run()), min(best[1], peer.run())]
                print(
                    f"| {work.title}; CasADi {title} | {best[0] * 1e6:.3g} | {best[1] * 1e6:.3g} "
                    f"| {best[0] / best[1]:.2f} | {mine.size / 1e3:.0f} | {peer.size / 1e3:.0f} "
                    f"| {mine.size / peer.size:.2f} | {mine.compiling:.1f}, {peer.compiling:.1f} |"
                    + ("" if same else " RESULTS DIFFER"),
                    flush=True,
                )


# -- beside func.jit --------------------------------------------------------------------------------------------------
def jit_works() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The workloads."""
    rng = np.random.default_rng(1)

    def softmax(x: Any) -> Any:
        e = np.exp(x - np.max(x, axis=1, keepdims=True))
        return e / np.sum(e, axis=1, keepdims=True)

    def logistic(w: Any, x: Any, y: Any) -> Any:
        return np.mean(np.logaddexp(0.0, -y * (x @ w)))

    def mlp(params: Any, x: Any, y: Any) -> Any:
        w1, b1, w2, b2 = params
        return np.mean((np.tanh(x @ w1 + b1) @ w2 + b2 - y) ** 2)

    def rosenbrock(x: Any) -> Any:
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
        centred = x - np.mean(x, axis=1, keepdims=True)
        return centred / np.sqrt(np.mean(centred**2, axis=1, keepdims=True) + 1e-5) * scale + shift

    def likelihood(theta: Any, x: Any, y: Any) -> Any:
        distance = (x[:, None] - x[None, :]) ** 2
        factor = np.linalg.cholesky(np.exp(theta[0] - distance * np.exp(theta[1])) + 0.1 * np.eye(60))
        return 0.5 * y @ cho_solve((factor, True), y) + np.sum(np.log(np.diag(factor)))

    def pendulum(start: Any) -> Any:
        def rhs(s: Any) -> Any:
            return np.stack([s[1], -np.sin(s[0]) - 0.1 * s[1]])

        def step(s: Any, _: Any) -> Any:
            k1 = rhs(s)
            k2 = rhs(s + 0.005 * k1)
            k3 = rhs(s + 0.005 * k2)
            return s + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + rhs(s + 0.01 * k3)), None

        last, _ = func.scan(step, start, None, length=500)
        return np.sum(last**2)

    def black_scholes(s: Any, k: Any, t: Any, vol: Any) -> Any:
        from scipy.special import ndtr

        d1 = (np.log(s / k) + (0.02 + 0.5 * vol**2) * t) / (vol * np.sqrt(t))
        return np.sum(s * ndtr(d1) - k * np.exp(-0.02 * t) * ndtr(d1 - vol * np.sqrt(t)))

    def square(n: int) -> Any:
        return rng.normal(size=(n, n)) + n * np.eye(n)

    layers = [rng.normal(size=shape) * 0.1 for shape in ((20, 64), (64,), (64, 3), (3,))]
    prices = tuple([rng.uniform(*ends, 10_000) for ends in ((80, 120), (80, 120), (0.1, 2), (0.1, 0.5))])
    x = rng.normal(size=(512, 128))
    return {
        "softmax, 256 x 64": (softmax, (rng.normal(size=(256, 64)),)),
        "gradient of logistic regression, 2000 x 30": (
            func.grad(logistic),
            (rng.normal(size=30), rng.normal(size=(2000, 30)), np.sign(rng.normal(size=2000))),
        ),
        "gradient of an MLP, batch of 128": (
            func.grad(mlp),
            (layers, rng.normal(size=(128, 20)), rng.normal(size=(128, 3))),
        ),
        "Hessian of Rosenbrock's function, n = 50": (func.hessian(rosenbrock), (rng.normal(size=50),)),
        "layer normalisation, 512 x 128": (layer_norm, (x, rng.normal(size=128), rng.normal(size=128))),
        "gradient of a Gaussian process, n = 60": (
            func.grad(likelihood),
            (np.array([0.1, 0.2]), np.sort(rng.normal(size=60)), rng.normal(size=60)),
        ),
        "gradient of 500 Runge-Kutta steps": (func.grad(pendulum), (np.array([1.0, 0.0]),)),
        "gradient of 10000 Black-Scholes prices": (func.grad(black_scholes, (0, 3)), prices),
        "x y + x - y, 100000 elements": (
            lambda x, y: x * y + x - y,
            (rng.normal(size=100_000), rng.normal(size=100_000)),
        ),
        "inverse, 64 x 64": (np.linalg.inv, (square(64),)),
        "product, 128 x 128": (lambda a, b: a @ b, (square(128), square(128))),
        "solve, 128 x 128, 8 right-hand sides": (np.linalg.solve, (square(128), rng.normal(size=(128, 8)))),
        "inverse, 128 x 128": (np.linalg.inv, (square(128),)),
        "slogdet, 128 x 128": (lambda a: tuple(np.linalg.slogdet(a)), (square(128),)),
        "singular values, 128 x 128": (lambda a: np.linalg.svd(a, compute_uv=False), (square(128),)),
        "SVD, 128 x 128": (lambda a: tuple(np.linalg.svd(a)), (square(128),)),
        "QR, 128 x 128": (lambda a: tuple(np.linalg.qr(a)), (square(128),)),
        "Cholesky, 128 x 128": (lambda a: np.linalg.cholesky(a + a.T), (square(128),)),
        "symmetric eigenvalues, 128 x 128": (lambda a: tuple(np.linalg.eigh(a + a.T)), (square(128),)),
    }


def beside_jit(rounds: int, only: str, flags: Sequence[str]) -> None:
    """Print the table of exported C and compiled calls."""
    print(f"| function | C, us | jit, us | ratio (bar {JIT_BAR}) | source, kB | gcc, s |")
    print("|---|---|---|---|---|---|")
    for title, (function, args) in jit_works().items():
        if only not in title:
            continue
        with tempfile.TemporaryDirectory() as folder:
            module = func.to_c(function, name="code")(*args)
            mine = ours(module, func.tree.leaves(list(args)), Path(folder) / "func", flags)
            compiled = func.jit(function)
            compiled(*args)
            repeats = 1
            best = [float("inf"), float("inf")]
            for turn in range(rounds + 1):
                begin = time.perf_counter()
                for _ in range(repeats):
                    compiled(*args)
                spent = (time.perf_counter() - begin) / repeats
                if turn == 0:
                    repeats = max(1, int(BLOCK / spent))
                    continue
                best = [min(best[0], mine.run()), min(best[1], spent)]
        print(
            f"| {title} | {best[0] * 1e6:.3g} | {best[1] * 1e6:.3g} | {best[0] / best[1]:.2f} "
            f"| {mine.size / 1e3:.0f} | {mine.compiling:.1f} |",
            flush=True,
        )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--only", default="", help="functions with this text in their name")
    parser.add_argument("--portable", action="store_true", help="without -march=native")
    parser.add_argument("--targets", action="store_true", help="without -march=native, but for several processors")
    parser.add_argument("--threads", type=int, help="threads of func.jit")
    parser.add_argument("--table", choices=("casadi", "jit"), help="one table only")
    options = parser.parse_args()
    flags = (*FLAGS, TARGETS) if options.targets else FLAGS if options.portable else (*FLAGS, "-march=native")
    if options.threads:
        func.config.num_threads = options.threads
    if options.table != "jit":
        if find_spec("casadi") is None:
            print("CasADi is not installed: pip install casadi")
        else:
            beside_casadi(options.rounds, options.only, flags)
    if options.table != "casadi":
        beside_jit(options.rounds, options.only, flags)


if __name__ == "__main__":
    main()
