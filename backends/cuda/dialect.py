"""CUDA C's substitutes for the C library: types, bit casts, half precision, complex functions.

NVRTC compiles a kernel's text together with the definitions that it calls. So does a C++ compiler, with a header that
runs blocks and threads as loops. The text needs no CUDA header.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from func.backends.c.declarations import DOUBLE
from func.backends.c.element_operations import CDefinitions, CScalars
from func.backends.loops.kernels import DType
from func.backends.scalars.ir_values import Pair, Value

PRELUDE = """\
#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define UINT64_C(x) x##ull
#define INT64_C(x) x##ll
#define INFINITY __longlong_as_double(0x7ff0000000000000ll)
#define NAN __longlong_as_double(0x7ff8000000000000ll)
#endif
typedef int64_t func_long;
"""
"""The head of every text."""


def _exchange(name: str, what: str, shuffle: str, lane: str) -> str:
    """A function of one value from another lane of the warp; small types go as int, which shuffles take."""
    parameter, argument = (", int distance", ", distance") if lane == "distance" else ("", "")
    special = [
        f"template <> __device__ {dtype} {name}({dtype} x{parameter}) {{\n    return {value};\n}}"
        for dtype, value in (
            ("uint8_t", f"(uint8_t){name}((int)x{argument})"),
            ("uint16_t", f"(uint16_t){name}((int)x{argument})"),
            ("bool", f"{name}((int)x{argument}) != 0"),
        )
    ]
    general = f"""\
/* {what} */
template <class T> static __device__ T {name}(T x{parameter}) {{
    return {shuffle}(0xffffffffu, x, {lane});
}}"""
    return "\n".join([general, *special])


HELPERS = {
    "func_bits64": """\
static __device__ uint64_t func_bits64(double x) {
    return (uint64_t)__double_as_longlong(x);
}""",
    "func_real64": """\
static __device__ double func_real64(uint64_t bits) {
    return __longlong_as_double((long long)bits);
}""",
    "func_bits32": """\
static __device__ uint32_t func_bits32(float x) {
    return (uint32_t)__float_as_int(x);
}""",
    "func_real32": """\
static __device__ float func_real32(uint32_t bits) {
    return __int_as_float((int)bits);
}""",
    "func_float_of_half": """\
static __device__ float func_float_of_half(uint16_t half) {
#ifdef FUNC_HOST
    return func_host_float_of_half(half);
#else
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
    return x;
#endif
}""",
    "func_half_of_float": """\
static __device__ uint16_t func_half_of_float(float x) {
#ifdef FUNC_HOST
    return func_host_half_of_float(x);
#else
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
    return half;
#endif
}""",
    "func_bit_count": """\
static __device__ uint64_t func_bit_count(uint64_t x) {
    return (uint64_t)__popcll(x);
}""",
    "func_down": _exchange(
        "func_down", "The value that the lane `distance` further has.", "__shfl_down_sync", "distance"
    ),
    "func_first": _exchange("func_first", "The value that the first lane has.", "__shfl_sync", "0"),
    "func_up": _exchange("func_up", "The value that the lane `distance` before has.", "__shfl_up_sync", "distance"),
    "func_last": _exchange("func_last", "The value that the last lane has.", "__shfl_sync", "31"),
    "func_pack": """\
/* Elements that one access moves. */
template <class T, int N> struct alignas(sizeof(T) * N) func_pack {
    T x[N];
};""",
    "func_complex": """\
struct func_complex {
    double re, im;
};
static __device__ func_complex func_make(double re, double im) {
    func_complex z;
    z.re = re;
    z.im = im;
    return z;
}
static __device__ bool func_finite(double x) {
    return x - x == 0;
}
static __device__ bool func_infinite(double x) {
    return fabs(x) == INFINITY;
}""",
    "func_csqrt": """\
static __device__ func_complex func_csqrt(func_complex z) {
    double x = z.re, y = z.im;
    if (func_infinite(y)) {
        return func_make(INFINITY, y);
    }
    if (x != x || (y != y && !func_infinite(x))) {
        return func_make(NAN, NAN);
    }
    if (func_infinite(x)) {
        if (x > 0) {
            return func_make(x, y == y ? copysign(0.0, y) : y);
        }
        return func_make(y == y ? 0.0 : y, y == y ? copysign(INFINITY, y) : INFINITY);
    }
    if (x == 0 && y == 0) {
        return func_make(0.0, y);
    }
    double scale = 1;
    const double size = fmax(fabs(x), fabs(y));
    if (size > 4e307) {
        x /= 4;
        y /= 4;
        scale = 2;
    } else if (size < 1e-290) {
        x *= 0x1p108;
        y *= 0x1p108;
        scale = 0x1p-54;
    }
    const double t = sqrt((fabs(x) + hypot(x, y)) / 2);
    if (x >= 0) {
        return func_make(scale * t, scale * (y / (2 * t)));
    }
    return func_make(scale * (fabs(y) / (2 * t)), copysign(scale * t, y));
}""",
    "func_clog": """\
