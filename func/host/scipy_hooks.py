"""Hooks: SciPy's own functions look for traced values, and hand them to func's versions.

`from scipy.linalg import solve` binds a function object to a name of the user's. So the object stays and gets code
that looks at one flag first, which says whether traced values exist (a transform runs, a tensor has been made). If
not, it does what it did before. If so, and one of the arguments holds a traced value, func's version of the function is
called; its module is imported then. Methods are functions too; a class has its hook in `__init__`, where the object
becomes one of func's class.

What a hook leads to is in `TABLE`:

- `name`: the function of this name in the module of func.scipy that is laid out as SciPy's.
- `~name`: SciPy's own code, run with `func.intercept()`: it is NumPy code, whose arrays may hold traced values.
- `=name`: SciPy's own code, which needs no more than NumPy's converters that take traced values. They do where a
  transform runs, so this is for tensors.
- `-name`: refused with what to write, see `func.host.scipy_refusals`; `-module.*`: all public functions of a module.
- `name()`: as `name`, also where no argument holds a traced value: it takes callbacks, which may.
- `name!`: as `name`, also for keys and generators of func.random, where traced values exist or not.
- `Class.method`: the function `Class_method`, for a method that the class defines or inherits; `Class.{a, b}` for two;
  a class alone: the class of this name. `_module.f` may be compiled: SciPy's code then calls the version.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from func import tree
from func.host.dispatchers import function_code, with_prefix
from func.host.interception import intercepted_call, on_plain_memory
from func.host.patching import called_inside
from func.host.scipy_refusals import refusal
from func.interpreters.core import CARRIERS, TRACED, Tracer
from func.interpreters.host.public_functions import behind
from func.interpreters.host.refusals import hide_outside

_HOOK, _TRACED = "<hook>", "<traced>"
"""Constants that stand for objects in the text of a hook's code."""
_EXIST = f"{_TRACED!r}.run or {_TRACED!r}.stay"
MAX_DEPTH = 4
"""How deep lists, tuples and dicts are searched."""

