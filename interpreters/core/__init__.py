"""The contract of the engine: abstract values, tracers, interpreters, and the primitives that interpreters apply.

An array, a scalar or a tracer comes in through `operand` and `bind`. The interpreter of the highest level among the
arguments applies the primitive, and an array or a tracer comes out. Everything else in func is built on these types.
"""

# fmt: off
from func.interpreters.core.containers import has_rules, is_machine_number, is_scipy_sparse, raise_unsupported_array
from func.interpreters.core.parameters import COMPLEX, Facts, Formula
from func.interpreters.core.primitive import (
    Bilinear, Linear, NonDifferentiable, Primitive, add_tangents, bind, evaluate, general, leading_axes, linear,
    materialize, nondifferentiable, zeros_like,
)
from func.interpreters.core.scopes import TRACED
from func.interpreters.core.types import (
    PYTHON_SCALARS, REAL_DTYPES, ZERO, Array, Aval, ClosedInterpreter, Interpreter, Params, Shape, Shaped, Tracer,
    array_aval, aval_of, concrete, defensive_copy, dtype_of, is_inexact, is_plain_array, make_tracer, new_tracer,
    next_level, shape_of, short_dtype, snapshot,
)
from func.interpreters.core.traced_values import (
    CARRIERS, EVALUATE, Series, derivatives_in, example_of, innermost, is_readable, known_value, operand,
    raise_if_captured, unboxed,
)
from func.interpreters.core.wiring import PRIMITIVES, primitive_named
# fmt: on
