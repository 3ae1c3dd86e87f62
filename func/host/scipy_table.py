"""The targets of the hooks of SciPy's functions.

Entries of `TABLE`:

- `name`: the function of this name in the module of func.scipy with SciPy's path. - `~name`: SciPy's own NumPy code
under `func.intercept()`, so that its arrays may take traced values. - `=name`: SciPy's own code, which needs only
NumPy's converters for traced values. Transforms provide them, so this is for tensors. - `-name`: raises with a
suggestion, see `unsupported`; `-module.*`: all public functions of a module. - `name()`: as `name`, even without a
traced argument: it takes callbacks, which may use traced values. - `name!`: as `name`, also for keys and generators of
func.random, with or without traced values. - `Class.method`: the function `Class_method`, for a method that the class
defines or inherits; `Class.{a, b}` for two;
  a class alone: the class of this name. `_module.f` may be compiled: SciPy's code then calls the version.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line

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