TABLE: dict[str, str] = {
    "scipy.linalg": """
        bandwidth block_diag cdf2rdf cho_factor cho_solve cho_solve_banded cholesky cholesky_banded circulant
        ~clarkson_woodruff_transform companion convolution_matrix coshm cosm cossin det diagsvd eig eig_banded eigh
        eigh_tridiagonal eigvals eigvals_banded eigvalsh eigvalsh_tridiagonal expm expm_cond expm_frechet fiedler
        ~fiedler_companion fractional_matrix_power funm() hankel hessenberg inv ishermitian issymmetric khatri_rao ldl
        leslie logm lstsq lu lu_factor lu_solve matmul_toeplitz matrix_balance norm null_space ordqz orth
        orthogonal_procrustes pinv pinvh polar qr -qr_delete -qr_insert qr_multiply -qr_update qz rq rsf2csf schur signm
        sinhm sinm solve solve_banded solve_circulant solve_continuous_are solve_continuous_lyapunov
        solve_discrete_are solve_discrete_lyapunov solve_lyapunov solve_sylvester solve_toeplitz solve_triangular
        solveh_banded sqrtm subspace_angles svd svdvals tanhm tanm toeplitz
    """,
    "scipy.special": """
        bernoulli comb diric factorial lambertw lmbda log_softmax logsumexp multigammaln obl_cv_seq pbdv_seq pbvv_seq
        perm polygamma pro_cv_seq riccati_jn riccati_yn softmax softplus spherical_in spherical_jn spherical_kn
        spherical_yn zeta
    """,
    "scipy.fft": """
        fhtoffset
    """,
    "scipy.special._multiufuncs": """
        MultiUFunc.__call__
    """,
    "scipy.integrate": """
        ~trapezoid simpson ~cumulative_trapezoid ~cumulative_simpson ~romb ~fixed_quad() qmc_quad() quad() quad_vec()
        dblquad() tplquad() nquad() tanhsinh() nsum() cubature()
        solve_ivp() solve_bvp() odeint() ode.set_initial_value complex_ode.set_initial_value ode.integrate()
        ~OdeSolution.__call__
    """,
    "scipy.interpolate": """
        AAA AAA.__call__ Akima1DInterpolator BPoly.__call__ BPoly.__init__ BPoly.construct_fast BPoly.extend
        BPoly.from_derivatives BPoly.from_power_basis BPoly.integrate BSpline BSpline.__call__
        BSpline.basis_element BSpline.construct_fast BSpline.design_matrix BSpline.from_power_basis
        BSpline.insert_knot BSpline.integrate BarycentricInterpolator BarycentricInterpolator.__call__
        BarycentricInterpolator.add_xi BarycentricInterpolator.derivative BarycentricInterpolator.set_yi
        BivariateSpline.__call__ BivariateSpline.ev BivariateSpline.integral CloughTocher2DInterpolator
        CubicHermiteSpline CubicSpline FloaterHormannInterpolator InterpolatedUnivariateSpline KroghInterpolator
        KroghInterpolator.derivative KroghInterpolator.derivatives LSQBivariateSpline
        -LSQSphereBivariateSpline -LSQSphereBivariateSpline.__call__ LSQUnivariateSpline
        LinearNDInterpolator LinearNDInterpolator.__call__ NdBSpline NdBSpline.__call__ NdPPoly NdPPoly.__call__
        NearestNDInterpolator NearestNDInterpolator.__call__ PPoly.__call__ PPoly.__init__ PPoly.construct_fast
        PPoly.extend PPoly.from_bernstein_basis PPoly.from_spline PPoly.integrate PPoly.solve PchipInterpolator
        RBFInterpolator RBFInterpolator.__call__ Rbf Rbf.__call__ RectBivariateSpline
        -RectSphereBivariateSpline -RectSphereBivariateSpline.__call__ RegularGridInterpolator
        RegularGridInterpolator.__call__ SmoothBivariateSpline.__init__ -SmoothSphereBivariateSpline
        -SmoothSphereBivariateSpline.__call__ UnivariateSpline UnivariateSpline.__call__
        UnivariateSpline.derivatives UnivariateSpline.integral approximate_taylor_polynomial()
        ~barycentric_interpolate bisplev bisplrep griddata insert interp1d interp1d.__call__ interpn
        ~krogh_interpolate lagrange make_interp_spline make_lsq_spline make_smoothing_spline make_splprep
        make_splrep pade ~pchip_interpolate spalde ~splantider ~splder splev splint splprep splrep sproot
    """,
    "scipy.ndimage": """
        _nd_image.correlate _nd_image.correlate1d _nd_image.fourier_filter _nd_image.fourier_shift
        _nd_image.generic_filter() _nd_image.generic_filter1d() _nd_image.geometric_transform()
        _nd_image.min_or_max_filter _nd_image.min_or_max_filter1d _nd_image.rank_filter _nd_image.spline_filter1d
        _nd_image.uniform_filter1d _nd_image.zoom_shift _rank_filter_1d.rank_filter
        _filters._complex_via_real_components affine_transform ~black_tophat ~center_of_mass ~convolve ~convolve1d
        ~correlate ~correlate1d extrema ~fourier_ellipsoid ~fourier_gaussian ~fourier_shift ~fourier_uniform
        gaussian_filter gaussian_filter1d ~gaussian_gradient_magnitude ~gaussian_laplace ~generic_filter()
        ~generic_filter1d() generic_gradient_magnitude() ~generic_laplace() geometric_transform() ~grey_closing
        ~grey_dilation ~grey_erosion ~grey_opening label ~labeled_comprehension() ~laplace map_coordinates maximum
        ~maximum_filter ~maximum_filter1d maximum_position ~mean median ~median_filter minimum ~minimum_filter
        ~minimum_filter1d minimum_position ~morphological_gradient ~morphological_laplace ~percentile_filter ~prewitt
        ~rank_filter rotate shift ~sobel spline_filter spline_filter1d ~standard_deviation ~sum ~sum_labels
        ~uniform_filter uniform_filter1d ~variance ~vectorized_filter() ~white_tophat zoom
    """,
    "scipy.optimize": """
        anderson() basinhopping() bisect() brent() brenth() brentq() broyden1() broyden2() brute() curve_fit()
        diagbroyden() differential_evolution() direct() dual_annealing() excitingmixing() fixed_point() fmin()
        fmin_bfgs() fmin_cg() fmin_cobyla() fmin_l_bfgs_b() fmin_ncg() fmin_powell() fmin_slsqp() fmin_tnc()
        fminbound() fsolve() golden() isotonic_regression least_squares() leastsq() linear_sum_assignment
        linearmixing() linprog() lsq_linear milp() minimize() minimize_scalar() newton() newton_krylov() nnls ridder()
        root() root_scalar() shgo() toms748()
        ~rosen ~rosen_der ~rosen_hess ~rosen_hess_prod
    """,
    "scipy.signal": """
        _arraytools._validate_fs _sigtools.{_convolve2d, _medfilt2d} ~_filter_design._arc_jac_sc1
        ~_filter_design._arc_jac_sn ~_filter_design._ellipdeg _filter_design._validate_sos _polyutils._lstsq
        _polyutils._trim_zeros _spectral_py._fft_helper ~abcd_normalize ~argrelextrema ~argrelmax ~argrelmin
        ~band_stop_obj ~bessel ~besselap ~bilinear bilinear_zpk ~bode ~buttap ~butter ~buttord cheb1ap ~cheb1ord cheb2ap
        ~cheb2ord ~cheby1 ~cheby2 ~check_COLA ~check_NOLA chirp choose_conv_method ~closest_STFT_dual_window ~coherence
        ~cont2discrete ~convolve ~convolve2d correlate ~correlate2d ~correlation_lags ~csd cspline1d cspline1d_eval
        ~cspline2d ~czt ~czt_points ~dbode ~decimate ~deconvolve ~detrend ~dfreqresp ~dimpulse ~dlsim ~dstep ~ellip
        ellipap ~ellipord ~envelope ~fftconvolve ~filtfilt find_peaks ~find_peaks_cwt ~findfreqs ~firls firwin ~firwin2
        ~firwin_2d ~freqresp ~freqs ~freqs_zpk ~freqz ~freqz_sos ~freqz_zpk gammatone ~gauss_spline ~gausspulse
        ~get_window ~group_delay ~hilbert ~hilbert2 iircomb ~iirdesign iirfilter iirnotch iirpeak ~impulse ~invres
        ~invresz ~istft ~kaiser_atten ~kaiser_beta ~kaiserord lfilter lfilter_zi ~lfiltic ~lombscargle ~lp2bp lp2bp_zpk
        ~lp2bs lp2bs_zpk ~lp2hp lp2hp_zpk ~lp2lp lp2lp_zpk ~lsim ~max_len_seq ~medfilt ~medfilt2d ~minimum_phase
        normalize ~oaconvolve ~order_filter peak_prominences peak_widths ~periodogram ~place_poles ~qspline1d
        qspline1d_eval ~qspline2d ~remez ~resample ~resample_poly ~residue ~residuez ~savgol_coeffs ~savgol_filter
        sawtooth sepfir2d ShortTimeFFT ~ShortTimeFFT._fft_func ~ShortTimeFFT._ifft_func ~ShortTimeFFT.istft
        ~ShortTimeFFT.spectrogram ~ShortTimeFFT.stft_detrend ~sos2tf ~sos2zpk sosfilt ~sosfilt_zi ~sosfiltfilt ~sosfreqz
        ~spectrogram spline_filter ~square ~ss2tf ~ss2zpk ~step ~stft ~sweep_poly symiirorder1 symiirorder2 ~tf2sos
        tf2ss tf2zpk =CZT.__call__ =StateSpace.__init__ =StateSpace.__mul__ =StateSpace.__add__ ~unique_roots
        ~unit_impulse upfirdn ~vectorstrength ~welch ~wiener ~zoom_fft zpk2sos ~zpk2ss ~zpk2tf
    """,
    "scipy.signal.windows": """
        ~barthann ~bartlett ~blackman ~blackmanharris ~bohman ~boxcar ~chebwin ~cosine ~dpss ~exponential ~flattop
        ~gaussian ~general_cosine ~general_gaussian ~general_hamming ~get_window ~hamming ~hann ~kaiser
        ~kaiser_bessel_derived ~lanczos ~nuttall ~parzen ~taylor ~triang ~tukey
    """,
    "scipy.sparse": """
        block_array block_diag bmat diags diags_array expand_dims find hstack kron kronsum permute_dims spdiags
        swapaxes tril triu vstack
    """,
    "scipy.sparse.linalg": """
        bicg() bicgstab() cg() cgs() eigs() eigsh() expm expm_multiply() factorized() gcrotmk() gmres() inv
        is_sptriangular lgmres() lobpcg() lsmr() lsqr() matrix_power minres() norm onenormest() qmr() spbandwidth
        spilu splu() spsolve spsolve_triangular svds() tfqmr() _interface.MatrixLinearOperator._matmat
        =LinearOperator.matvec() =LinearOperator.rmatvec() =LinearOperator.matmat() =LinearOperator.rmatmat()
        =_interface.LinearOperator._init_dtype()
    """,
    "scipy.spatial": """
        distance_matrix minkowski_distance minkowski_distance_p ~procrustes geometric_slerp
    """,
    "scipy.spatial.distance": """
        braycurtis canberra cdist() chebyshev cityblock correlation cosine dice directed_hausdorff euclidean hamming
        is_valid_dm is_valid_y jaccard jensenshannon mahalanobis minkowski num_obs_dm num_obs_y pdist() rogerstanimoto
        russellrao ~seuclidean sokalsneath ~sqeuclidean squareform yule
    """,
    "scipy.spatial.transform": """
        -RigidTransform -RigidTransform.__mul__ -RigidTransform.__pow__ -RigidTransform.__setitem__
        -RigidTransform.apply -RigidTransform.concatenate -RigidTransform.from_components
        -RigidTransform.from_dual_quat -RigidTransform.from_exp_coords -RigidTransform.from_matrix
        -RigidTransform.from_rotation -RigidTransform.from_translation -RigidTransform.mean Rotation Rotation.__mul__
        Rotation.__pow__ Rotation.__setitem__ Rotation.align_vectors Rotation.apply Rotation.approx_equal
        Rotation.as_davenport Rotation.concatenate Rotation.from_davenport Rotation.from_euler Rotation.from_matrix
        Rotation.from_mrp Rotation.from_quat Rotation.from_rotvec Rotation.mean Rotation.reduce RotationSpline
        RotationSpline.__call__ Slerp Slerp.__call__
    """,
    "scipy.stats": """
        _axis_nan_policy._contains_nan ~_distribution_infrastructure.Mixture.{_logsum, _moment_central, _moment_raw,
        _sum}() _distribution_infrastructure.UnivariateDistribution._moment_transform_center _stats_py._cdf_distance
        alexandergovern anderson anderson_ksamp ansari barnard_exact ~bayes_mvs binned_statistic_dd binomtest
        boschloo_exact boxcox boxcox_normmax boxcox_normplot brunnermunzel bws_test chatterjeexi chi2_contingency
        circmean combine_pvalues contingency.{association, crosstab, odds_ratio} cramervonmises cramervonmises_2samp
        cumfreq describe differential_entropy dunnett entropy expectile f_oneway ~false_discovery_control fisher_exact
        fligner friedmanchisquare gmean goodness_of_fit() jarque_bera kendalltau kruskal ks_1samp ks_2samp kstat
        kstatvar kstest kurtosis kurtosistest levene lmoment logrank mannwhitneyu median_abs_deviation median_test mode
        moment monte_carlo_test() mood multiscale_graphcorr mvsdist normaltest ~obrientransform page_trend_test
        percentileofscore permutation_test() power() ppcc_max ppcc_plot qmc.MultinomialQMC.__init__ qmc.{discrepancy,
        geometric_discrepancy, scale, update_discrepancy} quantile quantile_test rankdata ranksums relfreq sem shapiro
        siegelslopes skew skewtest somersd spearmanr spearmanrho theilslopes tiecorrect tmax tmean tmin trim_mean tsem
        tstd ttest_1samp ttest_ind ttest_rel tukey_hsd tvar variation wasserstein_distance_nd weightedtau wilcoxon
        yeojohnson_normmax yeojohnson_normplot bartlett boxcox_llf chisquare circstd circvar gaussian_kde
        gaussian_kde.{evaluate, logpdf} hmean iqr linregress pearsonr pmean pointbiserialr power_divergence yeojohnson
        yeojohnson_llf _stats_py._SimpleStudentT.{cdf, sf} rv_continuous.{cdf, isf, logcdf, logpdf, logsf, pdf, ppf, sf,
        fit} rv_discrete.{cdf, isf, logcdf, logpmf, logsf, pmf, ppf, sf} _distn_infrastructure.rv_generic.{entropy,
        interval, moment, stats, support, nnlf} _distn_infrastructure.rv_generic.rvs!
        ~_distn_infrastructure.rv_frozen.__init__ _continuous_distns.{beta, erlang, expon, gamma, gumbel_l, gumbel_r,
        halfcauchy, halflogistic, halfnorm, invgauss, irwinhall, laplace, logistic, loglaplace, lognorm, norm, pareto,
        pearson3, powerlaw, rayleigh, reciprocal, rel_breitwigner, skewnorm, truncpareto, uniform, vonmises,
        weibull_min}_gen.fit rv_discrete.expect() ~_multivariate.dirichlet_gen.{__call__, cov, entropy, logpdf, mean,
        pdf, var} _multivariate.{dirichlet, invwishart, matrix_normal, matrix_t, multinomial, multivariate_normal,
        multivariate_t, normal_inverse_gamma, vonmises_fisher, wishart}_gen.rvs!
        ~_multivariate.dirichlet_multinomial_gen.{cov, mean, var} _multivariate.dirichlet_multinomial_gen.{__call__,
        logpmf, pmf} _multivariate.invwishart_frozen.{logpdf, pdf} _multivariate.{invwishart, vonmises_fisher,
        wishart}_frozen.rvs! _multivariate.invwishart_gen.{__call__, entropy, logpdf, mean, mode, pdf, var}
        _multivariate.matrix_normal_gen.{__call__, entropy, logpdf, pdf} _multivariate.matrix_t_gen.{__call__, logpdf,
        pdf} _multivariate.multinomial_gen.{__call__, cov, entropy, logpmf, mean, pmf}
        _multivariate.multivariate_normal_frozen.{cdf, logcdf} _multivariate.multivariate_normal_gen.{__call__, cdf,
        entropy, logcdf, logpdf, marginal, pdf} _multivariate.multivariate_t_frozen.cdf
        _multivariate.multivariate_t_gen.{__call__, cdf, entropy, logpdf, marginal, pdf}
        _multivariate.normal_inverse_gamma_gen.{__call__, logpdf, mean, pdf, var}
        _multivariate.random_correlation_gen.rvs _multivariate.vonmises_fisher_frozen.{logpdf, pdf}
        _multivariate.vonmises_fisher_gen.{__call__, entropy, logpdf, pdf} _multivariate.wishart_frozen.{logpdf, pdf}
        _multivariate.wishart_gen.{__call__, entropy, logpdf, mean, mode, pdf, var} =gstd =gzscore =ttest_ind_from_stats
        =zmap =zscore =bootstrap() =directional_stats =epps_singleton_2samp =probplot =scoreatpercentile =sigmaclip
        =trim1 =trimboth =fit() =truncate =order_statistic =exp =log =abs
        =_distribution_infrastructure.UnivariateDistribution.{entropy, logentropy, median, mode, mean, variance,
        standard_deviation, skewness, kurtosis, logpdf, pdf, logpmf, pmf, logcdf, cdf, logccdf, ccdf, ilogcdf, icdf,
        ilogccdf, iccdf, moment, support, __init__, __add__, __sub__, __mul__, __truediv__, __pow__, __radd__, __rsub__,
        __rmul__, __rtruediv__, __neg__, __abs__} =_distribution_infrastructure.Mixture.{entropy, logentropy, median,
        mode, mean, variance, standard_deviation, skewness, kurtosis, logpdf, pdf, logpmf, pmf, logcdf, cdf, logccdf,
        ccdf, ilogcdf, icdf, ilogccdf, iccdf, moment, __init__} =Covariance.{from_diagonal, from_precision,
        from_cholesky, from_eigendecomposition, whiten, colorize} -mstats.*
    """,
}
"""What each module of SciPy has hooks for."""
HOLDERS = {
    "scipy.signal": ("_ltisys.LinearTimeInvariant",),
    "scipy.stats": ("_distribution_infrastructure.UnivariateDistribution", "Covariance"),
}
"""Classes of SciPy whose objects keep traced values that they are given, as attributes."""
TREES = {"scipy.spatial.transform": ("Rotation",)}
"""Classes whose objects are trees of one leaf: `Class_leaf` and `Class_of_leaf` of func's module convert them."""


