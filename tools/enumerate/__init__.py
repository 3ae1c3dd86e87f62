"""The machines that enumerate small programs, run them in every mode, and compare them with the truth.

    python -m tools.enumerate                                # each machine for its share of two minutes, sampled
    python -m tools.enumerate compiled --complete --jobs 2   # all programs of one machine
    python -m tools.enumerate memory --part views --time 10m # one part of a machine
    python -m tools.enumerate memory --part views --program 0.3.1.2   # one program again

A machine is one module of this folder with `PARTS`, a tuple of `scope.Part`, and `QUICK`, how many programs of each
part the tests run. A part has two functions:

    def build(choices: Choices) -> Any       # one program; everything that differs comes from choices.pick(options)
    def check(program: Any) -> str | None    # what differs from the truth, in words, or None

`build` raises `scope.OutOfScope` for choices that make no program of the part. `str(program)` is the program as a
reader would run it. Errors that func raises on purpose are not differences if `check` declares them; other exceptions
are.

The parts of a machine are complete when each of them has ended by itself under `--complete`. Smaller programs come
first where `build` picks from small to large, so the first difference of a class is its smallest.
"""
