"""The differential tester: random programs, run by func in every mode and compared with the truth.

    python -m tools.fuzz                                 # two minutes of all campaigns on two cores
    python -m tools.fuzz --time 2h --jobs 2 --seed 7     # longer, other programs
    python -m tools.fuzz nests threads --time 10m        # some campaigns
    python -m tools.fuzz nests --seed 7 --case 1234      # one case again, made small

A campaign is one module of this folder with a function

    def case(choices: random.Random, tally: Tally) -> None

that draws one program from `choices`. Nothing else may be random, so that a case can run again and be made small. It
describes the program with `tally.show(text)`, runs it in several ways, and raises an exception for a difference;
`AssertionError` with both results is usual. It counts comparisons with `tally.checked()` and refusals by name, which
are not differences, with `tally.refused(error)`. `QUICK`, an integer of the module, is the number of cases in the
tests. A module may have a function `unavailable()`, which returns the reason why the campaign cannot run here, or None.

Every campaign runs in a separate process. A process that dies, or a case that takes longer than two minutes, is a
difference, too.
"""