def holds_traced(value: Any, depth: int = 0) -> bool:
    """Whether a value is traced, or is a list, tuple or dict that holds one, or an object that says so itself."""
    kind: Any = type(value)
    if kind is Tracer:
        return True
    if kind in CARRIERS:  # an array of func.intercept() says whether it holds one
        holds = getattr(kind, "__func_holds_traced__", None)
        return holds is None or bool(holds(value))
    if kind is list or kind is tuple or (depth == 0 and issubclass(kind, tuple)):
        return depth < MAX_DEPTH and any([holds_traced(item, depth + 1) for item in value])
    if kind is dict:
        return depth < MAX_DEPTH and any([holds_traced(item, depth + 1) for item in value.values()])
    if kind is np.ndarray:
        return value.dtype.hasobject and any([holds_traced(item, MAX_DEPTH) for item in value.ravel().tolist()])
    holds = getattr(kind, "__func_holds_traced__", None)
    return holds is not None and bool(holds(value))


def is_key(value: Any) -> bool:
    """Whether a value has the shape and dtype of a key of func.random."""
    return getattr(value, "dtype", None) == np.uint32 and value.shape == (2,)


def _has_traced_attribute(self: Any) -> bool:
    """`__func_holds_traced__` of the objects of `HOLDERS`."""
    return any([holds_traced(value, MAX_DEPTH - 1) for value in vars(self).values()])


