"""The differential tester: random programs, run by func in every mode and compared with the truth.

    python -m tools.fuzz                                 # two minutes of all campaigns on two cores
    python -m tools.fuzz --time 2h --jobs 2 --seed 7     # longer, other programs
    python -m tools.fuzz nests threads --time 10m        # some campaigns
    python -m tools.fuzz nests --seed 7 --case 1234      # one case again, made small

A campaign is one module of this folder with a function

    def case(choices: random.Random, tally: Tally) -> None

that draws one program from `choices` (nothing else may be random, so that a case can be run again and made small), says
what it is with `tally.show(text)`, runs it in several ways, and raises an exception where they differ; `AssertionError`
with both results is usual. It counts comparisons with `tally.checked()` and refusals by name, which are no differences,
with `tally.refused(error)`. `QUICK`, an integer of the module, is how many cases the tests run. A module may have a
function `unavailable()` that says why the campaign cannot run here, or None.

Every campaign runs in a process of its own. A process that dies, or a case that takes longer than two minutes, is a
difference, too.
"""