static __device__ func_complex func_clog(func_complex z) {
    const double x = fabs(z.re), y = fabs(z.im), large = x > y ? x : y, small = x > y ? y : x;
    const double angle = atan2(z.im, z.re);
    if (func_infinite(z.re) || func_infinite(z.im)) {
        return func_make(INFINITY, angle);
    }
    if (x != x || y != y || large == 0) {
        return func_make(large == 0 && small == 0 ? -INFINITY : x + y, angle);
    }
    if (large > 0.5 && large < 2 && small <= 1) { /* |z|**2 - 1 without cancellation */
        return func_make(log1p(fma(large - 1, large + 1, small * small)) / 2, angle);
    }
    if (large > 1e150 || large < 1e-150) {
        const double power = large > 1 ? 0x1p-600 : 0x1p600, shift = large > 1 ? 600 : -600;
        return func_make(log(hypot(x * power, y * power)) + shift * 0.6931471805599453, angle);
    }
    return func_make(log(hypot(x, y)), angle);
}""",
    "func_cexp": """\
static __device__ func_complex func_cexp(func_complex z) {
    if (z.im == 0) {
        return func_make(exp(z.re), z.im);
    }
    if (!func_finite(z.im)) {
        if (z.re == -INFINITY) {
            return func_make(0.0, copysign(0.0, z.im));
        }
        return func_make(z.re == INFINITY ? z.re : NAN, NAN);
    }
    if (z.re == -INFINITY) {
        return func_make(copysign(0.0, cos(z.im)), copysign(0.0, sin(z.im)));
    }
    if (z.re != z.re) {
        return func_make(z.re, z.re);
    }
    const double shift = z.re > 700 && z.re < 1500 ? 700 : 0;
    const double size = exp(z.re - shift), more = shift > 0 ? exp(700.0) : 1;
    return func_make(size * cos(z.im) * more, size * sin(z.im) * more);
}""",
    "func_csinh": """\
static __device__ func_complex func_csinh(func_complex z) {
    const double x = z.re, y = z.im;
    if (y == 0) {
        return func_make(sinh(x), y);
    }
    if (x == 0) {
        return func_make(x, sin(y));
    }
    if (func_finite(y) && fabs(x) > 40) {
        func_complex e = func_cexp(func_make(fabs(x), y));
        return func_make(copysign(e.re / 2, x) * (e.re < 0 ? -1 : 1), e.im / 2);
    }
    if (!func_finite(y)) {
        return func_make(func_infinite(x) ? x : NAN, NAN);
    }
    return func_make(sinh(x) * cos(y), cosh(x) * sin(y));
}""",
    "func_ccosh": """\
static __device__ func_complex func_ccosh(func_complex z) {
    const double x = z.re, y = z.im;
    if (y == 0) {
        return func_make(cosh(x), x == x ? copysign(0.0, x) * y : y);
    }
    if (x == 0) {
        return func_make(cos(y), func_finite(y) ? x * sin(y) : x);
    }
    if (func_finite(y) && fabs(x) > 40) {
        func_complex e = func_cexp(func_make(fabs(x), y));
        return func_make(e.re / 2, x < 0 ? -e.im / 2 : e.im / 2);
    }
    if (!func_finite(y)) {
        return func_make(func_infinite(x) ? INFINITY : NAN, NAN);
    }
    return func_make(cosh(x) * cos(y), sinh(x) * sin(y));
}""",
    "func_ctanh": """\
static __device__ func_complex func_ctanh(func_complex z) {
    const double x = z.re, y = z.im;
    if (fabs(x) > 22) {
        if (func_infinite(x) && !func_finite(y)) {
            return func_make(copysign(1.0, x), copysign(0.0, y));
        }
        if (!func_finite(y)) {
            return func_make(NAN, NAN);
        }
        const double e = exp(-fabs(x));
        return func_make(copysign(1.0, x), 4 * sin(y) * cos(y) * e * e);
    }
    if (x != x) {
        return func_make(x, y == 0 ? y : x);
    }
    if (!func_finite(y)) {
        return func_make(x == 0 ? x : NAN, NAN);
    }
    const double t = tan(y), beta = 1 + t * t, s = sinh(x), rho = sqrt(1 + s * s);
    if (func_infinite(t)) {
        return func_make(rho / s, 1 / t);
    }
    const double under = 1 + beta * s * s;
    return func_make(beta * rho * s / under, t / under);
}""",
    "func_casinh": """\
static __device__ func_complex func_casinh(func_complex z) {
    const double x = fabs(z.re), y = fabs(z.im);
    func_complex w;
    if (x != x || y != y || func_infinite(x) || func_infinite(y)) {
        if (func_infinite(x) || func_infinite(y)) {
            w = func_make(INFINITY, y != y ? NAN : func_infinite(y) && x != x ? NAN : atan2(y, x));
        } else {
            w = func_make(NAN, y == 0 ? 0.0 : NAN);
        }
    } else if (x > 1e8 || y > 1e8) {
        func_complex l = func_clog(func_make(x, y));
        w = func_make(l.re + 0.6931471805599453, l.im);
    } else { /* W. Kahan, Branch cuts for complex elementary functions, 1987 */
        func_complex plus = func_csqrt(func_make(1 + y, -x)), minus = func_csqrt(func_make(1 - y, x));
        w.re = asinh(plus.re * minus.im - plus.im * minus.re);
        w.im = atan2(y, plus.re * minus.re - plus.im * minus.im);
    }
    return func_make(copysign(w.re, z.re), copysign(w.im, z.im));
}""",
    "func_cacos": """\