class Hook:
    """What the code of a function with a hook calls."""

    condition = _EXIST
    """When it is asked."""
    keeps_arguments = False
    """Whether what it makes shares memory with its arguments."""
    __slots__ = ("always", "function", "module", "name", "names", "original", "target", "values")

    def __init__(self, function: types.FunctionType, module: str, name: str, always: bool) -> None:
        self.function = function
        self.original = copied(function)
        self.module = module
        self.name = name
        self.always = always
        """Whether callbacks may bring traced values, so that the arguments do not tell."""
        self.target: Callable[..., Any] | None = None
        self.names, self.values = _defaults(function)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The call while traced values exist."""
        try:
            is_compiled = any([type(x).__name__ == "LowLevelCallable" for x in args])  # it sees no traced values
            if (
                (is_compiled or not self.always)
                and not any([holds_traced(x) for x in args])
                and not holds_traced(kwargs)
            ):
                was_intercepting, out = on_plain_memory(self.original, args, kwargs, keep=self.keeps_arguments)
                return out if was_intercepting else self.original(*args, **kwargs)
            if is_compiled and type(args[0]).__name__ == "LowLevelCallable":
                return self.original(*args, **kwargs)
            if self.target is None:
                self.target = self.found()
            return called_inside(self.target, self.without_defaults(args, kwargs), kwargs)
        except Exception as error:
            hide_outside(error)
            raise

    def found(self) -> Callable[..., Any]:
        """The function of func that the hook leads to."""
        if self.name.startswith("~"):
            return intercepted_call(self.original)
        if self.name.startswith("="):
            return self.original
        if self.name.startswith("-"):
            return refusal(f"{self.module.removeprefix('func.')}.{self.name[1:]}")
        target: Callable[..., Any] = behind(getattr(importlib.import_module(self.module), self.name))
        return target

    def without_defaults(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The positional arguments; those that have their default, and all after the first such, leave or are named."""
        for name, value in self.values.items():
            if name in kwargs and kwargs[name] is value:
                del kwargs[name]
        given = list(args)
        for i, name in enumerate(self.names[: len(given)]):
            if name in self.values and given[i] is self.values[name]:
                rest = zip(self.names[i:], given[i:], strict=False)
                kwargs.update({name: x for name, x in rest if x is not self.values.get(name, _ABSENT)})
                return given[:i]
        return given

    def first(self, *args: Any, **kwargs: Any) -> Any:
        """The first call without traced values: from now on the test stands before the original code itself."""
        code = with_prefix(self.original.__code__, f"if {_EXIST}:\n    return {_HOOK!r}.call({{}})\n")
        if code is None:  # its source is not at hand, or is not what was compiled
            code = _stub(self.original, self.condition, "original")
        self.function.__code__ = self.bound(code)
        try:
            return self.original(*args, **kwargs)
        except Exception as error:
            hide_outside(error)
            raise

    def bound(self, code: types.CodeType) -> types.CodeType:
        """Code with objects in the place of the constants that stand for them, and the original's name and place."""
        objects = {_HOOK: self, _TRACED: TRACED}
        old = self.original.__code__
        return code.replace(
            co_consts=tuple([objects.get(c, c) if type(c) is str else c for c in code.co_consts]),
            co_name=old.co_name,
            co_qualname=old.co_qualname,
            co_filename=old.co_filename,
            co_firstlineno=old.co_firstlineno,
        )


