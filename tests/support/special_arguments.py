"""Arguments of special functions whose derivatives come from formulas, and the places that differentiate, twice."""

from __future__ import annotations

from typing import Any

import scipy.special

from func.special import sequences, spherical

_OBLATE, _PROLATE, _OBLATE_3, _PROLATE_3 = [
    float(value(1, 2, c)) for c in (0.8, 3.0) for value in (scipy.special.obl_cv, scipy.special.pro_cv)
]

ARGUMENTS: dict[str, tuple[tuple[Any, ...], tuple[int, ...]]] = {
    "airye": ((0.7,), (0,)),
    "bdtri": ((2, 6, 0.4), (2,)),
    "besselpoly": ((0.7, 1.5, 1.2), (0,)),
    "chdtri": ((3.0, 0.4), (0, 1)),
    "chdtriv": ((0.4, 3.0), (0, 1)),
    "chndtr": ((2.0, 3.0, 1.5), (0, 2)),
    "chndtrinc": ((2.0, 3.0, 0.3), (0, 2)),
    "chndtrix": ((0.3, 3.0, 1.5), (0, 2)),
    "ellipj": ((0.6, 0.4), (0, 1)),
    "elliprc": ((0.5, 1.2), (0, 1)),
    "elliprd": ((0.5, 1.2, 0.8), (0, 1, 2)),
    "elliprf": ((0.5, 1.2, 0.8), (0, 1, 2)),
    "elliprg": ((0.5, 1.2, 0.8), (0, 1, 2)),
    "elliprj": ((0.5, 1.2, 0.8, 1.7), (0, 1, 2, 3)),
    "eval_gegenbauer": ((3.0, 1.3, 0.4), (2,)),
    "eval_genlaguerre": ((3.0, 1.3, 0.4), (2,)),
    "eval_hermite": ((3, 0.4), (1,)),
    "eval_hermitenorm": ((4, 0.4), (1,)),
    "eval_jacobi": ((3.0, 0.5, 1.3, 0.4), (3,)),
    "eval_sh_jacobi": ((3.0, 2.5, 1.3, 0.4), (3,)),
    **{
        f"eval_{name}": ((3.0, 0.4), (1,))
        for name in ("chebyc", "chebys", "chebyt", "chebyu", "laguerre", "legendre")
    },
    **{f"eval_sh_{name}": ((2.5, 0.4), (1,)) for name in ("chebyt", "chebyu", "legendre")},
    "fdtri": ((3.0, 4.0, 0.3), (0, 1, 2)),
    "gdtria": ((0.3, 2.0, 0.8), (0, 1, 2)),
    "gdtrib": ((1.2, 0.3, 0.8), (0, 1, 2)),
    "gdtrix": ((1.2, 2.0, 0.3), (0, 1, 2)),
    "kolmogi": ((0.4,), (0,)),
    "kolmogorov": ((0.8,), (0,)),
    "log_wright_bessel": ((0.5, 1.2, 0.7), (2,)),
    "lpmv": ((1, 2.0, 0.3), (2,)),
    **{
        name: ((0.7,), (0,))
        for name in (
            "bei", "beip", "ber", "berp", "it2i0k0", "it2j0y0", "it2struve0", "itairy", "iti0k0", "itj0y0",
            "itmodstruve0", "kei", "keip", "kelvin", "ker", "kerp", "modfresnelm", "modfresnelp",
        )
    },
    "mathieu_cem": ((2, 0.7, 20.0), (2,)),
    "mathieu_sem": ((2, 0.7, 20.0), (2,)),
    **{f"mathieu_mod{name}": ((2, 0.7, 0.6), (2,)) for name in ("cem1", "cem2", "sem1", "sem2")},
    "nbdtr": ((2, 3, 0.4), (2,)),
    "nbdtrc": ((2, 3, 0.4), (2,)),
    "nbdtri": ((2, 3, 0.4), (2,)),
    "ncfdtr": ((3.0, 5.0, 1.2, 0.8), (2, 3)),
    "ncfdtri": ((3.0, 5.0, 1.2, 0.3), (2, 3)),
    "nctdtr": ((4.0, 0.6, 0.8), (1, 2)),
    "nctdtrinc": ((4.0, 0.4, 0.8), (1, 2)),
    "nctdtrit": ((4.0, 0.6, 0.4), (1, 2)),
    "nrdtrimn": ((0.3, 1.2, 0.5), (0, 1, 2)),
    "nrdtrisd": ((0.2, 0.8, 0.9), (0, 1, 2)),
    "obl_ang1": ((1, 2, 0.8, 0.4), (3,)),
    "obl_rad1": ((1, 2, 0.8, 0.4), (3,)),
    "pbdv": ((1.3, 0.7), (1,)),
    "pbvv": ((1.3, 0.7), (1,)),
    "pbwa": ((0.6, 0.7), (1,)),
    "pdtri": ((2, 0.3), (1,)),
    "pdtrik": ((0.3, 2.0), (0, 1)),
    "pro_ang1": ((1, 2, 0.8, 0.4), (3,)),
    "pro_rad1": ((1, 2, 0.8, 1.4), (3,)),
    "radian": ((1.0, 2.0, 3.0), (0, 1, 2)),
    "stdtrit": ((3.0, 0.3), (0, 1)),
    "tklmbda": ((0.3, 0.4), (0, 1)),
    "voigt_profile": ((0.3, 0.8, 0.5), (0, 1, 2)),
    "bdtrik": ((0.4, 6.0, 0.3), (0, 1, 2)),
    "bdtrin": ((2.0, 0.4, 0.3), (0, 1, 2)),
    "btdtria": ((0.4, 2.1, 0.3), (0, 1, 2)),
    "btdtrib": ((1.7, 0.4, 0.3), (0, 1, 2)),
    "fdtr": ((3.0, 4.0, 0.3), (0, 1, 2)),
    "fdtrc": ((3.0, 4.0, 0.3), (0, 1, 2)),
    "fdtridfd": ((3.0, 0.4, 0.7), (0, 1, 2)),
    "mathieu_a": ((2, 0.7), (1,)),
    "mathieu_b": ((3, -0.7), (1,)),
    "nbdtrik": ((0.4, 3.0, 0.3), (0, 1, 2)),
    "nbdtrin": ((2.0, 0.4, 0.3), (0, 1, 2)),
    "ncfdtrinc": ((3.0, 5.0, 0.3, 0.8), (2, 3)),
    "obl_ang1_cv": ((1, 2, 0.8, _OBLATE, 0.4), (4,)),
    "obl_cv": ((1, 2, 0.8), (2,)),
    "obl_rad1_cv": ((1, 2, 0.8, _OBLATE, 0.4), (4,)),
    "obl_rad2": ((1, 2, 3.0, 2.0), (3,)),
    "obl_rad2_cv": ((1, 2, 3.0, _OBLATE_3, 2.0), (4,)),
    "pro_ang1_cv": ((1, 2, 0.8, _PROLATE, 0.4), (4,)),
    "pro_cv": ((1, 2, 0.8), (2,)),
    "pro_rad1_cv": ((1, 2, 0.8, _PROLATE, 1.4), (4,)),
    "pro_rad2": ((1, 2, 3.0, 2.0), (3,)),
    "pro_rad2_cv": ((1, 2, 3.0, _PROLATE_3, 2.0), (4,)),
    "smirnov": ((5, 0.3), (1,)),
    "smirnovi": ((5, 0.3), (1,)),
    "stdtr": ((3.0, 0.3), (0, 1)),
    "stdtridf": ((0.7, 0.8), (0, 1)),
    "wright_bessel": ((0.5, 1.2, 0.7), (2,)),
}  # fmt: skip

WITHOUT_DERIVATIVE = {
    "chndtridf": (2.0, 0.4, 1.5),
    "ncfdtridfd": (3.0, 0.3, 1.2, 0.8),
    "ncfdtridfn": (0.3, 5.0, 1.2, 0.8),
    "nctdtridf": (0.5, 0.6, 0.8),
}
"""Those that have none with respect to any argument."""

BY_EQUATIONS = {*ARGUMENTS, *WITHOUT_DERIVATIVE, *sequences.__all__, *spherical.__all__, "diric"} - {
    *("fdtr", "fdtrc", "stdtr", "spherical_in", "spherical_jn", "spherical_kn", "spherical_yn")
}
"""Functions of several arguments, or outputs, that the tables of NumPy's conventions do not have."""
