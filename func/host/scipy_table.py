"""The targets of the hooks of SciPy's functions, and of NumPy's polynomials.

Entries of `TABLE`:

- `name`: the function of this name in the module of func.scipy that is laid out as SciPy's.
- `~name`: SciPy's own code, run with `func.intercept()`: it is NumPy code, whose arrays may hold traced values.
- `=name`: SciPy's own code, which needs no more than NumPy's converters that take traced values. They do where a
  transform runs, so this is for tensors.
- `-name`: an error that suggests what to write, see `refusal`.
- `-module.*`: all public functions of a module; `~*`: those of this one that have no entry.
- `name()`: as `name`, also where no argument holds a traced value: it takes callbacks, which may.
- `name!`: as `name`, also for keys and generators of func.random, where traced values exist or not.
- `Class.method`: the function `Class_method`, for a method that the class defines or inherits; `Class.{a, b}` for two;
  a class alone: the class of this name. Of a property the getter and the setter lead to the function. `_module.f` may
  be compiled: SciPy's code then calls the version.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line

BASES = {
    "polynomial": "poly",
    "chebyshev": "cheb",
    "hermite": "herm",
    "hermite_e": "herme",
    "laguerre": "lag",
    "legendre": "leg",
}
"""NumPy's modules of series, and how the names of their functions begin."""

