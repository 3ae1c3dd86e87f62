"""The first programs of five kinds of users work at once, or raise an error that contains the cure."""

import contextlib
import io
import pathlib
import re
import tomllib
import traceback

import numpy as np
import pytest

import func
from tests.support.tracebacks import engine_frames

PROGRAMS = tomllib.loads((pathlib.Path(__file__).parent / "first_programs.toml").read_text())["program"]


@pytest.mark.parametrize("program", PROGRAMS, ids=[program["name"] for program in PROGRAMS])
def test_first_programs(program, tmp_path, monkeypatch):
    if "extra" in program:
        pytest.importorskip(program["extra"], reason="of the extra bench")
    monkeypatch.chdir(tmp_path)
    code = compile(program["source"], "first.py", "exec")
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), np.errstate(all="ignore"):
            exec(code, {"__name__": "__main__", "func": func, "np": np})
    except Exception as error:
        assert "cure" in program, error
        assert re.search(program["cure"], "".join(traceback.format_exception_only(error)))
        assert engine_frames(error) == []
    else:
        assert "cure" not in program
        assert "print" not in program["source"] or out.getvalue().strip()
