"""The command line of the machines: `python -m tools.enumerate --help`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tools.enumerate import scope
from tools.fuzz.__main__ import seconds


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Enumerate small programs and compare them with the truth.")
    parser.add_argument("machines", nargs="*", default=scope.machines(), help="machines; all of them by default")
    parser.add_argument("--part", help="only this part")
    parser.add_argument("--time", help="time in all, such as 90s, 10m, 2h; 2m by default, and no limit with --complete")
    parser.add_argument("--complete", action="store_true", help="all programs, in the order of their paths")
    parser.add_argument("--from", dest="start", default="", help="the path from which a complete run goes on")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--program", help="the path of one program of --part, which is run again")
    options = parser.parse_args()
    chosen = [
        (machine, part.name)
        for machine in options.machines
        for part in scope.parts(machine)
        if options.part in (None, part.name)
    ]
    if options.program is not None:
        part = next(part for machine, name in chosen for part in scope.parts(machine) if part.name == name)
        difference = scope.compare(part, options.program, scope.replayed(part, options.program))
        print("no difference" if difference is None else f"{difference.program}\n{difference.text}")
        return 0 if difference is None else 1
    given = options.time or ("" if options.complete else "2m")
    limit = seconds(given) / len(chosen) if given else None
    found = 0
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for machine, name in chosen:
            calls = [
                {"complete": options.complete, "limit": limit, "seed": options.seed, "start": options.start}
                | {"worker": (i, options.jobs)}
                for i in range(options.jobs)
            ]
            outcomes = list(pool.map(scope.run_named, [machine] * len(calls), [name] * len(calls), calls))
            programs = sum(outcome.programs for outcome in outcomes)
            kinds = sum((outcome.kinds for outcome in outcomes), Counter())
            word = "all" if all(outcome.is_complete for outcome in outcomes) else "sampled"
            stopped = min(
                [outcome.stopped_at for outcome in outcomes if outcome.stopped_at], key=scope.indices, default=""
            )
            word = f"up to {stopped}" if stopped else f"all from {options.start}" if options.start else word
            print(f"{machine}.{name}: {programs:,} programs ({word}), {sum(kinds.values())} differences", flush=True)
            found += sum(kinds.values())
            seen: Counter[str] = Counter()
            for difference in (difference for outcome in outcomes for difference in outcome.differences):
                kind = difference.text.partition("\n")[0]
                seen[kind] += 1
                if seen[kind] == 1:
                    print(f"  [{kinds[kind]} times] --part {name} --program {difference.path}")
                    print("    " + f"{difference.program}\n{difference.text}".replace("\n", "\n    "), flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