TABLE: dict[str, str] = {
    **{
        f"numpy.polynomial.{basis}": f"~* {short}roots {short}companion {short}div {short}line {short}int {short}mulx"
        for basis, short in BASES.items()
    },
    "numpy.polynomial.polyutils": "trimseq",
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
        ~fhtoffset
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
        _ppoly.{evaluate_nd, fix_continuity}
        {_interpolate, _ndgriddata, _rgi}._ndim_coords_from_arrays
        =PPoly.__init__ =BPoly.__init__ ~PPoly.{extend, derivative, antiderivative, from_spline, from_bernstein_basis}
        PPoly.{__call__, integrate, solve}
        ~BPoly.{extend, derivative, antiderivative, from_derivatives,
        from_power_basis}
        BPoly.{__call__, integrate}
        ~NdPPoly.{__init__, __call__, derivative, antiderivative, integrate, integrate_1d}
        ~CubicHermiteSpline.__init__ CubicSpline.__init__ PchipInterpolator.__init__
        Akima1DInterpolator.__init__
        BSpline.{__init__, __call__, design_matrix, from_power_basis, insert_knot, integrate}
        ~BSpline.{basis_element, derivative, antiderivative} BSpline.{t, c} =BSpline.construct_fast
        PPoly.{c, x} =PPoly.construct_fast BPoly.{c, x} =BPoly.construct_fast =NdBSpline.{t, c}
        _bsplines.{_insert, _BSpline.__init__, _BSpline.insert_knot} _dierckx.{find_interval, _coloc}
        ~NdBSpline.{__init__, derivative} NdBSpline.{__call__, _bspline_derivative_along_axis, design_matrix}
        _ndbspline._preprocess_inputs
        AAA.{__init__, __call__}
        ~BarycentricInterpolator.{__call__, add_xi, derivative, derivatives, set_yi}
        BarycentricInterpolator.{__init__, _evaluate, _evaluate_derivatives}
        BivariateSpline.{__call__, ev, integral, partial_derivative} CloughTocher2DInterpolator.__init__
        FloaterHormannInterpolator.__init__ InterpolatedUnivariateSpline.__init__
        KroghInterpolator.{__init__, _evaluate, _evaluate_derivatives} ~KroghInterpolator.{derivative, derivatives}
        LSQBivariateSpline.__init__
        -LSQSphereBivariateSpline -LSQSphereBivariateSpline.__call__ LSQUnivariateSpline.__init__
        LinearNDInterpolator.{__init__, __call__} NearestNDInterpolator.{__init__, __call__}
        RBFInterpolator.{__init__, __call__} Rbf.{__init__, __call__} RectBivariateSpline.__init__
        -RectSphereBivariateSpline -RectSphereBivariateSpline.__call__ =RegularGridInterpolator.__init__
        RegularGridInterpolator.{__call__, _construct_spline} =RegularGridInterpolator.{grid, values}
        _rgi._check_points SmoothBivariateSpline.__init__ -SmoothSphereBivariateSpline
        -SmoothSphereBivariateSpline.__call__ UnivariateSpline.{__init__, set_smoothing_factor}
        ~UnivariateSpline.{__call__, derivatives, integral, roots, derivative, antiderivative}
        _fitpack_impl.{insert, spalde, splev, splint, sproot} approximate_taylor_polynomial()
        ~barycentric_interpolate bisplev bisplrep griddata ~insert interp1d.{__init__, __call__} interpn
        ~krogh_interpolate lagrange make_interp_spline make_lsq_spline make_smoothing_spline make_splprep
        make_splrep pade ~pchip_interpolate ~spalde ~splantider ~splder ~splev ~splint splprep splrep ~sproot
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
        ~band_stop_obj ~bessel ~besselap bilinear bilinear_zpk ~bode ~buttap ~butter ~buttord cheb1ap ~cheb1ord cheb2ap
        ~cheb2ord ~cheby1 ~cheby2 ~check_COLA ~check_NOLA chirp choose_conv_method ~closest_STFT_dual_window ~coherence
        ~cont2discrete ~convolve ~convolve2d correlate ~correlate2d ~correlation_lags ~csd cspline1d cspline1d_eval
        ~cspline2d ~czt ~czt_points ~dbode ~decimate ~deconvolve ~detrend ~dfreqresp ~dimpulse ~dlsim ~dstep ~ellip
        ellipap ~ellipord ~envelope ~fftconvolve ~filtfilt find_peaks ~find_peaks_cwt ~findfreqs ~firls firwin ~firwin2
        ~firwin_2d ~freqresp ~freqs ~freqs_zpk ~freqz ~freqz_sos ~freqz_zpk gammatone ~gauss_spline ~gausspulse
        ~get_window ~group_delay ~hilbert ~hilbert2 iircomb ~iirdesign iirfilter iirnotch iirpeak ~impulse ~invres
        ~invresz ~istft ~kaiser_atten ~kaiser_beta ~kaiserord lfilter lfilter_zi lfiltic ~lombscargle ~lp2bp lp2bp_zpk
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
        block_array block_diag bmat diags diags_array expand_dims find hstack kron ~kronsum permute_dims spdiags
        swapaxes tril triu vstack
    """,
    "scipy.sparse.linalg": """
        bicg() bicgstab() cg() cgs() eigs() eigsh() expm expm_multiply() factorized() gcrotmk() gmres() inv
        is_sptriangular lgmres() lobpcg() lsmr() lsqr() ~matrix_power minres() norm onenormest() qmr() spbandwidth
        spilu splu() spsolve spsolve_triangular svds() tfqmr() _interface.MatrixLinearOperator._matmat
        =LinearOperator.matvec() =LinearOperator.rmatvec() =LinearOperator.matmat() =LinearOperator.rmatmat()
        =_interface.LinearOperator._init_dtype()
    """,
    "scipy.spatial": """
        distance_matrix minkowski_distance minkowski_distance_p ~procrustes geometric_slerp
    """,
    "scipy.spatial.distance": """
        braycurtis canberra cdist() chebyshev cityblock correlation cosine dice directed_hausdorff euclidean ~hamming
        is_valid_dm ~is_valid_y jaccard jensenshannon mahalanobis minkowski ~num_obs_dm ~num_obs_y pdist()
        rogerstanimoto russellrao ~seuclidean sokalsneath ~sqeuclidean squareform yule
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
        boschloo_exact ~boxcox boxcox_normmax boxcox_normplot brunnermunzel bws_test chatterjeexi ~chi2_contingency
        circmean combine_pvalues contingency.{association, crosstab, odds_ratio} cramervonmises cramervonmises_2samp
        cumfreq describe differential_entropy dunnett entropy expectile f_oneway ~false_discovery_control fisher_exact
        fligner friedmanchisquare gmean goodness_of_fit() jarque_bera kendalltau kruskal ks_1samp ks_2samp kstat
        kstatvar kstest kurtosis kurtosistest levene lmoment logrank mannwhitneyu median_abs_deviation median_test mode
        moment monte_carlo_test() mood multiscale_graphcorr mvsdist normaltest ~obrientransform page_trend_test
        percentileofscore permutation_test() power() ppcc_max ppcc_plot qmc.MultinomialQMC.__init__ qmc.{discrepancy,
        geometric_discrepancy, update_discrepancy} ~qmc.scale quantile quantile_test rankdata ranksums relfreq sem
        shapiro siegelslopes skew skewtest somersd spearmanr spearmanrho theilslopes tiecorrect tmax tmean tmin
        trim_mean tsem tstd ttest_1samp ttest_ind ttest_rel tukey_hsd tvar variation wasserstein_distance_nd weightedtau
        wilcoxon yeojohnson_normmax yeojohnson_normplot bartlett boxcox_llf chisquare circstd circvar ~gaussian_kde
        gaussian_kde.{evaluate, logpdf} ~gaussian_kde.{integrate_box_1d, integrate_gaussian, integrate_kde, marginal,
        set_bandwidth} _morestats.{_boxcox_conf_interval, _yeojohnson_transform} hmean iqr linregress pearsonr pmean
        pointbiserialr power_divergence ~yeojohnson yeojohnson_llf _stats_py._SimpleStudentT.{cdf, sf}
        rv_continuous.{cdf, isf, logcdf, logpdf, logsf, pdf, ppf, sf, fit} rv_discrete.{cdf, isf, logcdf, logpmf, logsf,
        pmf, ppf, sf} ~_distn_infrastructure.rv_generic.interval _distn_infrastructure.rv_generic.{entropy, moment,
        stats, support, nnlf} _distn_infrastructure.rv_generic.rvs! ~_distn_infrastructure.rv_frozen.__init__
        _continuous_distns.{beta, erlang, expon, gamma, gumbel_l, gumbel_r, halfcauchy, halflogistic, halfnorm,
        invgauss, irwinhall, laplace, logistic, loglaplace, lognorm, norm, pareto, pearson3, powerlaw, rayleigh,
        reciprocal, rel_breitwigner, skewnorm, truncpareto, uniform, vonmises, weibull_min}_gen.fit rv_discrete.expect()
        _multivariate.{_PSD, _dirichlet_multinomial_check_parameters} _multivariate.{dirichlet, invwishart,
        matrix_normal, matrix_t, multinomial, multivariate_normal, multivariate_t, normal_inverse_gamma,
        random_correlation, vonmises_fisher, wishart}_gen.rvs! _multivariate.{invwishart, vonmises_fisher,
        wishart}_frozen.rvs! ~_multivariate.dirichlet_gen.{__call__, cov, entropy, logpdf, mean, pdf, var}
        ~_multivariate.dirichlet_frozen.{cov, entropy, logpdf, mean, pdf, var} _multivariate.{dirichlet_multinomial,
        invwishart, matrix_normal, matrix_t, multinomial, multivariate_normal, multivariate_t, normal_inverse_gamma,
        vonmises_fisher, wishart}_gen.__call__ ~_multivariate.dirichlet_multinomial_gen.{cov, logpmf, mean, pmf, var}
        ~_multivariate.dirichlet_multinomial_frozen.{cov, logpmf, mean, pmf, var} _multivariate.{invwishart,
        multivariate_t, wishart}_gen._logpdf _multivariate.invwishart_gen.{_mean, _var}
        ~_multivariate.invwishart_gen.{entropy, logpdf, mean, mode, pdf, var} ~_multivariate.invwishart_frozen.{entropy,
        logpdf, mean, mode, pdf, var} ~_multivariate.matrix_normal_gen.{entropy, logpdf, pdf}
        ~_multivariate.matrix_normal_frozen.{entropy, logpdf, pdf} ~_multivariate.matrix_t_gen.{logpdf, pdf}
        ~_multivariate.matrix_t_frozen.{logpdf, pdf} _multivariate.multinomial_gen.{_checkresult, _process_parameters,
        _process_quantiles} ~_multivariate.multinomial_gen.{cov, entropy, logpmf, mean, pmf}
        ~_multivariate.multinomial_frozen.{cov, entropy, logpmf, mean, pmf} _multivariate.multivariate_normal_gen.{_cdf,
        logcdf, logpdf, pdf} _multivariate.multivariate_normal_frozen.{logcdf, logpdf}
        ~_multivariate.multivariate_normal_gen.{cdf, entropy, marginal} ~_multivariate.multivariate_normal_frozen.{cdf,
        entropy, marginal, pdf} _multivariate.multivariate_t_gen.{_cdf, _entropy}
        ~_multivariate.multivariate_t_gen.{cdf, entropy, logpdf, marginal, pdf}
        ~_multivariate.multivariate_t_frozen.{cdf, entropy, logpdf, marginal, pdf}
        ~_multivariate.normal_inverse_gamma_gen.logpdf _multivariate.normal_inverse_gamma_gen.{mean, pdf, var}
        ~_multivariate.normal_inverse_gamma_frozen.{logpdf, mean, pdf, var}
        _multivariate.vonmises_fisher_gen._process_parameters ~_multivariate.vonmises_fisher_gen.{entropy, logpdf, pdf}
        ~_multivariate.vonmises_fisher_frozen.{entropy, logpdf, pdf} _multivariate.wishart_gen._mode
        ~_multivariate.wishart_gen.{entropy, logpdf, mean, mode, pdf, var} ~_multivariate.wishart_frozen.{entropy,
        logpdf, mean, mode, pdf, var} =gstd =gzscore =ttest_ind_from_stats =zmap =zscore =bootstrap() =directional_stats
        =epps_singleton_2samp =probplot =scoreatpercentile =sigmaclip =trim1 =trimboth =fit() =truncate =order_statistic
        =exp =log =abs =_distribution_infrastructure.UnivariateDistribution.{entropy, logentropy, median, mode, mean,
        variance, standard_deviation, skewness, kurtosis, logpdf, pdf, logpmf, pmf, logcdf, cdf, logccdf, ccdf, ilogcdf,
        icdf, ilogccdf, iccdf, moment, support, __init__, __add__, __sub__, __mul__, __truediv__, __pow__, __radd__,
        __rsub__, __rmul__, __rtruediv__, __neg__, __abs__} =_distribution_infrastructure.Mixture.{entropy, logentropy,
        median, mode, mean, variance, standard_deviation, skewness, kurtosis, logpdf, pdf, logpmf, pmf, logcdf, cdf,
        logccdf, ccdf, ilogcdf, icdf, ilogccdf, iccdf, moment, __init__} =Covariance.{from_diagonal, from_precision,
        from_cholesky, from_eigendecomposition, whiten, colorize} -mstats.*
    """,
}

INSTEAD: dict[str, str] = {
    "scipy.interpolate.": "Map the sphere to the plane, or use RBFInterpolator.",
    "scipy.linalg.qr_": "Factor the changed matrix by np.linalg.qr.",
    "scipy.spatial.transform.RigidTransform": "Keep a Rotation r and a translation t, and write r.apply(x) + t.",
    "scipy.stats.mstats.": "Use the function of scipy.stats, with NaN for masked elements and nan_policy='omit'.",
}
"""The suggestion for a function, by the beginning of its name."""


def unsupported(name: str) -> Callable[..., Any]:
    """A function that raises UnsupportedFunctionError, as the target of a hook."""
    instead = next(text for start, text in INSTEAD.items() if name.startswith(start))

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedFunctionError(f"{name} takes no traced values{at_line()}\n{instead}")

    return function
