"""Elementary functions of native code against mpmath (accuracy) and NumPy or SciPy (special values)."""

import ctypes
import functools
import math
import os

import numpy as np
import pytest
import scipy.special

mpmath = pytest.importorskip("mpmath")
pytest.importorskip("llvmlite")

from func.backends import ir  # noqa: E402
from func.backends.array_helpers.arrays import sech_squared  # noqa: E402
from func.backends.llvm import machine  # noqa: E402
from func.backends.llvm.math.elementary import Elementary, names  # noqa: E402
from func.backends.llvm.math.own_functions import Features, host_features, module_of  # noqa: E402
from func.backends.scalars.math.registry import FUNCTIONS  # noqa: E402

POINTS = 2000
DTYPES = [np.float64, np.float32]

OWN = {"sech_squared": functools.partial(sech_squared, np), "tanh_with_sech_squared": np.tanh}
"""Functions that neither NumPy nor SciPy has."""
REFERENCE = {name: getattr(np, name, None) or getattr(scipy.special, name) for name in names() if name not in OWN} | OWN
NAMES = sorted(REFERENCE)

HOST = host_features()
MODES = [
    pytest.param(Features(libmvec=False, bits=HOST.bits, fma=HOST.fma), id="own"),
    pytest.param(Features(libmvec=False, bits=128, fma=False), id="own-128-unfused"),
    *([pytest.param(HOST, id="libmvec")] if HOST.libmvec else []),
]


@pytest.fixture(autouse=True)
def separate_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("FUNC_CACHE_DIR", str(tmp_path))