_ABSENT = object()
HOOKS: dict[types.FunctionType, Hook] = {}
"""The functions that have a hook."""


def original(function: Any) -> Callable[..., Any]:
    """A function of SciPy as it is without its hook."""
    hook = HOOKS.get(function)
    return function if hook is None else hook.original


def copied(function: types.FunctionType) -> types.FunctionType:
    """A function object of its own with the same code."""
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__dict__.update(function.__dict__)
    copy.__module__, copy.__qualname__, copy.__doc__ = function.__module__, function.__qualname__, function.__doc__
    return copy


def _defaults(function: types.FunctionType) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The names of the positional parameters, and the defaults by name; nothing where any number may follow."""
    code = function.__code__
    values = dict(function.__kwdefaults__ or {})
    if code.co_flags & inspect.CO_VARARGS or code.co_posonlyargcount:
        return (), values
    names = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    return names, values | dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))


def _stub(function: types.FunctionType, condition: str, otherwise: str = "first") -> types.CodeType:
    """Code with the parameters of a function that asks its hook, and else calls what the hook has under a name."""
    code = function.__code__
    count, keywords = code.co_argcount, code.co_kwonlyargcount
    names = list(code.co_varnames[: count + keywords])
    signature, words = names[:count], names[:count]
    if code.co_posonlyargcount:
        signature = [*signature[: code.co_posonlyargcount], "/", *signature[code.co_posonlyargcount :]]
    place = count + keywords
    if code.co_flags & inspect.CO_VARARGS:
        signature.append(f"*{code.co_varnames[place]}")
        words = [*words, signature[-1]]
        place += 1
    elif keywords:
        signature.append("*")
    signature += names[count:]
    words += [f"{name}={name}" for name in names[count:]]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        signature.append(f"**{code.co_varnames[place]}")
        words.append(signature[-1])
    call = f"({', '.join(words)})"
    text = (
        f"    def function({', '.join(signature)}):\n"
        f"        if {condition}:\n"
        f"            return {_HOOK!r}.call{call}\n"
        f"        return {_HOOK!r}.{otherwise}{call}\n"
    )
    free = code.co_freevars
    if not free:
        return function_code(text.replace("\n    ", "\n")[4:], code.co_filename)
    body = f"def outer({', '.join(free)}):\n{text}        ({', '.join(free)},)\n    return function\n"
    outer = function_code(body, code.co_filename)
    return next(constant for constant in outer.co_consts if isinstance(constant, types.CodeType))


TO_REGISTER: set[str] = set()
"""Modules of SciPy whose module of func registers itself when it has been imported."""


def register_late(namespace: dict[str, Any]) -> None:
    """Called at the end of a module of func that has a function `register`."""
    module = namespace["__name__"].removeprefix("func.")
    if module in TO_REGISTER:
        TO_REGISTER.discard(module)
        namespace["register"]()


def install(module: str) -> None:
    """Give the functions of a module of SciPy their hooks; again, those that it has defined since."""
    scipy_module = sys.modules.get(module)
    if scipy_module is None:
        return
    for name, imported in list(sys.modules.items()):
        if name.startswith("scipy."):
            _look_up_numpy(imported)
    if module in ("scipy.fft", "scipy.sparse"):
        own = importlib.import_module(f"func.{module}")
        if hasattr(own, "register"):
            own.register()
        else:  # func's module has begun to be imported, and has imported SciPy's
            TO_REGISTER.add(module)
    for path in HOLDERS.get(module, ()):
        kind: Any = scipy_module
        for part in path.split("."):
            kind = getattr(kind, part, None)
        if kind is not None:
            kind.__func_holds_traced__ = _has_traced_attribute
    target = "func." + module
    for name in TREES.get(module, ()):
        _register_tree(getattr(scipy_module, name, None), target, name)
    for entry in entries(scipy_module, TABLE.get(module, "")):
        always, keyed = entry.endswith("()"), entry.endswith("!")
        path = entry.removesuffix("()").removesuffix("!").lstrip("~=-")
        holder: Any = scipy_module
        value: Any = scipy_module
        for part in path.split("."):
            holder, value = value, _of_class(value, part) if isinstance(value, type) else getattr(value, part, None)
        name = entry if entry.startswith("-") else entry[: entry.startswith(("~", "="))] + path.replace(".", "_")
        if isinstance(value, types.BuiltinFunctionType):
            value = _function_in_python(holder, path.rpartition(".")[2], value)
        if type(value).__name__ == "cython_function_or_method" and "." in path:
            value = _in_python(getattr(scipy_module, path.split(".")[0]), path.split(".")[1], value)
        if isinstance(value, type):
            _add_class_hook(value, target, name)
        elif isinstance(value, types.FunctionType):
            add_hook(value, target, name, always, keyed)


def entries(module: types.ModuleType, table: str) -> Iterator[str]:
    """The entries of a table; of `-module.*` one for each public name, of `Class.{a, b}` those of its methods."""
    for entry in re.sub(r",\s+", ",", table).split():
        before, _, rest = entry.partition("{")
        inner, _, after = rest.partition("}")
        if rest:
            yield from [f"{before}{name}{after}" for name in inner.split(",")]
        elif entry.endswith(".*"):
            yield from [f"{entry[:-1]}{name}" for name in getattr(module, entry[1:-2]).__all__]
        else:
            yield entry


@functools.cache
def _register_tree(kind: Any, module: str, name: str) -> None:
    """Make a class of SciPy one of `TREES`, whose functions are imported when they are called."""

    def flatten(value: Any) -> tuple[tuple[Any, ...], None]:
        return (getattr(importlib.import_module(module), f"{name}_leaf")(value),), None

    def unflatten(_: None, leaves: Sequence[Any]) -> Any:
        return getattr(importlib.import_module(module), f"{name}_of_leaf")(leaves[0])

    if kind is not None:
        tree.register_node(kind, flatten, unflatten)


_CREATORS = {
    name: vars(np)[name]  # in a running transform np itself has others
    for name in (
        "arange", "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "copy", "empty",
        "empty_like", "eye", "full", "full_like", "identity", "linspace", "ones", "ones_like", "zeros", "zeros_like",
    )
}  # fmt: skip
_NAME_OF = {id(function): name for name, function in _CREATORS.items()}


def _look_up_numpy(module: types.ModuleType) -> None:
    """Names that a module of SciPy has bound to NumPy's creation functions look them up in NumPy from here on.

    While a transform runs there are other functions under these names: see `func.host.patching`.
    """
    namespace = vars(module)
    file = namespace.get("__file__") or "<scipy>"
    for key, value in list(namespace.items()):
        name = _NAME_OF.get(id(value))
        if name is not None and file.endswith(".py"):
            namespace[key] = _looked_up(name, file)


def _looked_up(name: str, file: str) -> Callable[..., Any]:
    """A function that calls NumPy's of this name."""
    text = (
        f"def {name}(*args, **kwargs):\n"
        "    if traced.run or traced.stay:\n"
        f"        return numpy.{name}(*args, **kwargs)\n"
        "    return original(*args, **kwargs)\n"
    )
    namespace = {"__builtins__": builtins, "numpy": np, "original": _CREATORS[name], "traced": TRACED}
    function = types.FunctionType(function_code(text, file), namespace, name)
    return functools.update_wrapper(function, _CREATORS[name], ("__module__", "__doc__", "__qualname__"))