static __device__ func_complex func_cacos(func_complex z) {
    const double x = z.re, y = z.im;
    if (x != x || y != y || func_infinite(x) || func_infinite(y) || fabs(x) > 1e8 || fabs(y) > 1e8) {
        func_complex l = func_clog(func_make(fabs(x), fabs(y)));
        if (x != x || y != y) {
            const bool far = func_infinite(x) || func_infinite(y);
            return func_make(x == 0 ? 1.5707963267948966 : NAN, far ? -copysign(INFINITY, y) : NAN);
        }
        return func_make(atan2(fabs(y), x), -copysign(l.re + 0.6931471805599453, y));
    }
    func_complex plus = func_csqrt(func_make(1 + x, y)), minus = func_csqrt(func_make(1 - x, -y));
    return func_make(2 * atan2(minus.re, plus.re), asinh(plus.re * minus.im - plus.im * minus.re));
}""",
    "func_cacosh": """\
static __device__ func_complex func_cacosh(func_complex z) {
    func_complex w = func_cacos(z);
    if (w.im != w.im && w.re == w.re) {
        return func_make(w.im, z.re == 0 ? 1.5707963267948966 : NAN);
    }
    return signbit(w.im) ? func_make(-w.im, w.re) : func_make(w.im, -w.re);
}""",
    "func_catanh": """\
static __device__ func_complex func_catanh(func_complex z) {
    const double x = fabs(z.re), y = fabs(z.im);
    func_complex w;
    if (func_infinite(x) || func_infinite(y)) {
        w = func_make(0.0, y != y ? NAN : 1.5707963267948966);
    } else if (x != x || y != y) {
        w = func_make(x == 0 ? 0.0 : NAN, x == x || y != 0 ? NAN : NAN);
    } else if (x > 1e8 || y > 1e8) {
        w = func_make(x / (x > y ? x : y) / (x > y ? x + y * (y / x) : y + x * (x / y)), 1.5707963267948966);
    } else {
        const double near = (1 - x) * (1 - x) + y * y;
        w.re = near == 0 ? INFINITY : log1p(4 * x / near) / 4;
        w.im = y == 0 && x == 1 ? 0.0 : atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2;
    }
    return func_make(copysign(w.re, z.re), copysign(w.im, z.im));
}""",
    "func_csin": """\
static __device__ func_complex func_csin(func_complex z) {
    func_complex w = func_csinh(func_make(-z.im, z.re));
    return func_make(w.im, -w.re);
}""",
    "func_ccos": """\
static __device__ func_complex func_ccos(func_complex z) {
    return func_ccosh(func_make(-z.im, z.re));
}""",
    "func_ctan": """\
static __device__ func_complex func_ctan(func_complex z) {
    func_complex w = func_ctanh(func_make(-z.im, z.re));
    return func_make(w.im, -w.re);
}""",
    "func_casin": """\
static __device__ func_complex func_casin(func_complex z) {
    func_complex w = func_casinh(func_make(-z.im, z.re));
    return func_make(w.im, -w.re);
}""",
    "func_catan": """\
static __device__ func_complex func_catan(func_complex z) {
    func_complex w = func_catanh(func_make(-z.im, z.re));
    return func_make(w.im, -w.re);
}""",
    "func_cpow": """\
static __device__ func_complex func_cpow(func_complex x, func_complex y) {
    func_complex l = func_clog(x);
    return func_cexp(func_make(y.re * l.re - y.im * l.im, y.re * l.im + y.im * l.re));
}""",
}
"""Functions that kernels call, by name; each names those that it calls."""


_OF_HOST = re.compile(r"^static (?!__device__)", re.M)


class CudaDefinitions(CDefinitions):
    """The functions that the kernels of a program call."""

    def __init__(self) -> None:
        super().__init__()
        self.texts.update(HELPERS)

    def device_text(self, text: str) -> str:
        """The definitions that a text needs, as functions of the device."""
        return "\n".join([_OF_HOST.sub("static __device__ ", definition) for definition in self.used_by(text)])


class CudaScalars(CScalars):
    """Writes operations on elements; complex functions are those above."""

    fused = True

    def complex_library(self, name: str, args: Sequence[Value]) -> Value:
        """A function of complex doubles."""
        b = self.builder
        result = b.fresh("z")
        pieces: list[object] = [f"const func_complex {result} = func_{name}("]
        for place, x in enumerate(args):
            pieces += [", " if place else "", "func_make(", x.re, ", ", x.im, ")"]
        b.line(*pieces, ");")
        b.epoch += 1
        return Pair(b.named(DOUBLE, f"{result}.re"), b.named(DOUBLE, f"{result}.im"))


def vector_length(dtype: DType) -> int:
    """The elements of 16 bytes; 1 for complex numbers of double precision."""
    return max(1, 16 // dtype.itemsize)