def compiled(name, dtype, features, lanes):
    """The function as a Python one of arrays, in steps of `lanes` elements, 0 for scalars."""
    scalar = ir.DoubleType() if dtype == np.float64 else ir.FloatType()
    kind = ir.VectorType(scalar, lanes) if lanes else scalar
    module, arity, size = ir.Module(), FUNCTIONS[name].arity, max(lanes, 1)
    i64 = ir.IntType(64)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [ir.PointerType()] * (arity + 1) + [i64]), "loop")
    entry, body, end = (function.append_basic_block() for _ in range(3))
    builder = ir.IRBuilder(entry)
    builder.branch(body)
    builder.position_at_end(body)
    i = builder.phi(i64)
    i.add_incoming(i64(0), entry)
    places = [builder.gep(base, [i], source_etype=scalar) for base in function.args[:-1]]
    loaded = [builder.load(place, align=dtype().itemsize, typ=kind) for place in places[:-1]]
    out = Elementary(module, features).call(builder, name, *loaded)
    assert out.type == kind
    builder.store(out, places[-1], align=dtype().itemsize)
    following = builder.add(i, i64(size))
    i.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, function.args[-1]), body, end)
    builder.position_at_end(end)
    builder.ret_void()
    code = machine.compile_ir(module)
    address = code.address("loop")
    loop = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (arity + 1), ctypes.c_int64)(address)

    def run(*arrays):
        count = -(-len(arrays[0]) // size) * size
        arrays = [np.resize(np.asarray(array, dtype), count) for array in arrays]
        out = np.empty(count, dtype)
        loop(*[array.ctypes.data for array in arrays], out.ctypes.data, count)
        return out

    run.code = code
    return run


def spread(random, low, high, count):
    """Numbers of both signs with uniform logarithms to base 10."""
    return 10 ** random.uniform(low, high, count) * random.choice([-1, 1], count)


def points(name, dtype):
    """Arguments over the domain, dense where a function bends, of every magnitude."""
    random = np.random.default_rng(6)
    double = dtype == np.float64
    least, most = (-320, 308) if double else (-44, 38)
    top = 709.7 if double else 88.7
    n = POINTS // 4
    near = random.uniform(-2, 2, n)
    tiny = spread(random, least, 0, n)
    every = spread(random, least, most, n)
    unit = np.r_[random.uniform(-1, 1, 2 * n), tiny, 1 - 10 ** random.uniform(-15, -1, n)]
    positive = np.r_[abs(every), abs(near), abs(tiny), 1 + spread(random, -15, -1, n)]
    turns = np.round(random.uniform(-1e5, 1e5, n)) * (np.pi / 2)
    angles = np.r_[random.uniform(-10, 10, n), random.uniform(-8e3, 8e3, n), turns, every, tiny]
    tail = np.r_[random.uniform(-7, 27 if double else 10, 2 * n), near, tiny]
    pairs = np.r_[near, every, tiny, near], np.r_[random.permutation(near), random.permutation(every), tiny[::-1], near]
    chances = np.r_[random.uniform(0, 1, 2 * n), abs(tiny), 1 - 10 ** random.uniform(-15, -1, n)]
    bases = np.r_[abs(every), random.uniform(0, 5, n), 1 + spread(random, -8, -1, n), -random.uniform(0, 5, n)]
    exponents = np.r_[
        spread(random, -6, 2, n), random.uniform(-20, 20, n), spread(random, 0, 5, n), np.round(20 * near)
    ]
    usual = np.r_[random.uniform(-top, top, 2 * n), near, tiny]
    table = {
        **dict.fromkeys(["exp", "expm1", "expit", "log_expit", "sinh", "cosh"], (usual,)),
        "exp2": (usual / math.log(2),),
        **dict.fromkeys(["log", "log2", "log10"], (positive,)),
        "log1p": (np.r_[unit, abs(every)],),
        **dict.fromkeys(["sin", "cos", "tan"], (angles,)),
        **dict.fromkeys(["arcsin", "arccos", "arctanh"], (unit,)),
        **dict.fromkeys(["arctan", "arcsinh", "cbrt"], (np.r_[every, near, tiny, 4 * near],)),
        "arccosh": (np.r_[1 + abs(tiny), 1 + abs(every), 1 + abs(near)],),
        **dict.fromkeys(["tanh", "tanh_with_sech_squared"], (np.r_[10 * near, near, tiny],)),
        "sech_squared": (np.r_[random.uniform(-1, 1, 2 * n) * (354.8 if double else 44.3), near, tiny],),
        **dict.fromkeys(["erf", "erfc"], (tail,)),
        **dict.fromkeys(["ndtr", "log_ndtr"], (-1.4 * tail,)),
        "logit": (chances,),
        "power": (bases, exponents),
        **dict.fromkeys(["arctan2", "hypot", "copysign"], pairs),
        **dict.fromkeys(["logaddexp", "logaddexp2"], (usual, random.permutation(usual))),
        "xlogy": (np.r_[near, near], np.r_[abs(every), abs(tiny)]),
        "xlog1py": (np.r_[near, near], np.r_[abs(every), unit[:n]]),
        "gammaln": (np.r_[random.uniform(0, 20, n), abs(tiny)],),
        "gamma": (np.r_[random.uniform(-10, 30, n), random.uniform(0, 170 if double else 34, n)],),
        "sqrt": (positive,),
        **dict.fromkeys(["absolute", "floor", "ceil", "trunc", "rint"], (np.r_[4 * near, every],)),
    }
    with np.errstate(all="ignore"):
        return tuple(column.astype(dtype) for column in table[name])


def specials(dtype):
    """Zeros, infinities, NaN, the ends of the range, whole and half numbers, of both signs."""
    info = np.finfo(dtype)
    sizes = [0, np.inf, 1, 2, 3, 0.5, 2.5, info.tiny, info.smallest_subnormal, info.tiny / 2, info.max, 1 + info.eps]
    sizes += [1e5, 1e22, 2**24 + 1, 2.0**53, 2.0**53 + 2, 89, 104, 127.5, 128, 150.5, 710, 745.5, 1024, 1075.5]
    with np.errstate(all="ignore"):
        return np.array([np.nan, *sizes, *[-size for size in sizes]]).astype(dtype)


def by_mpmath():
    mp = mpmath.mp
    lower = lambda x: mp.erfc(-x / mp.sqrt(2)) / 2  # noqa: E731
    log_ndtr = lambda x: mp.log(lower(x)) if x < 0 else mp.log1p(-lower(-x))  # noqa: E731
    direct = {name: getattr(mp, name) for name in names() if hasattr(mp, name)}
    inverse = {f"arc{name}": getattr(mp, f"a{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
    return {
        **direct,
        **inverse,
        "arctan2": mp.atan2,
        "power": mp.power,
        "sech_squared": lambda x: mp.sech(x) ** 2,
        "tanh_with_sech_squared": mp.tanh,
        "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
        "exp2": lambda x: mp.power(2, x),
        "log2": lambda x: mp.log(x) / mp.log(2),
        "expit": lambda x: 1 / (1 + mp.exp(-x)),
        "log_expit": lambda x: -mp.log1p(mp.exp(-x)),
        "logit": lambda x: mp.log(x) - mp.log1p(-x),
        "xlogy": lambda x, y: x * mp.log(y),
        "xlog1py": lambda x, y: x * mp.log1p(y),
        "ndtr": lower,
        "log_ndtr": log_ndtr,
        "gammaln": lambda x: mp.re(mp.loggamma(x)),
        "logaddexp": lambda x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y))),
        "logaddexp2": lambda x, y: max(x, y) + mp.log1p(mp.power(2, -abs(x - y))) / mp.log(2),
        "absolute": abs,
        "floor": mp.floor,
        "ceil": mp.ceil,
        "trunc": lambda x: mp.sign(x) * mp.floor(abs(x)),
        "rint": mp.nint,
        "copysign": lambda x, y: mpmath.mpf(math.copysign(x, y)),
    }


