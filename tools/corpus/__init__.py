"""The corpus: functions of installed packages that nobody wrote for func, in every transform, against differences.

    python -m tools.corpus fluids                        # all numeric functions of a package
    python -m tools.corpus colour --limit 60 --seed 7    # a sample of them, which the seed names
    python -m tools.corpus fluids --only friction.Colebrook   # some functions again, with their errors in full
    python -m tools.corpus --all --json corpus.json      # the packages of the table in docs/numpy.md

`candidates` finds the functions, `sampling` calls them with arguments that their parameters' names suggest, `checks`
runs the transforms, `classes` counts. A function belongs to the corpus if some sampled arguments give finite numbers,
the same ones twice. They must change smoothly with at least one argument: central differences with two steps agree.
Each transform is right, silently wrong or refused, with the plain function and inside
`func.intercept(modules=[package])`.

Functions run in processes that end when one takes too long, crashes or fills the memory. The next one then goes on.
"""