def _of_class(scipy_class: type, name: str) -> Any:
    """What a class or one of its bases defines; of a class method or a static method, its function."""
    value = next((vars(base)[name] for base in scipy_class.__mro__ if name in vars(base)), None)
    return value.__func__ if isinstance(value, (classmethod, staticmethod)) else value


def _function_in_python(module: types.ModuleType, name: str, compiled: Any) -> Any:
    """A compiled function of a module, which gets one in its place that calls it and can have a hook.

    A name that the user has bound to the compiled one before keeps it, without a hook.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return compiled(*args, **kwargs)
        except Exception as error:
            hide_outside(error)
            raise

    functools.update_wrapper(call, compiled)
    for holder in (module, sys.modules.get(compiled.__module__)):
        if holder is not None and getattr(holder, name, None) is compiled:
            setattr(holder, name, call)
    return call


def _in_python(scipy_class: type, name: str, compiled: Any) -> Any:
    """A compiled method of a class that is not: the class gets a function that calls it, which can have a hook.

    A class that is compiled itself keeps its method, without a hook.
    """

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return compiled(self, *args, **kwargs)
        except Exception as error:
            hide_outside(error)
            raise

    functools.update_wrapper(call, compiled)
    owner: Any = next((base for base in scipy_class.__mro__ if vars(base).get(name) is compiled), None)
    try:
        setattr(owner, name, call)
    except (AttributeError, TypeError):
        return compiled
    return call


def add_hook(function: types.FunctionType, module: str, name: str, always: bool = False, keyed: bool = False) -> None:
    """Give a function its hook."""
    if function in HOOKS:
        return
    hook = (_KeyHook if keyed else Hook)(function, module, name, always)
    if HOOKS.setdefault(function, hook) is hook:
        function.__code__ = hook.bound(_stub(function, hook.condition))


class _KeyHook(Hook):
    """The hook of a function that draws samples, which takes keys of func.random."""

    condition = "True"
    __slots__ = ()

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Any call."""
        if any([is_key(value) or hasattr(type(value), "next_key") for value in (*args, *kwargs.values())]):
            return called_inside(self.found(), args, kwargs)
        exists = TRACED.run or TRACED.stay
        return super().call(*args, **kwargs) if exists else self.original(*args, **kwargs)


