"""Peak memory of the gradient of an MLP, each contestant in a process of its own: python -m benchmarks.memory

The peak is that of the process (VmHWM) during the third call minus its resident memory before the first, so libraries
and data do not count, results do.
"""

import argparse
import subprocess
import sys

SIZES, BATCH = (784, 2048, 2048, 10), 4096

_COMMON = f"""
import numpy as np
rng = np.random.default_rng(0)
sizes = {SIZES!r}
params = [
    (rng.normal(size=(m, n)).astype(np.float32) / np.float32(m**0.5), np.zeros(n, np.float32))
    for m, n in zip(sizes[:-1], sizes[1:])
]
images = rng.normal(size=({BATCH}, sizes[0])).astype(np.float32)
targets = np.eye(10, dtype=np.float32)[rng.integers(0, 10, {BATCH})]

def make_loss(np):
    def loss(params, images, targets):
        x = images
        for w, b in params[:-1]:
            x = np.tanh(x @ w + b)
        w, b = params[-1]
        return np.mean((x @ w + b - targets) ** 2)
    return loss

def status(word):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(word))

def measured(call):
    before = status("VmRSS")
    call()
    call()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    call()
    print(status("VmHWM") - before)
"""
CONTESTANTS = {
    "func": "import func\ng = func.grad(make_loss(np))\nmeasured(lambda: g(params, images, targets))",
    "func.jit": "import func\ng = func.jit(func.grad(make_loss(np)))\nmeasured(lambda: g(params, images, targets))",
    "jax.jit": (
        "import jax\ng = jax.jit(jax.grad(make_loss(jax.numpy)))\n"
        "data = jax.tree.map(jax.numpy.asarray, (params, images, targets))\n"
        "jax.block_until_ready(data)\nmeasured(lambda: jax.block_until_ready(g(*data)))"
    ),
}


def main() -> None:
    """Print a row for each contestant, and the ratios that have bars."""
    argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__).parse_args()
    peaks: dict[str, int] = {}
    for name, code in CONTESTANTS.items():
        done = subprocess.run([sys.executable, "-c", _COMMON + code], capture_output=True, text=True)
        if done.returncode:
            print(f"{name:<10} failed: {done.stderr.strip().splitlines()[-1]}")
            continue
        peaks[name] = int(done.stdout.split()[-1])
        print(f"{name:<10} {peaks[name] / 2**20:8.1f} MiB")
    for peer, limit in (("func", 1.0), ("jax.jit", 1.1)):
        if peer in peaks and "func.jit" in peaks:
            ratio = peaks["func.jit"] / peaks[peer]
            print(f"func.jit ≤ {limit} of {peer}: {ratio:.2f}, {'reached' if ratio <= limit else 'MISSED'}")


if __name__ == "__main__":
    main()