@functools.cache
def reference_values(name, dtype):
    """Arguments inside the domain, and the values there as sums of two float64."""
    function = by_mpmath()[name]
    arguments = points(name, dtype)
    keep = np.isfinite(arguments[0]) & np.isfinite(arguments[-1])
    if name in ("arccosh", "log1p", "arctanh", "logit", "xlog1py"):
        low, high = {"arccosh": (1, np.inf), "arctanh": (-1, 1), "logit": (0, 1)}.get(name, (-1, np.inf))
        keep &= (arguments[-1] >= low) & (arguments[-1] <= high)
        keep &= (arguments[-1] != low) & (arguments[-1] != high) | (name == "arccosh")
    keep &= (arguments[-1] != 0) | (name not in ("log", "log2", "log10", "logit", "xlogy", "gammaln"))
    arguments = tuple(column[keep] for column in arguments)
    with mpmath.workdps(40):
        values = [function(*map(mpmath.mpf, map(float, row))) for row in zip(*arguments, strict=True)]
        high = np.array([float(value) if abs(value) < 1e400 else math.inf * mpmath.sign(value) for value in values])
        rest = [float(v - h) if math.isfinite(h) else 0.0 for v, h in zip(values, map(float, high), strict=True)]
    return arguments, high.astype(np.float64), np.array(rest)


def errors(got, high, rest, dtype):
    """The distance in units in the last place."""
    info = np.finfo(dtype)
    with np.errstate(all="ignore"):
        rounded = high.astype(dtype)
        exponents = np.maximum(np.frexp(np.where(np.isfinite(rounded), rounded, 1))[1] - 1, info.minexp)
        units = (got.astype(np.float64) - high - rest) / np.ldexp(1.0, exponents - info.nmant)
    return np.where(np.isfinite(rounded) & np.isfinite(got), abs(units), np.where(got == rounded, 0, np.inf))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("features", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_accuracy_is_within_four_units_in_the_last_place(name, features, dtype):
    arguments, high, rest = reference_values(name, dtype)
    got = compiled(name, dtype, features, 512 // (8 * dtype().itemsize))(*arguments)[: len(high)]
    distances = errors(got, high, rest, dtype)
    if name.startswith("logaddexp"):
        scale = np.maximum(abs(np.maximum(*arguments)), 1)
        distances = distances * abs(np.spacing(high.astype(dtype))) / np.spacing(scale)
    worst = int(np.argmax(distances))
    assert distances[worst] <= 4, ([column[worst] for column in arguments], got[worst], high[worst])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("features", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_special_values_are_those_of_numpy(name, features, dtype):
    values = specials(dtype)
    arguments = (
        (values,) if FUNCTIONS[name].arity == 1 else tuple(np.ravel(grid) for grid in np.meshgrid(values, values))
    )
    with np.errstate(all="ignore"):
        expected = REFERENCE[name](*arguments)
    got = compiled(name, dtype, features, 8)(*arguments)[: len(expected)]
    assert_same_kind(name, arguments, got, expected)


def assert_same_kind(name, arguments, got, expected):
    """NaN, infinities, zeros and their signs are the same; the rest is close.

    Where SciPy's result leaves the range too early, mpmath decides.
    """
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        exact = (got == expected) & (np.signbit(got) == np.signbit(expected)) | np.isnan(got) & np.isnan(expected)
        near = np.isfinite(got) & np.isfinite(expected) & (abs(got - expected) <= 32 * np.spacing(abs(expected)))
    same = exact | near & ((got != 0) & (expected != 0) | (abs(expected) < 4 * info.smallest_subnormal))
    if name.startswith("logaddexp"):
        with np.errstate(all="ignore"):
            same |= abs(got - expected) <= 4 * np.spacing(np.maximum(abs(arguments[0]), abs(arguments[1])))
    wrong = [i for i in np.flatnonzero(~same) if not agrees_with_mpmath(name, [a[i] for a in arguments], got[i])]
    assert not wrong, [(name, *[float(a[i]) for a in arguments], float(got[i]), float(expected[i])) for i in wrong[:9]]


def agrees_with_mpmath(name, arguments, got):
    """Whether a finite result that is not 0 is right."""
    if not np.all(np.isfinite([got, *arguments])) or got == 0:
        return False
    value = by_mpmath()[name](*map(mpmath.mpf, map(float, arguments)))
    return abs(value - float(got)) <= 4 * float(np.spacing(abs(got)))


@pytest.mark.parametrize("features", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "sech_squared", "power", "arctan2", "erf"])
def test_a_result_does_not_depend_on_the_lane(name, dtype, features):
    arguments, _, _ = reference_values(name, dtype)
    arguments = [column[:60] for column in arguments]
    expected = compiled(name, dtype, features, 4)(*arguments)
    for lanes in (0, 1, 2, 3, 5, 12, 20):
        np.testing.assert_array_equal(compiled(name, dtype, features, lanes)(*arguments), expected)


WIDTHS = [bits for bits in (128, 256, 512) if bits <= HOST.bits]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "exp2", "expm1", "power", "tanh", "sech_squared", "cosh"])
def test_a_result_does_not_depend_on_the_width_of_registers(name, dtype):
    """AVX-512 has an instruction that multiplies by powers of two; it rounds results that are subnormal once."""
    arguments, _, _ = reference_values(name, dtype)
    smallest = np.log(float(np.finfo(dtype).smallest_subnormal)) / (np.log(2) if name == "exp2" else 1)
    edges = np.array([-np.inf, np.inf, np.nan, -0.0, *np.linspace(smallest - 2, smallest + 45, 5000), -smallest])
    arguments = [np.concatenate([column, edges]).astype(dtype) for column in arguments]
    results = [
        compiled(name, dtype, Features(libmvec=False, bits=bits, fma=HOST.fma), 16)(*arguments) for bits in WIDTHS
    ]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize(("bits", "count"), [(128, 0), (256, 0), (512, 1)])