def _add_class_hook(scipy_class: type, module: str, name: str) -> None:
    """Objects of a class that are made of traced values become objects of func's class of this name."""
    init = vars(scipy_class).get("__init__")
    if type(init).__name__ == "cython_function_or_method":
        init = _in_python(scipy_class, "__init__", init)
    if not isinstance(init, types.FunctionType) or init in HOOKS:
        return
    hook = _ClassHook(init, module, name, scipy_class)
    if HOOKS.setdefault(init, hook) is hook:
        init.__code__ = hook.bound(_stub(init, hook.condition))


@functools.cache
def _with_base(kind: type, own: type) -> type:
    """A user's subclass of a class of SciPy's, which has func's methods where the user defined none."""
    return type(kind.__name__, (kind, own), {"__module__": kind.__module__, "__qualname__": kind.__qualname__})


class _ClassHook(Hook):
    """The hook of a class, in its `__init__`."""

    keeps_arguments = True
    __slots__ = ("scipy_class",)

    def __init__(self, function: types.FunctionType, module: str, name: str, scipy_class: type) -> None:
        super().__init__(function, module, name, always=False)
        self.scipy_class = scipy_class

    def found(self) -> Callable[..., Any]:
        """What makes an object one of func's class; a user's subclass gets it as a base, SciPy's stay what they are."""
        if self.name.startswith(("~", "-")):
            return super().found()
        own: Any = getattr(importlib.import_module(self.module), self.name)

        def become(self_: Any, *args: Any, **kwargs: Any) -> None:
            kind: Any = type(self_)
            if kind is not self.scipy_class and (issubclass(kind, own) or kind.__module__.startswith("scipy.")):
                self.original(self_, *args, **kwargs)
                return
            self_.__class__ = own if kind is self.scipy_class else _with_base(kind, own)
            own.__init__(self_, *args, **kwargs)

        return become
