"""The contract of the engine: abstract values, tracers, interpreters, and the primitives that interpreters apply.

An array, a scalar or a tracer comes in through `operand` and `bind`; the interpreter of the highest level among the
arguments applies the primitive, and an array or a tracer comes out. Everything else in func is built on these types.
"""

# fmt: off
from func.interpreters.core.containers import has_rules, is_machine_number, is_scipy_sparse, refuse_array
from func.interpreters.core.primitive import (
    COMPLEX, EVALUATE, PRIMITIVES, Bilinear, Facts, Formula, Linear, NonDifferentiable, Primitive, add_tangents, bind,
    evaluate, general, leading_axes, linear, materialize, nondifferentiable, primitive_named, refuse_captured, unboxed,
    zeros_like,
)
from func.interpreters.core.types import (
    CARRIERS, PYTHON_SCALARS, REAL_DTYPES, TRACED, ZERO, Array, Aval, ClosedInterpreter, Interpreter, Params, Shape,
    Series, Shaped, Tracer, array_aval, aval_of, concrete, derivatives_in, dtype_of, example_of, innermost, is_inexact,
    is_plain_array, is_readable, kept, known_value, make_tracer, new_tracer, next_level, operand, shape_of, short_dtype,
    snapshot,
)
# fmt: on
