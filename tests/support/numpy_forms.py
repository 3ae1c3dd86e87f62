"""Calls of NumPy's functions in the forms in which code calls them: keywords, defaults, lists, orders, bases.

One call a line, of `x`: a vector in `OF_VECTORS`, a matrix in `OF_MATRICES`.
"""

from __future__ import annotations

OF_VECTORS = """
np.piecewise(x, [x < 0.4, x >= 0.4], [lambda t: t**2, lambda t: 3*t])
np.piecewise(x, [x < 0.4, x >= 0.6], [lambda t: t**2, 1.5, lambda t: -t])
np.piecewise(x, x < 0.4, [lambda t: t**2, lambda t: t])
np.piecewise(x, [x < 0.4], [lambda t, a, b=1: t*a*b], 2.0, b=3.0)
np.piecewise(V, [V < 0.4, V >= 0.4], [lambda t: t**2*x[0], lambda t: 3*t])
np.piecewise(x, [V < 0.4, V >= 0.4], [0.0, lambda t: t])
np.piecewise(x[0], [x[0] < 0.4, x[0] >= 0.4], [lambda t: t**2, lambda t: 3*t])
np.piecewise(x, [x < 0.4, x >= 0.4], [x[0], x[1]])
np.unique(x)
np.unique(np.round(x))
np.unique(np.round(x), return_counts=True)
np.unique(x, return_index=True, return_inverse=True, return_counts=True)
np.unique(x, equal_nan=False)
np.unique(x, sorted=False)
np.unique_values(np.round(x))
np.unique_counts(np.round(x))
np.union1d(x, np.array([0.3, 0.1]))
np.intersect1d(np.round(x), np.array([1.0, 3.0]))
np.setdiff1d(x, np.array([0.3, 0.1]))
np.setxor1d(x, np.array([0.3, 0.1]))
np.isin(x, [0.3, 0.9])
np.trim_zeros(np.where(x>0.4, x, 0.0))
np.poly1d(x)(2.0)
np.poly1d([1.0, 2.0, 3.0])(x)
np.poly1d(x).deriv()(0.5)
np.poly1d(x).integ()(0.5)
(np.poly1d(x)*np.poly1d([1.0,2.0]))(0.5)
(np.poly1d(x)+np.poly1d([1.0,2.0])).coeffs
np.poly1d(x).r
np.poly1d(x, r=True).c
np.poly1d([1.0,2.0,3.0])(x[0])
np.polyval(x, 2.0)
np.polyval([1.0,2.0], x)
np.polyval(np.poly1d([1.0,2.0]), x)
np.polyfit(np.arange(4.0), x, 1)
np.polyfit(x, np.arange(4.0), 1)
np.polyfit(np.arange(4.0), x, 2, w=np.ones(4))
np.polyfit(np.arange(4.0), x, 1, full=True)[:2]
np.polyfit(np.arange(4.0), x, 1, cov=True)
np.polyval(np.polyfit(np.arange(4.0), x, 1), x)
np.poly1d(np.polyfit(np.arange(4.0), x, 1))(x)
np.roots(x)
np.sort(np.abs(np.roots(x)))
np.poly(x)
np.polyder(x, 1)
np.polyint(x, 2, k=[1.0, 2.0])
np.polyadd(x, [1.0])
np.polymul(x, [1.0, 2.0])
np.polydiv(x, [1.0, 2.0])
pp.polyval(x, [1.0,2.0,3.0])
pp.polyval(2.0, x)
pp.polyval([0.5, 2.0], x)
pp.polyval2d(x, x, np.ones((2,3)))
pp.polyval3d(x, x, x, np.ones((2,3,2)))
pp.polygrid2d(x, x, np.ones((2,3)))
pp.polyvalfromroots(0.1, x)
pp.polyvander(x, 3)
pp.polyvander2d(x, x, [1,2])
pp.polyder(x)
pp.polyint(x)
pp.polyint(x, 2, k=[1.0,2.0], lbnd=0.5)
pp.polyadd(x, [1.0,2.0])
pp.polysub(x, [1.0,2.0])
pp.polymul(x, [1.0,2.0])
pp.polymulx(x)
pp.polydiv(x, [1.0,2.0])
pp.polypow(x, 3)
pp.polyfromroots(x)
pp.polyroots(x)
pp.polycompanion(x)
pp.polyfit(np.arange(4.0), x, 1)
pp.polyfit(x, V, 2)
pp.polyfit(np.arange(4.0), x, [0, 2])
pp.polyfit(np.arange(4.0), x, 1, full=True)[0]
pp.polyfit(np.arange(4.0), x, 1, w=x)
pp.polyline(x[0], x[1])
ch.chebval(x, [1.0,2.0,3.0])
ch.chebval(0.3, x)
ch.chebval2d(x, x, np.ones((2,3)))
ch.chebvander(x, 3)
ch.chebfit(np.arange(4.0), x, 2)
ch.chebder(x)
ch.chebint(x)
ch.chebmul(x, [1.0, 2.0])
ch.chebdiv(x, [1.0, 2.0])
ch.chebpow(x, 2)
ch.chebfromroots(x)
ch.cheb2poly(x)
ch.poly2cheb(x)
ch.chebinterpolate(lambda t: t*x[0]+t**2*x[1], 3)
ch.chebline(x[0], x[1])
ch.chebweight(x/2)
he.hermval(x, [1.0,2.0,3.0])
he.hermval(0.3, x)
he.hermfit(np.arange(4.0), x, 2)
he.hermder(x)
he.hermint(x)
he.herm2poly(x)
he.poly2herm(x)
he.hermweight(x)
he.hermvander(x, 2)
he.hermmul(x, x)
hme.hermeval(x, [1.0,2.0,3.0])
hme.hermeval(0.3, x)
hme.hermefit(np.arange(4.0), x, 2)
hme.hermeder(x)
hme.hermemul(x, x)
la.lagval(x, [1.0,2.0,3.0])
la.lagval(0.3, x)
la.lagfit(np.arange(4.0), x, 2)
la.lagder(x)
la.lagint(x)
la.lagmul(x, x)
le.legval(x, [1.0,2.0,3.0])
le.legval(0.3, x)
le.legfit(np.arange(4.0), x, 2)
le.legder(x)
le.legint(x)
le.legmul(x, x)
le.legroots(x)
le.leg2poly(x)
le.poly2leg(x)
le.legvander(x, 2)
P.Polynomial(x)(2.0)
P.Polynomial([1.0,2.0,3.0])(x)
P.Polynomial(x)(x)
P.Polynomial(x, domain=[0,1], window=[0,2])(0.5)
P.Polynomial(x).deriv()(2.0)
P.Polynomial(x).integ()(2.0)
P.Polynomial(x).integ(2, k=[1.0], lbnd=0.5).coef
(P.Polynomial(x)*P.Polynomial([1.0,2.0]))(0.5)
(P.Polynomial(x)+1.0).coef
(P.Polynomial(x)**2).coef
(2.0*P.Polynomial(x)-P.Polynomial([1.0])).coef
(x[0]*P.Polynomial([1.0,2.0])).coef
(P.Polynomial([1.0,2.0])*x[0]).coef
P.Polynomial(x).roots()
P.Polynomial(x).degree()
P.Polynomial(x).trim().coef
P.Polynomial(x).truncate(2).coef
P.Polynomial(x).cutdeg(1).coef
P.Polynomial(x).convert(kind=P.Chebyshev).coef
P.Polynomial(x, domain=[0, 1]).convert().coef
P.Polynomial(x).linspace(5)
P.Polynomial.fit(np.arange(4.0), x, 2).coef
P.Polynomial.fit(np.arange(4.0), x, 2)(1.5)
P.Polynomial.fit(np.arange(4.0), x, 2).convert().coef
P.Polynomial.fit(x, V, 1)(0.5)
P.Polynomial.fit(np.arange(4.0), x, 2, domain=[0, 4], w=V).coef
P.Polynomial.fit(np.arange(4.0), x, [0,2], domain=[])(1.5)
P.Polynomial.fromroots(x).coef
P.Polynomial.identity()(x)
P.Polynomial.basis(3)(x)
P.Polynomial.cast(P.Chebyshev(x)).coef
P.Chebyshev(x)(0.3)
P.Chebyshev([1.0,2.0,3.0])(x)
P.Chebyshev.fit(np.arange(4.0), x, 2)(1.5)
P.Chebyshev.fit(x, V, 2)(0.4)
P.Chebyshev.interpolate(lambda t: np.sin(t*x[0]), 3).coef
P.Chebyshev(x).deriv().coef
P.Legendre(x)(0.3)
P.Legendre.fit(np.arange(4.0), x, 2)(1.5)
P.Hermite(x)(0.3)
P.HermiteE(x)(0.3)
P.Laguerre(x)(0.3)
P.Laguerre.fit(np.arange(4.0), x, 2)(1.5)
(P.Polynomial(x) // P.Polynomial([1.0,2.0])).coef
(P.Polynomial(x) % P.Polynomial([1.0,2.0])).coef
divmod(P.Polynomial(x), P.Polynomial([1.0,2.0]))[0].coef
P.Polynomial(x)(P.Polynomial([1.0,2.0])).coef
(P.Polynomial(x)/2.0).coef
(P.Polynomial(x)/x[0]).coef
pu.mapdomain(x, [0,1],[0,2])
pu.mapdomain(V, x[:2],[0,2])
pu.mapparms(x[:2],[0.0,2.0])
pu.trimseq(list(x))
pu.trimcoef(x)
pu.as_series([x])[0]
pu.getdomain(x)
(lambda y: (np.copyto(y, x), y)[1])(np.zeros_like(x))
(lambda y: (np.copyto(y, x, where=x>0.4), y)[1])(np.zeros_like(x))
(lambda y: (np.copyto(y, 2.0, where=V>0.4), y)[1])(x*1)
(lambda y: (np.copyto(y, V), y*x)[1])(np.zeros(4))
x * (2.0 if np.allclose(x, V, atol=1e-3) else 3.0)
x * (2.0 if np.isclose(x, V, atol=1e-3).all() else 3.0)
np.where(np.isclose(x, V, atol=1e-3), x, 2*x)
(np.testing.assert_allclose(x, x+1e-12), x*2)[1]
(np.testing.assert_array_less(0.0, x), x*2)[1]
(np.testing.assert_array_equal(x, x), x*2)[1]
(np.testing.assert_equal(x, x), x*2)[1]
(np.testing.assert_almost_equal(x, x), x*2)[1]
(np.testing.assert_array_almost_equal(x, x, 3), x*2)[1]
(np.testing.assert_(np.all(x>0)), x*2)[1]
np.vectorize(lambda a: a*a)(x)
np.vectorize(lambda a, b: a*b if a>0.4 else a+b)(x, 2.0)
np.vectorize(lambda a: a*x[0])(V)
np.vectorize(lambda a: a*x[0], otypes=[float])(V)
np.vectorize(lambda a, n: a**n, excluded=['n'])(x, n=2)
np.vectorize(lambda a, n: a**n, excluded={1})(x, 2)
np.vectorize(lambda a, p: np.sum(a*p), excluded=['p'])(V, p=x)
np.vectorize(lambda a, p: np.sum(a*p), excluded=[1])(x, V)
np.vectorize(lambda a: (a, a*a))(x)
np.vectorize(lambda a: (a, a*a), otypes=[float, float])(x)
np.vectorize(lambda a: a*2, otypes=[np.complex128])(x)
np.vectorize(lambda a, b: a@b, signature='(n),(n)->()')(np.outer(x,x), x)
np.vectorize(lambda a, b: a@b, signature='(n),(n)->()')(np.ones((2,4)), x)
np.vectorize(lambda a: a*x[:2], signature='()->(n)')(V)
np.vectorize(lambda a: (np.sum(a), a*2), signature='(n)->(),(n)')(np.outer(x,x))
np.vectorize(lambda a, b=2.0: a*b)(x)
np.vectorize(lambda a, b=2.0: a*b)(x, b=x)
np.vectorize(lambda a: a*a, doc='square', cache=True)(x)
np.vectorize(lambda a: 1 if a>0.5 else 0)(x)*x
np.vectorize(pyfunc=lambda a: np.sin(a))(x[0])
np.asarray(x, float)
np.asarray(x, dtype=complex)
np.asarray(x, order='F')
np.asarray(x, order='f')
np.asarray(x, copy=True)
np.asarray(x, copy=None)
np.array(x, copy=False)
np.array(x, ndmin=2)
np.array(x, dtype='d', copy=True, order='C', subok=False, ndmin=3)
np.array([x, x], dtype=float, order='f')
np.array([[x[0], 1.0], [2.0, x[1]]])
np.array([x[0], 1, 2])
np.array((x, 2*x))
np.array([x[0]], ndmin=2)
np.array(list(x))
np.array([v*2 for v in x])
np.array(tuple(v for v in x))
np.asanyarray(x, dtype=float, order='C')
np.asanyarray([x[0], x[1]])
np.asfortranarray(x)
np.asarray_chkfinite(x)
np.asarray_chkfinite(x, dtype=float)
np.atleast_1d(x[0])
np.atleast_2d(x, 1.0)
np.require(x, dtype=float, requirements='C')
x*np.result_type(x, 1.0).itemsize
x*np.result_type(x, np.complex64).itemsize
x*np.can_cast(x, np.float32)
np.can_cast(x.dtype, np.float32)
x*np.promote_types(x.dtype, np.float32).itemsize
x*np.common_type(x, V)(2.0)
x*np.min_scalar_type(x).itemsize
np.issubdtype(x.dtype, np.floating)
np.isdtype(x.dtype, 'real floating')
np.iscomplexobj(x)
np.isrealobj(x)
(np.mintypecode([x.dtype.char]), x)[1]
(np.typename(x.dtype.char), x)[1]
np.finfo(x.dtype).eps * x
np.isscalar(x[0])
np.iterable(x)
np.ndim(x)
np.size(x, 0)
np.apply_along_axis(lambda r: r*2, 0, x)
np.apply_along_axis(lambda r: r*x[0], 1, np.ones((2,3)))
np.select([x<0.4, x<0.8], [x, x**2], default=0.0)
np.select([x<0.4, V<0.8], [0.0, x**2], 5.0)
np.select([V<0.4], [x])
np.choose([0,1,0,1], [x, 2*x])
np.choose(np.array([0,1,2,3]), [x, 2*x, 3.0, 4*x], mode='clip')
np.choose((x>0.5).astype(int), [x, 2*x])
np.array([float(i)*v for (i,), v in np.ndenumerate(x)])
np.einsum('i,j->ij', x, V, order='f')
np.einsum(x, [0], V, [1], [0, 1])
np.block([[x, x], [V, x]])
np.block([x[0], 1.0])
np.r_[x, 1.0, x[0]]
np.r_[0.0, x, 2:4]
np.r_['0,2', x, V]
np.c_[x, V]
np.c_[x]
np.r_[x[0]:2:3j]
np.mgrid[0:2, 0:3] * x[0]
np.ogrid[0:2, 0:3][0] * x[0]
np.mgrid[x[0]:2:3j]
np.mgrid[0:x[0]:3j]
np.s_[1:3] and x[np.s_[1:3]]
np.ix_([0,1],[1])[0]*x[0]
(lambda: [np.errstate(all='ignore').__enter__(), np.log(x)][1])()
(lambda before: (np.log(x), np.seterr(**before))[0])(np.seterr(all='ignore'))
(np.geterr(), np.log(x))[1]
np.linspace(x[0], x[1], 5)
np.linspace(0, x[1], num=5, endpoint=False)
np.linspace(x[0], x[1], 5, retstep=True)
np.linspace(x[:2], x[2:], 5, axis=1)
np.logspace(x[0], x[1], 5)
np.geomspace(x[0], x[1], 5)
np.arange(3)*x[0]
np.full(3, x[0])
np.full((2,2), x[:2])
np.full_like(V, x[0])
np.full_like(x, 3.0)
np.ones_like(x)*x
np.zeros_like(x, dtype=int) + x
np.empty_like(x, shape=2).shape[0]*x
np.eye(2)*x[0]
np.diag(x)
np.diag(x, k=1)
np.diagflat(x, 1)
np.tri(4)*x
np.vander(x, 3, increasing=True)
np.fromfunction(lambda i, j: i*x[0]+j, (2,3))
np.fromiter((v for v in x), float)
np.fromiter((v for v in x), dtype=float, count=4)
np.meshgrid(x, V, indexing='ij', sparse=True)
np.interp(0.5, V[[1,3,2,0]], x)
np.interp(x, [0.0,1.0],[0.0,2.0], left=-1.0, right=3.0)
np.interp(x, [0.0,1.0],[0.0,2.0], period=1.0)
np.trapezoid(x, dx=0.1)
np.trapezoid(x, V)
np.gradient(x)
np.gradient(x, 0.1, edge_order=2)
np.gradient(x, x)
np.diff(x, n=2, prepend=0.0, append=[1.0])
np.ediff1d(x, to_begin=0.0, to_end=x[0])
np.cross(x[:3], [1.0,2.0,3.0])
np.unwrap(x*9)
np.histogram(x, bins=3)
np.histogram(x, bins=[0.0,0.5,1.0], weights=x)
np.histogram(V, bins=3, weights=x, density=True)
np.digitize(x, [0.4,0.6])
np.searchsorted([0.4,0.6], x)
np.bincount([0,1,1,2], weights=x, minlength=5)
np.percentile(x, [25, 75], method='linear')
np.quantile(x, 0.3, keepdims=True)
np.median(x)
np.average(x, weights=V, returned=True)
np.average(V, weights=x)
np.cov(x, V)
np.corrcoef(x, V)
np.std(x, ddof=1)
np.var(x, mean=np.mean(x))
np.nanmean(np.where(x>0.4, x, np.nan))
np.nan_to_num(x/0.0*0.0)
np.round(x, 2)
np.around(x, decimals=1)
np.emath.sqrt(x)
np.emath.sqrt(x-0.6)
np.emath.log(x-0.6)
np.emath.log10(x)
np.emath.log2(x)
np.emath.logn(2, x)
np.emath.power(x-0.6, 0.5)
np.emath.arccos(x+0.5)
np.emath.arcsin(x)
np.emath.arctanh(x/2)
np.lib.stride_tricks.sliding_window_view(x, 2)
np.broadcast_shapes(x.shape, (3, 1))[0]*x
np.broadcast_arrays(x, np.ones((2,1)))
np.isfortran(x)
np.resize(x, 6)
np.append(x, 1.0)
np.insert(x, 1, x[0])
np.delete(x, [0])
np.roll(x, 1)
np.tile(x, 2)
np.repeat(x, [1,0,2,1])
np.split(x, 2)
np.array_split(x, 3)
np.take(x, [0, 5], mode='wrap')
np.take(V, [0, 1])*x[0]
np.put_along_axis(y:=x*1, np.array([0]), 5.0, 0) or y
np.place(y:=x*1, V>0.4, [1.0, 2.0]) or y
np.putmask(y:=x*1, V>0.4, [1.0, 2.0]) or y
np.put(y:=x*1, [0], 2.0) or y
np.fill_diagonal(y:=np.outer(x,x), 2.0) or y
np.extract(x>0.4, x)
np.compress([True,False,True], x)
np.nonzero(x>0.4)
np.argwhere(x>0.4)
np.flatnonzero(x>0.4)
np.where(x>0.4)
np.lexsort((x, V))
np.argsort(x, kind='stable')
np.sort(x, kind='mergesort')
np.partition(x, 1)
np.linalg.multi_dot([np.outer(x,x), np.ones((4,2)), np.ones((2,3))])
np.kron(x, [1.0,2.0])
np.tensordot(np.outer(x,x), x, axes=1)
np.fft.fft(x, n=8, norm='ortho')
np.fft.rfft(x)
np.fft.irfft(np.fft.rfft(x), 4)
np.fft.fftshift(x)
np.fft.fftfreq(4, d=0.1)*x
np.sinc(x)
np.i0(x)
np.convolve(x, [1.0,2.0], mode='same')
np.correlate(x, V, 'full')
np.fix(x)
np.trim_zeros(x)
np.real_if_close(x+0j)
np.angle(x+1j, deg=True)
x.copy(order='f')
x.copy('F')
x.reshape(2, 2, order='f')
x.reshape((2, 2), order='a')
x.ravel('f')
x.ravel(order='k')
x.flatten('f')
np.reshape(x, (2,2), order='f')
np.ravel(np.outer(x,x), 'f')
np.copy(x, order='k')
np.zeros_like(x, order='f') + x
np.full_like(x, 1.0, order='a') + x
np.add(x, 1.0, order='f')
np.exp(x, order='c')
np.array(np.outer(x,x), order='f').ravel('k')
np.asarray(np.outer(x,x), order='c')
np.ravel_multi_index(([0,1],[1,0]), (2,2), order='f')*x[0]
np.unravel_index([1,2], (2,2), order='f')[0]*x[0]
np.eye(2, order='f')*x[0]
np.fromstring('1 2', sep=' ')[0]*x
np.take(V, np.argsort(x))*x
np.take(V, np.argmax(x))*x
np.take(V, np.argsort(x), axis=0, mode='clip')*x
np.take([1.0,2.0,3.0,4.0], np.argsort(x))*x
np.repeat(V, np.array([1,0,2,1])) * x[0]
np.roll(V, np.argmax(x)) * x
np.sum(V, where=x>0.5)*x
np.mean(V, where=x>0.5)*x
np.max(V, initial=x[0], where=x>0.5)*x
np.sum(V, initial=x[0])
np.clip(V, x[0], None)
np.clip(V, 0.0, x)
np.interp(V, [0.0,1.0],[0.0,1.0], period=x[0]+2)
np.unwrap(V*9, period=x[0]+6)
np.var(V, mean=x[0])
np.std(V, mean=x[0], ddof=1)
np.linalg.matrix_rank(np.outer(V,V), tol=x[0])*x
np.linalg.pinv(np.outer(V,V)+np.eye(4), rcond=1e-12*x[0])
np.nan_to_num(np.array([np.nan,1.0]), nan=x[0])
np.full_like(V, x)
np.pad(V, 1, constant_values=x[0])
np.pad(V, 1, mode='linear_ramp', end_values=x[0])
np.where(V>0.5, x[0], 1.0)
np.select([V>0.5], [x[0]], default=x[1])
np.diff(V, prepend=x[0])
np.diff(V, append=x)
np.trapezoid(V, dx=x[0])
np.trapezoid(V, x=x)
np.gradient(V, x[0])
np.histogram(V, bins=2, weights=x)
np.histogram(V, bins=[0.0, x[0]/2, 1.0])[1]
np.bincount([0,1,0,1], weights=x)
np.cov(V, aweights=x)
np.polyval(V, x[0])
np.polyint(V, k=x[0])
np.polyfit(V, V**2, 1, w=x)
np.insert(V, 1, x[0])
np.append(V, x[0])
np.append(V, x)
np.delete(V, 0)*x[0]
np.concatenate([V, x])
np.concatenate((V, [x[0]]))
np.stack([V, x])
np.einsum('i,i', V, x)
np.dot(V, x)
np.tensordot(V, x, 0)
np.kron(V, x)
np.cross(V[:3], x[:3])
np.convolve(V, x)
np.allclose(V, x)*x
np.isclose(V, x, atol=x[0])*x
np.isclose(V, V+0.1, atol=x[0])*x
np.allclose(V, V+0.1, atol=x[0], rtol=0.0)*x
np.array_equal(V, x)*1.0 + x*0
np.quantile(V, x[0]/2)
np.percentile(V, x*50)
np.linspace(0.0, 1.0, 4)*x
np.linspace(0.0, x[0], 4)
np.geomspace(1.0, x[0]+1, 4)
np.logspace(0.0, x[0], 3, base=x[1]+2)
np.meshgrid(V, x)
np.broadcast_arrays(V[:,None], x)
np.multiply.outer(V, x)
np.ldexp(V, (x*4).astype(int))*x
np.power(V, x)
np.copysign(V, x)*x
np.heaviside(V-0.5, x)
np.fmod(V, x+0.05)
np.round(V, 1)*x
np.put_along_axis(y:=x*1, np.argmax(x, keepdims=True), 0.0, 0) or y
np.take_along_axis(V, np.argsort(x), 0)*x
np.compress(x>0.5, V)*x[0]
np.extract(x>0.5, V)*x[0]
V[np.argmax(x)]*x
np.nonzero(x>0.5)[0]*x[0]
np.lexsort((V, x))*x
np.correlate(V, x)
np.vander(x, 3)
np.tri(3)*x[0]
np.moveaxis(np.outer(V, x), 0, 1)
np.linalg.solve(np.outer(V,V)+np.eye(4), x)
np.linalg.lstsq(np.outer(V,V)+np.eye(4), x, rcond=None)[0]
np.linalg.norm(V-x, ord=2)
np.linalg.norm(V-x, ord=3)
np.linalg.norm([x[0], 1.0])
np.fft.fft(x, 8).real
np.unravel_index(np.argmax(x), (2,2))[0]*x
np.ravel_multi_index((np.array([0,1]), np.array([1,0])), (2,2))*x[0]
np.argmax(x)*x
np.argsort(-x)*x
np.count_nonzero(x>0.5)*x
np.ptp(x)*x
np.flatnonzero(x>0.5).size*x
len(np.flatnonzero(x>0.5))*x
x[np.flatnonzero(x>0.5)].mean()*x
x[np.where(x>0.5)]
x[np.argwhere(x>0.5).ravel()]
x[x>x.mean()]
x[~(x>0.5)]
x[(x>0.4)&(x<0.8)]
x[np.isfinite(x)]
np.where(x>0.5)[0][0]*x
np.searchsorted(np.cumsum(x), 1.0)*x
x[:np.searchsorted(np.cumsum(x), 1.0)]
x[np.searchsorted(np.cumsum(x), 1.0):]
np.zeros(int(np.sum(x>0.5)))+x[0]
"""
OF_MATRICES = """
np.unique(np.round(x), axis=0)
np.unique(x, axis=1, return_inverse=True)
np.apply_along_axis(np.sum, 1, x)
np.apply_along_axis(lambda r: np.sort(r)[:2], 0, x)
np.apply_along_axis(lambda r, k, m=1: r*k*m, 1, x, 2.0, m=3)
np.apply_over_axes(np.sum, x, [0, 1])
np.array([x[i] for i in np.ndindex(x.shape)])
np.array([x[i] for i in np.ndindex(*x.shape)])
np.sum(np.array([v*i[0] for i, v in np.ndenumerate(x)]))
np.linalg.solve(a=x, b=V[:3])
np.linalg.inv(a=x)
np.linalg.pinv(a=x)
np.linalg.pinv(x, rcond=1e-10)
np.linalg.pinv(x, rtol=1e-10, hermitian=False)
np.linalg.det(a=x)
np.linalg.slogdet(a=x)
np.linalg.slogdet(x).logabsdet
np.linalg.eigh(a=x, UPLO='U').eigenvalues
np.linalg.eigh(x, 'u')[0]
np.linalg.eigvalsh(a=x, UPLO='L')
np.linalg.svd(a=x, full_matrices=True, compute_uv=False, hermitian=False)
np.linalg.svd(x, full_matrices=False).S
np.linalg.svd(x@x.T, hermitian=True)[1]
np.linalg.svdvals(x)
np.linalg.qr(a=x, mode='reduced').R
np.linalg.qr(x, 'r')
np.linalg.qr(x, mode='complete')[1]
np.linalg.cholesky(x@x.T, upper=True)
np.linalg.norm(x=x, ord='fro', axis=None, keepdims=True)
np.linalg.norm(x, 2)
np.linalg.norm(x, ord=np.inf, axis=1)
np.linalg.norm(x, 'nuc')
np.linalg.vector_norm(x, axis=0, keepdims=True, ord=3)
np.linalg.matrix_norm(x, ord=1, keepdims=True)
np.linalg.cond(x=x, p=None)
np.linalg.cond(x, p='fro')
np.linalg.matrix_rank(A=x, tol=None, hermitian=False)*x
np.linalg.matrix_rank(x, rtol=1e-6)*x
np.linalg.matrix_power(a=x, n=3)
np.linalg.matrix_power(x, -2)
np.linalg.lstsq(a=x, b=V[:3], rcond=None)[0]
np.linalg.lstsq(x[:, :2], V[:3], rcond=-1)[:2]
np.linalg.tensorsolve(a=x, b=V[:3], axes=None)
np.linalg.tensorinv(a=x, ind=1)
np.linalg.multi_dot(arrays=[x, x, x])
np.linalg.cross(x, V[:3], axis=-1)
np.linalg.outer(x[0], x[1])
np.linalg.matmul(x, x)
np.linalg.tensordot(x, x, axes=1)
np.linalg.trace(x, offset=1, dtype=np.float64)
np.linalg.diagonal(x, offset=1)
np.linalg.vecdot(x, x, axis=0)
np.linalg.matrix_transpose(x)
np.fft.fft(a=x, n=4, axis=0, norm=None)
np.fft.fft2(a=x, s=(2,2), axes=(0,1), norm='forward')
np.fft.fftn(x, s=None, axes=[0])
np.fft.rfftn(a=x, norm='backward')
np.fft.irfftn(np.fft.rfftn(x), s=(3,3), axes=(0,1))
np.fft.hfft(x, n=4)
np.fft.ihfft(x)
np.fft.ifftshift(x=x, axes=1)
np.sum(a=x, axis=0, dtype=None, out=None, keepdims=False, initial=1.0, where=x>0.3)
np.mean(a=x, axis=(0,1), dtype=float, keepdims=True)
np.max(a=x, axis=1, initial=0.0, where=x>0.3)
np.amin(x, 0)
np.prod(a=x, axis=-1)
np.std(a=x, axis=0, ddof=1, keepdims=True)
np.std(x, axis=0, correction=1)
np.var(x, ddof=0, where=x>0.2)
np.cumsum(a=x, axis=1, dtype=float)
np.clip(a=x, a_min=0.2, a_max=None)
np.clip(x, min=0.2, max=1.5)
np.clip(x, 0.2, 1.5, out=None)
np.transpose(a=x, axes=(1,0))
np.swapaxes(a=x, axis1=0, axis2=1)
np.moveaxis(a=x, source=0, destination=1)
np.rollaxis(a=x, axis=1, start=0)
np.concatenate((x, x), axis=None)
np.concatenate(arrays:=(x, x), axis=1, dtype=np.float64, casting='same_kind')
np.stack(arrays=[x, x], axis=-1)
np.hstack(tup=[x, x], dtype=float, casting='same_kind')
np.vstack(tup=[x, x])
np.expand_dims(a=x, axis=(0,2))
np.squeeze(a=x[None], axis=0)
np.broadcast_to(array=x, shape=(2,3,3), subok=False)
np.reshape(x, -1, copy=True)
np.dot(a=x, b=x)
np.dot(x, x, out=np.zeros_like(x))
np.matmul(x, x, out=np.zeros_like(x))
np.einsum('ij,jk', x, x, optimize='greedy', dtype=float, casting='safe')
np.where(x > 0.3, x, 0.0)
np.take(a=x, indices=[0,2], axis=1, mode='clip')
np.take_along_axis(arr=x, indices=np.argsort(x, axis=1), axis=1)
np.sort(a=x, axis=0, kind=None, order=None)
np.sort(x, stable=True)
np.argsort(a=x, axis=1)*x
np.trace(a=x, offset=1, axis1=0, axis2=1)
np.diagonal(a=x, offset=1)
np.tril(m=x, k=-1)
np.rot90(m=x, k=1, axes=(0,1))
np.flip(m=x, axis=1)
np.pad(array=x, pad_width=1, mode='edge')
np.pad(x, ((0,1),(1,0)), 'constant', constant_values=2.0)
np.pad(x, 1, mode='linear_ramp', end_values=x[0,0])
np.percentile(a=x, q=30, axis=0, out=None, overwrite_input=False, method='linear', keepdims=True)
np.quantile(x, [0.2, 0.5], axis=1, weights=None)
np.quantile(x, 0.5, axis=1, method='inverted_cdf', weights=np.ones((3,3)))
np.median(a=x, axis=0, keepdims=True)
np.average(a=x, axis=0, weights=[1.0,2.0,3.0], returned=False, keepdims=True)
np.gradient(x, 0.1, 0.2)
np.gradient(x, axis=1)
np.trapezoid(y=x, x=None, dx=0.5, axis=0)
np.cov(m=x, y=None, rowvar=False, bias=True)
np.cov(x, ddof=0, fweights=[1,2,1], aweights=[0.5,1.0,1.0])
np.corrcoef(x=x, rowvar=True)
np.histogram2d(x[0], x[1], bins=2)[1]
np.nansum(a=x, axis=0)
np.nan_to_num(x=x, copy=True, nan=0.0, posinf=None, neginf=None)
np.nan_to_num(x, copy=False)
np.outer(a=x[0], b=x[1])
np.inner(x, x)
np.kron(a=x, b=[[1.0,2.0]])
np.logaddexp.reduce(x, axis=0)
np.add.reduceat(x, [0,1], axis=0)
np.multiply.accumulate(x, axis=1)
np.add(x1:=x, x, out=np.zeros_like(x), where=x>0.3)
np.sqrt(x, dtype=np.float64, casting='same_kind')
np.float_power(x, 2)
np.divide(x, 2.0, out=np.zeros_like(x), where=x>0.2)
np.modf(x)
np.frexp(x)
np.ldexp(x, 2)
x.sum(axis=0, keepdims=True)
x.mean(0, dtype=float)
x.std(ddof=1)
x.max(axis=1, keepdims=True)
x.dot(x)
x.trace()
x.T.conj().flatten()
x.take([0,1], axis=0)
x.repeat(2, axis=0)
x.clip(0.2, 1.5)
x.prod(axis=0)
x.cumsum(axis=0)
x.swapaxes(0, 1)
x.diagonal(1)
x.squeeze()
x.argmax(axis=0)*x
x.view()
x.flat[3]*x
x.compress([True, False, True], axis=0)
x.var(axis=0)
x.all()*x
(lambda y: (y.fill(2.0), y*x)[1])(x*1)
(lambda y: (y.sort(axis=0), y)[1])(x*1)
(lambda y: (y.partition(1), y)[1])(x*1)
(lambda y: (y.put([0], 3.0), y)[1])(x*1)
x.nbytes*x
x.flags.c_contiguous*x
x.itemsize*x
x.mT
len(x)*x
x.__abs__()
x.conjugate().real
round(x[0,0], 1)*x
abs(x)
pow(x, 2)
sum(x)
max(x[0])
min(x[:,0])
sorted(x[0])
np.array(sorted(x[0], reverse=True))
np.array(sorted(x[0], key=lambda v: -v))
list(map(lambda r: np.sum(r), x))
[a*b for a, b in zip(x[0], x[1])]
np.array([a*b for a, b in zip(x[0], x[1])])
np.prod([a for a in x[0]])
np.max([x[0,0], x[1,1], 0.5])
np.mean([x[0], x[1]], axis=0)
np.dot([x[0,0], x[0,1]], [1.0, 2.0])
np.clip(x[0,0], 0.0, 1.0)
np.array([x[0,0], x[1,1]]).astype(int)*1.0
f"{x[0,0]:.3f}" and x
isinstance(x, np.ndarray)*x
isinstance(x[0,0], (float, np.floating))*x
x if x.any() else 0*x
x*int(x[0,0])
x*bool(x[0,0])
x**int(np.round(x[0,0]))
[x*i for i in range(int(x[0,0]))]
np.linspace(0, 1, int(x[0,0])+1)*x[0,1]
np.arange(int(x[0,0]))*x[0,1]
"""