def test_only_avx512_scales_by_an_instruction(bits, count):
    text = str(module_of(f"func_own_{bits}f_v{bits // 64}f64_exp")[1]())
    assert text.count("llvm.x86.avx512.mask.scalef.pd.512") == 2 * count  # declared and called


@pytest.mark.parametrize(("name", "is_aligned"), [("exp", False), ("expit", True)])
def test_functions_that_call_others_align_their_stacks(name, is_aligned):
    text = str(module_of(f"func_own_256f_v4f64_{name}")[1]())
    assert ("alignstack(32) {" in text) == is_aligned


@pytest.mark.parametrize("bits", [128, 256, 512])
def test_library_functions_get_vectors_of_the_register(bits):
    if not HOST.libmvec:
        pytest.skip("libmvec is not on this host")
    module = ir.Module()
    vector = ir.VectorType(ir.DoubleType(), 11)
    function = ir.Function(module, ir.FunctionType(vector, [vector]), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(Elementary(module, Features(libmvec=True, bits=bits, fma=True)).call(builder, "tan", function.args[0]))
    lanes, letter = bits // 64, {128: "b", 256: "d", 512: "e"}[bits]
    text = str(module)
    assert f'declare <{lanes} x double> @"_ZGV{letter}N{lanes}v_tan"(<{lanes} x double>' in text
    assert text.count(f'@"_ZGV{letter}N{lanes}v_tan"') == 1 + -(-11 // lanes)


def test_sine_and_cosine_stay_within_one():
    angles = np.random.default_rng(1).uniform(-3000, 3000, 100_000)
    for mode in MODES:
        for dtype in DTYPES:
            for name in ("sin", "cos", "tanh", "tanh_with_sech_squared", "erf"):
                assert abs(compiled(name, dtype, mode.values[0], 16)(angles)).max() <= 1


def test_the_environment_switches_libmvec_off(monkeypatch):
    monkeypatch.setitem(os.environ, "FUNC_NO_LIBMVEC", "1")
    assert not host_features().libmvec


def test_unknown_names_and_types_are_refused():
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [ir.DoubleType(), ir.IntType(64)]), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    emitted = Elementary(module, host_features())
    with pytest.raises(ValueError, match="no elementary function 'sine'"):
        emitted.call(builder, "sine", function.args[0])
    with pytest.raises(ValueError, match="of 2 arguments"):
        emitted.call(builder, "sin", function.args[0], function.args[0])
    with pytest.raises(ValueError, match="convert the argument first"):
        emitted.call(builder, "sin", function.args[1])
