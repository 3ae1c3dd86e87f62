"""A program for each row of the tables that translate names of other libraries.

`PROGRAMS` has pages, then rows by the text of their first cell. A row has the program in func and, where it can be
compared, the same in the other library; both give one value. A row that has none of the other gives True.
`tests/support/peer_values.py` defines the names `f`, `g`, `x`, `v` and `s`.
"""

Row = tuple[str] | tuple[str, str]

FROM_JAX: dict[str, Row] = {
    "`jax.grad`, `jax.value_and_grad` (`argnums`, `has_aux`, `holomorphic`, `allow_int`)": (
        "func.grad(f)(x), func.value_and_grad(f)(x), func.grad(lambda a, b: a * b, argnums=1)(2.0, 3.0),"
        " func.grad(lambda b, a: a * b, argnames='a')(a=2.0, b=3.0), func.grad(lambda x: (x * x, x), has_aux=True)(s)",
        "jax.grad(f)(x), jax.value_and_grad(f)(x), jax.grad(lambda a, b: a * b, argnums=1)(2.0, 3.0),"
        " 3.0, jax.grad(lambda x: (x * x, x), has_aux=True)(s)",
    ),
    "`jax.vjp`, `jax.jvp`, `jax.linearize`, `jax.linear_transpose`": (
        "func.vjp(g, x)[1](v), func.jvp(g, (x,), (v,)), func.linearize(g, x)[1](v),"
        " func.linear_transpose(lambda t: 3 * t, x)(v)",
        "jax.vjp(g, x)[1](v), jax.jvp(g, (x,), (v,)), jax.linearize(g, x)[1](v),"
        " jax.linear_transpose(lambda t: 3 * t, x)(v)",
    ),
    "`jax.jacrev`, `jax.jacfwd`, `jax.hessian`": (
        "func.jacrev(g)(x), func.jacfwd(g, chunk_size=2)(x), func.hessian(f)(x)",
        "jax.jacrev(g)(x), jax.jacfwd(g)(x), jax.hessian(f)(x)",
    ),
    "`jax.jacobian`": ("func.jacobian(g)(x)", "jax.jacobian(g)(x)"),
    "`jax.experimental.jet.jet`": (
        "func.jet(np.sin, (s,), ((1.0, 0.0),))",
        "__import__('jax.experimental.jet').experimental.jet.jet(jnp.sin, (s,), ((1.0, 0.0),))",
    ),
    "`jvp` of `grad` by hand": (
        "func.hvp(f, (x,), (v,)), func.vhp(f, (x,), (v,))",
        "(jax.jvp(jax.grad(f), (x,), (v,))[1],) * 2",
    ),
    "`jax.vmap(f, in_axes, out_axes, axis_name=, axis_size=)`": (
        "func.vmap(lambda a, b: a * b, in_axes=(0, None), out_axes=1)(np.ones((2, 3)), x),"
        " func.vmap(lambda a: a, in_dims=None, out_dims=0, axis_size=2)(x)",
        "jax.vmap(lambda a, b: a * b, in_axes=(0, None), out_axes=1)(jnp.ones((2, 3)), x),"
        " jax.vmap(lambda a: a, in_axes=None, out_axes=0, axis_size=2)(x)",
    ),
    "`jax.custom_jvp`, `jax.custom_vjp`, `jax.custom_gradient`": (
        "c = func.custom_vjp(lambda a: a * a)\n"
        "c.defvjp(lambda a: (a * a, a), lambda a, ct: (3 * a * ct,))\n"
        "j = func.custom_jvp(lambda a: a * a)\n"
        "j.defjvp(lambda primals, tangents: (primals[0] ** 2, 5 * tangents[0]))\n"
        "func.grad(c)(s), func.grad(j)(s), func.grad(func.custom_gradient(lambda a: (a, lambda ct: 7 * ct)))(s)",
        "c = jax.custom_vjp(lambda a: a * a)\n"
        "c.defvjp(lambda a: (a * a, a), lambda a, ct: (3 * a * ct,))\n"
        "j = jax.custom_jvp(lambda a: a * a)\n"
        "j.defjvp(lambda primals, tangents: (primals[0] ** 2, 5 * tangents[0]))\n"
        "jax.grad(c)(s), jax.grad(j)(s), jax.grad(jax.custom_gradient(lambda a: (a, lambda ct: (7 * ct,))))(s)",
    ),
    "`jax.custom_batching.custom_vmap`": (
        "c = func.custom_vmap(lambda a: a)\nc.def_vmap(lambda size, batched, a: (a * 2, True))\nfunc.vmap(c)(x)",
        "c = __import__('jax.custom_batching').custom_batching.custom_vmap(lambda a: a)\n"
        "c.def_vmap(lambda size, batched, a: (a * 2, True))\n"
        "jax.vmap(c)(x)",
    ),
    "`jax.lax.stop_gradient`": (
        "func.grad(lambda a: func.stop_gradient(a) * a)(s)",
        "jax.grad(lambda a: lax.stop_gradient(a) * a)(s)",
    ),
    "`jnp.vectorize`": (
        "func.numpy.vectorize(func.grad(np.sin))(np.ones((2, 2)))",
        "jnp.vectorize(jax.grad(jnp.sin))(jnp.ones((2, 2)))",
    ),
    "`jax.checkpoint`, `jax.remat`, `jax.checkpoint_policies`": (
        "p = func.checkpoint_policies.nothing_saveable\nfunc.grad(func.checkpoint(f, policy=p))(x), func.remat(f)(x)",
        "p = jax.checkpoint_policies.nothing_saveable\njax.grad(jax.checkpoint(f, policy=p))(x), jax.remat(f)(x)",
    ),
    "`jax.ad_checkpoint.checkpoint_name`": (
        "func.checkpoint_name(x, 'name')",
        "__import__('jax.ad_checkpoint').ad_checkpoint.checkpoint_name(x, 'name')",
    ),
    "`jax.eval_shape`": ("func.eval_shape(g, x).shape", "jax.eval_shape(g, x).shape"),
    "`jax.make_jaxpr`": (
        "len(func.make_program(lambda a: np.sin(a) * a)(x).equations)",
        "len(jax.make_jaxpr(lambda a: jnp.sin(a) * a)(x).eqns)",
    ),
    "`jax.jit` (`static_argnums`, `static_argnames`, `donate_argnums`)": (
        "func.jit(lambda a, n: a * n, static_argnums=1)(x, 2), func.jit(lambda a, n: a * n,"
        " static_argnames='n')(x, n=2),"
        " func.jit(g, donate_argnums=0)(x.copy())",
        "jax.jit(lambda a, n: a * n, static_argnums=1)(x, 2), jax.jit(lambda a, n: a * n, static_argnames='n')(x, n=2),"
        " jax.jit(g, donate_argnums=0)(x.copy())",
    ),
    "`jax.lax.psum`, `pmean`, `pmax`, `pmin`, `all_gather`, `axis_index`": (
        "c = func.collectives\nfunc.vmap(lambda a: (c.psum(a, 'i'), c.pmean(a, 'i'), c.pmax(a, 'i'), c.pmin(a, 'i'),"
        " c.all_gather(a, 'i'), c.axis_index('i')), axis_name='i')(x)",
        "c = lax\njax.vmap(lambda a: (c.psum(a, 'i'), c.pmean(a, 'i'), c.pmax(a, 'i'), c.pmin(a, 'i'),"
        " c.all_gather(a, 'i'), c.axis_index('i')), axis_name='i')(x)",
    ),
    "`jax.lax.ppermute`, `all_to_all`, `axis_size`": (
        "c = func.collectives\nfunc.vmap(lambda a: (c.ppermute(a, 'i', [(0, 1), (1, 2), (2, 0)]),"
        " c.all_to_all(a * np.ones(3), 'i', 0, 0), c.axis_size('i') + 0 * a), axis_name='i')(x)",
        "c = lax\njax.vmap(lambda a: (c.ppermute(a, 'i', [(0, 1), (1, 2), (2, 0)]),"
        " c.all_to_all(a * np.ones(3), 'i', 0, 0), c.axis_size('i') + 0 * a), axis_name='i')(x)",
    ),
    "`jax.lax.pbroadcast(x, name, source)`": (
        "func.vmap(lambda a: func.collectives.broadcast(a, 'i', root=2), axis_name='i')(x).tolist() == [x[2]] * 3",
    ),
    "`jax.lax.psum_scatter(x, name, scatter_dimension=d)`": (
        "func.vmap(lambda a: func.collectives.psum_scatter(a * np.ones((2, 3)), 'i', axis=1), axis_name='i')(x)",
        "jax.vmap(lambda a: lax.psum_scatter(a * np.ones((2, 3)), 'i', scatter_dimension=1), axis_name='i')(x)",
    ),
    "`jax.export`": (
        "names = {}\nexec(func.to_source(func.grad(f))(x), names)\n"
        "import tempfile, pathlib\npath = pathlib.Path(tempfile.mkdtemp()) / 'program'\n"
        "func.save(func.make_program(func.grad(f))(x), path)\n"
        "np.allclose(names['f'](x), func.grad(f)(x)) and np.allclose(func.load(path)(x), func.grad(f)(x))",
    ),
    "`jax.pmap`, `shard_map`": ("'ranks' in func.spmd.__doc__ and not hasattr(func, 'pmap')",),
    "`jax.test_util.check_grads`, `check_jvp`, `check_vjp`": (
        "func.testing.check_grads(f, (x,), 2)\n"
        "func.testing.check_jvp(f, lambda p, t: func.jvp(f, p, t), (x,))\n"
        "func.testing.check_vjp(f, lambda *p: func.vjp(f, *p), (x,))\n"
        "func.testing.check_batch(f, (np.ones((2, 3)),))\nTrue",
    ),
    "`jax.numpy`, `jax.numpy.linalg`, `jax.numpy.fft`": (
        "func.grad(lambda a: np.linalg.norm(a) + np.abs(np.fft.rfft(a))[0])(x), func.numpy.cumsum(x)",
        "jax.grad(lambda a: jnp.linalg.norm(a) + jnp.abs(jnp.fft.rfft(a))[0])(x), jnp.cumsum(x)",
    ),
    "`jnp.zeros(n)`, to be filled in with traced values": (
        "def fill(a):\n    out = np.zeros_like(a, shape=2)\n    out[0] = a[0] ** 2\n    return np.sum(out)\n"
        "def plain(a):\n    with func.intercept():\n        out = np.zeros(2)\n"
        "    out[0] = a[0] ** 2\n    return np.sum(out)\n"
        "func.grad(fill)(x), func.grad(plain)(x)",
        "(jax.grad(lambda a: jnp.sum(jnp.zeros(2).at[0].set(a[0] ** 2)))(x),) * 2",
    ),
    "`x.at[i].set(v)`, `add`, `subtract`, `multiply`, `divide`, `power`, `min`, `max`, `apply`, `get`": (
        "func.grad(lambda a: np.sum(a.at[0].multiply(3.0).at[1].set(a[2]).at[2].add(1.0) * v))(x),"
        " func.numpy.at(x)[1].get(), func.numpy.at(x)[1].apply(np.sin)",
        "jax.grad(lambda a: jnp.sum(a.at[0].multiply(3.0).at[1].set(a[2]).at[2].add(1.0) * v))(x),"
        " x.at[1].get(), x.at[1].apply(jnp.sin)",
    ),
    "`plain[i]` with a mapped `i`": (
        "func.vmap(lambda i: plain[i])(np.array([2, 0])), func.vmap(lambda i: func.numpy.take(plain, i,"
        " axis=0))(np.array([2, 0]))",
        "(jax.vmap(lambda i: jnp.asarray(plain)[i])(jnp.array([2, 0])),) * 2",
    ),
    "`jnp.nonzero(x, size=n, fill_value=v)`, `unique`, `flatnonzero`, `argwhere`, `where`": (
        "func.numpy.nonzero(x > 0.7, size=4, fill_value=9)[0], func.numpy.unique(x, size=4, fill_value=7),"
        " func.numpy.flatnonzero(x > 0.7, size=2), func.numpy.argwhere(x > 0.7, size=2),"
        " func.numpy.where(x > 0.7, size=2)",
        "jnp.nonzero(x > 0.7, size=4, fill_value=9)[0], jnp.unique(x, size=4, fill_value=7),"
        " jnp.flatnonzero(x > 0.7, size=2), jnp.argwhere(x > 0.7, size=2), jnp.where(x > 0.7, size=2)",
    ),
    "`jax.scipy`, `jax.experimental.ode.odeint`": (
        "import scipy.linalg, scipy.integrate\n"
        "func.grad(lambda a: np.sum(scipy.linalg.expm(np.outer(a, a))))(x),"
        " func.grad(lambda k: scipy.integrate.odeint(lambda y, t: -k * y, 1.0, np.array([0.0, 1.0]))[-1, 0])(s)",
        "import jax.scipy.linalg\njax.grad(lambda a: jnp.sum(jax.scipy.linalg.expm(jnp.outer(a, a))))(x), -np.exp(-s)",
    ),
    "`jax.pure_callback`, `jax.lax.custom_root`, `jax.lax.custom_linear_solve`": (
        "def newton(h, a):\n    for _ in range(30):\n        a = a - h(a) / func.grad(h)(a)\n    return a\n"
        "func.pure_callback(np.cos, x, x),"
        " func.grad(lambda p: func.custom_root(lambda a, p: a**3 - p, newton)(1.0, p))(8.0),"
        " func.grad(lambda b: np.sum(func.custom_linear_solve(lambda a: 2 * a, b, lambda m, b: b / 2,"
        " symmetric=True)))(x)",
        "def newton(h, a):\n    for _ in range(30):\n        a = a - h(a) / jax.grad(h)(a)\n    return a\n"
        "jax.pure_callback(np.cos, x, x),"
        " jax.grad(lambda p: lax.custom_root(lambda a: a**3 - p, 1.0, newton, lambda h, y: y / h(1.0)))(8.0),"
        " jax.grad(lambda b: jnp.sum(lax.custom_linear_solve(lambda a: 2 * a, b, lambda m, b: b / 2,"
        " symmetric=True)))(x)",
    ),
    "`jax.lax.conv_general_dilated`": (
        "func.numpy.conv_general(np.arange(10.0).reshape(1, 1, 10), np.array([[[1.0, 2.0, 4.0]]]), stride=2)",
        "lax.conv_general_dilated(jnp.arange(10.0).reshape(1, 1, 10), jnp.array([[[1.0, 2.0, 4.0]]]), (2,), 'VALID')",
    ),
    "`jax.device_put`, `jax.devices`": ("not hasattr(func, 'device_put') and not hasattr(func, 'devices')",),
    "`x.block_until_ready()`": ("type(func.jit(g)(x)) is np.ndarray",),
    "`lax.cond(pred, f, g, x)`": (
        "func.jit(lambda a: func.cond(a[0] > 1, np.sin, np.cos, a))(x)",
        "jax.jit(lambda a: lax.cond(a[0] > 1, jnp.sin, jnp.cos, a))(x)",
    ),
    "`lax.switch(i, branches, x)`": (
        "func.jit(lambda i: func.switch(i, [np.sin, np.cos], x))(1)",
        "jax.jit(lambda i: lax.switch(i, [jnp.sin, jnp.cos], x))(1)",
    ),
    "`lax.while_loop`, `lax.fori_loop`": (
        "func.jit(lambda a: func.while_loop(lambda c: c < 9, lambda c: 2 * c, a))(s),"
        " func.jit(lambda a: func.fori_loop(0, 3, lambda i, c: c + i, a))(s)",
        "jax.jit(lambda a: lax.while_loop(lambda c: c < 9, lambda c: 2 * c, a))(s),"
        " jax.jit(lambda a: lax.fori_loop(0, 3, lambda i, c: c + i, a))(s)",
    ),
    "`lax.scan`": (
        "func.grad(lambda a: func.scan(lambda c, b: (c * b, c), a[0], a)[0])(x)",
        "jax.grad(lambda a: lax.scan(lambda c, b: (c * b, c), a[0], a)[0])(x)",
    ),
    "`lax.map(f, xs, batch_size=n)`": (
        "func.map(np.sin, x, batch_size=2), func.vmap(np.sin, chunk_size=2)(x)",
        "(lax.map(jnp.sin, x, batch_size=2),) * 2",
    ),
    "`lax.associative_scan`": (
        "func.associative_scan(np.multiply, x), np.cumprod(x)",
        "(lax.associative_scan(jnp.multiply, x),) * 2",
    ),
    "`lax.dynamic_slice(x, (i,), (n,))`": (
        "func.jit(lambda i: func.numpy.take(x, i + np.arange(2)))(1), x[1:3]",
        "(jax.jit(lambda i: lax.dynamic_slice(x, (i,), (2,)))(1),) * 2",
    ),
    "`lax.select`, `jnp.where`": (
        "(np.where(x > 0.7, x, v),) * 2",
        "lax.select(x > 0.7, x, v), jnp.where(x > 0.7, x, v)",
    ),
    "`jax.random.key`, `PRNGKey`": (
        "key = func.random.key(3)\ntype(key) is np.ndarray and key.shape == (2,) and key.dtype == np.uint32",
    ),
    "`split`, `fold_in`, `bits`": (
        "r, key = func.random, func.random.key(3)\n"
        "r.split(key, 3).shape, r.fold_in(key, 1).shape, r.bits(key, (4,)).shape",
        "r, key = jax.random, jax.random.PRNGKey(3)\n"
        "r.split(key, 3).shape, r.fold_in(key, 1).shape, r.bits(key, (4,)).shape",
    ),
    "`uniform`, `normal`, `randint`, `bernoulli`, `permutation`, `choice`, `categorical`, `gamma`, ...": (
        "r, key = func.random, func.random.key(3)\n"
        "out = (r.uniform(key, (2,)), r.normal(key, (2,)), r.randint(key, (2,), 0, 9), r.bernoulli(key, 0.5, (2,)),"
        " r.permutation(key, x), r.choice(key, x, (2,)), r.categorical(key, x), r.gamma(key, 2.0, (2,)))\n"
        "[a.shape for a in out] == [(2,), (2,), (2,), (2,), (3,), (2,), (), (2,)]",
    ),
    "`jax.random.clone`, `key_data`, `wrap_key_data`": ("not hasattr(func.random, 'key_data')",),
    "`relu(x)`": (
        "np.maximum(v, 0), func.grad(lambda a: np.where(a > 0, a, 0.0))(0.0)",
        "jax.nn.relu(v), jax.grad(jax.nn.relu)(0.0)",
    ),
    "`sigmoid`, `log_sigmoid`": (
        "func.special.expit(x), func.special.log_expit(x)",
        "jax.nn.sigmoid(x), jax.nn.log_sigmoid(x)",
    ),
    "`softmax`, `log_softmax`, `logsumexp`": (
        "func.special.softmax(x), func.special.log_softmax(x), func.special.logsumexp(x)",
        "jax.nn.softmax(x), jax.nn.log_softmax(x), jax.nn.logsumexp(x)",
    ),
    "`softplus(x)`, `silu(x)`": (
        "np.logaddexp(x, 0), x * func.special.expit(x)",
        "jax.nn.softplus(x), jax.nn.silu(x)",
    ),
    "`gelu(x, approximate=False)`": ("x * func.special.ndtr(x)", "jax.nn.gelu(x, approximate=False)"),
    "`one_hot(labels, n)`": ("np.eye(4)[np.array([1, 3])]", "jax.nn.one_hot(jnp.array([1, 3]), 4)"),
    "`jax.tree.map`, `flatten`, `unflatten`, `leaves`, `structure`, `map_with_path`": (
        "t, data = func.tree, {'b': 1.0, 'a': (2.0, None)}\nleaves, spec = t.flatten(data)\n"
        "leaves, t.unflatten(spec, leaves), t.leaves(t.map(lambda a: 2 * a, data)), t.structure(data) == spec,"
        " len(t.leaves(t.map_with_path(lambda path, a: len(path), data)))",
        "t, data = jax.tree, {'b': 1.0, 'a': (2.0, None)}\nleaves, spec = t.flatten(data)\n"
        "leaves, t.unflatten(spec, leaves), t.leaves(t.map(lambda a: 2 * a, data)), t.structure(data) == spec,"
        " len(t.leaves(t.map_with_path(lambda path, a: len(path), data)))",
    ),
    "`jax.tree_util.register_pytree_node(cls, flatten, unflatten)`": (
        "class Pair:\n    def __init__(self, a, b):\n        self.a, self.b = a, b\n"
        "func.tree.register_node(Pair, lambda p: ((p.a, p.b), None), lambda aux, parts: Pair(*parts))\n"
        "func.tree.leaves(func.grad(lambda p: p.a * p.b)(Pair(2.0, 3.0)))",
        "class Pair:\n    def __init__(self, a, b):\n        self.a, self.b = a, b\n"
        "jax.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda aux, parts: Pair(*parts))\n"
        "jax.tree.leaves(jax.grad(lambda p: p.a * p.b)(Pair(2.0, 3.0)))",
    ),
    "methods with `static_argnums=0`, `equinox.Module`": (
        "class Model:\n    def __init__(self):\n        self.k = 2.0\n    def loss(self, a):\n"
        "        return self.k * np.sum(a**2)\n"
        "np.allclose(func.jit(func.grad(Model().loss))(x), 4 * x)",
    ),
    "`jax.flatten_util.ravel_pytree`": (
        "func.tree.ravel({'b': x, 'a': s})[0]",
        "__import__('jax.flatten_util').flatten_util.ravel_pytree({'b': x, 'a': s})[0]",
    ),
    '`jax.debug.print("{}", x)`': ("func.jit(lambda a: (func.debug.print('{}', a), a)[1])(x).tolist() == x.tolist()",),
    "`jax.debug.callback(f, x)`": (
        "seen = []\nfunc.jit(lambda a: (func.debug.callback(seen.append, a), a)[1])(x)\nseen[0].tolist() == x.tolist()",
    ),
    "`jax.debug.breakpoint()`": (
        "import sys\nstops, before = [], sys.breakpointhook\nsys.breakpointhook = lambda: stops.append(1)\n"
        "try:\n    func.grad(lambda a: (breakpoint(), a * a)[1])(s)\nfinally:\n    sys.breakpointhook = before\n"
        "stops == [1]",
    ),
    "`jax.disable_jit()`": (
        "with func.disable_jit():\n    out = func.jit(lambda a: a if a > 0 else -a)(-s)\nout",
        "with jax.disable_jit():\n    out = jax.jit(lambda a: a if a > 0 else -a)(-s)\nout",
    ),
    "`jax.debug_nans`, `jax.debug_infs`": (
        "try:\n    with np.errstate(all='raise'):\n        func.grad(np.log)(0.0)\nexcept FloatingPointError:\n"
        "    with np.errstate(all='ignore'):\n        operation = func.debug.explain(np.log)(0.0).operation\n"
        "operation == 'log'",
    ),
    "`jax.check_tracer_leaks`": (
        "kept = []\nfunc.grad(lambda a: (kept.append(a), a)[1])(s)\n"
        "try:\n    kept[0] + 1\nexcept func.errors.LeakedTracerError:\n    found = True\nfound",
    ),
    "`f._cache_size()` of a jitted function, `jax.clear_caches`": (
        "j = func.jit(np.sin)\nj(x), j(s)\nsize = j.cache_info().currsize\nfunc.clear_caches()\n"
        "size == 2 and j.cache_info().currsize == 0",
    ),
    "`jax.profiler`": ("len(func.jit(func.grad(f)).profile(np.ones(50), repeat=2).rows) > 0",),
    "`f.lower(*args).as_text()`": (
        "j = func.jit(np.sin)\n'sin' in str(j.lower(x)) and type(j.trace(x)) is type(func.make_program(np.sin)(x))",
    ),
}

FROM_AUTOGRAD: dict[str, Row] = {
    "`grad(f, argnum=1)`": (
        "func.grad(lambda a, b: a * b**2, argnums=1)(2.0, 3.0)",
        "autograd.grad(lambda a, b: a * b**2, argnum=1)(2.0, 3.0)",
    ),
    "`grad(f, argnum=(0, 1))`": (
        "func.grad(lambda a, b: a * b**2, argnums=(0, 1))(2.0, 3.0)",
        "autograd.grad(lambda a, b: a * b**2, argnum=(0, 1))(2.0, 3.0)",
    ),
    '`grad_named(f, "b")`': (
        "func.grad(lambda a, b: a * b**2, argnames='b')(2.0, 3.0)",
        "autograd.grad_named(lambda a, b: a * b**2, 'b')(2.0, 3.0)",
    ),
    "`multigrad_dict(f)`": (
        "func.grad(lambda a, b: a * b**2, argnames=('a', 'b'))(2.0, 3.0) == {'a': 9.0, 'b': 12.0}",
    ),
    "`value_and_grad(f)`": ("func.value_and_grad(f)(x)", "autograd.value_and_grad(f)(x)"),
    "`grad_and_aux(f)`": (
        "func.grad(lambda a: (a**2, 3 * a), has_aux=True)(s)",
        "autograd.grad_and_aux(lambda a: (a**2, 3 * a))(s)",
    ),
    "`elementwise_grad(f)`": (
        "func.elementwise_grad(np.tanh)(x), func.numpy.vectorize(func.grad(np.tanh))(x)",
        "(autograd.elementwise_grad(np.tanh)(x),) * 2",
    ),
    "`jacobian(f)`": ("func.jacobian(g)(x), func.jacrev(g)(x)", "(autograd.jacobian(g)(x),) * 2"),
    "`hessian(f)`": ("func.hessian(f)(x)", "autograd.hessian(f)(x)"),
    "`hessian_vector_product(f)(x, v)`": ("func.hvp(f, (x,), (v,))", "autograd.hessian_vector_product(f)(x, v)"),
    "`make_hvp(f)(x)[0](v)`": ("func.linearize(func.grad(f), x)[1](v)", "autograd.make_hvp(f)(x)[0](v)"),
    "`make_vjp(f)(x)`: (pullback, value)": (
        "value, pullback = func.vjp(g, x)\nvalue, pullback(v)[0]",
        "pullback, value = autograd.make_vjp(g)(x)\nvalue, pullback(v)",
    ),
    "`make_jvp(f)(x)(v)`": ("func.jvp(g, (x,), (v,))", "autograd.make_jvp(g)(x)(v)"),
    "`make_ggnvp(f, g)(x)(v)`": (
        "func.ggnvp(g, lambda a: np.sum(a**2) / 2, (x,), (v,))",
        "autograd.make_ggnvp(g, lambda a: np.sum(a**2) / 2)(x)(v)",
    ),
    "`holomorphic_grad(f)`": (
        "np.real(func.grad(lambda z: z**3, holomorphic=True)(1 + 2j))",
        "np.real(autograd.holomorphic_grad(lambda z: z**3)(1 + 2j))",
    ),
    "`checkpoint(f)`": ("func.grad(func.checkpoint(f))(x)", "autograd.grad(autograd.checkpoint(f))(x)"),
    "a loop over examples": (
        "func.vmap(func.grad(f))(np.stack([x, v]))",
        "np.stack([autograd.grad(f)(row) for row in (x, v)])",
    ),
    "no compilation": ("func.jit(func.grad(f))(x)", "autograd.grad(f)(x)"),
    "`autograd.numpy`, `autograd.numpy.linalg`, `autograd.numpy.fft`": (
        "func.grad(lambda a: np.linalg.norm(a) + np.abs(np.fft.fft(a))[0])(x)",
        "autograd.grad(lambda a: np.linalg.norm(a) + np.abs(np.fft.fft(a))[0])(x)",
    ),
    "`autograd.numpy.random`": (
        "func.grad(lambda a: np.sum(a * np.random.RandomState(0).rand(3)))(x)",
        "autograd.grad(lambda a: np.sum(a * np.random.RandomState(0).rand(3)))(x)",
    ),
    "`autograd.scipy.special`, `autograd.scipy.stats`, `autograd.scipy.signal`, `autograd.scipy.linalg`": (
        "import scipy.special as special, scipy.stats as stats, scipy.signal as signal, scipy.linalg as linalg\n"
        "func.grad(lambda a: np.sum(special.gammaln(a) + stats.norm.logpdf(v, a, 1.0)) + np.sum(signal.convolve(a, a)"
        ") + np.sum(linalg.solve_triangular(np.diag(a), v)))(x)",
        "import autograd.scipy.special as special, autograd.scipy.stats as stats, autograd.scipy.signal as signal,"
        " autograd.scipy.linalg as linalg\n"
        "autograd.grad(lambda a: np.sum(special.gammaln(a) + stats.norm.logpdf(v, a, 1.0)) "
        "+ np.sum(signal.convolve(a, a)"
        ") + np.sum(linalg.solve_triangular(np.diag(a), v)))(x)",
    ),
    "`autograd.scipy.integrate.odeint`": (
        "from scipy.integrate import odeint, solve_ivp\n"
        "func.grad(lambda k: odeint(lambda y, t: -k * y, np.array([1.0]), np.array([0.0, 1.0]), rtol=1e-9,"
        " atol=1e-9)[-1, 0])(s),"
        " func.grad(lambda k: solve_ivp(lambda t, y: -k * y, (0, 1), [1.0], rtol=1e-8).y[0, -1])(s)",
        "(-np.exp(-s),) * 2",
    ),
    "`autograd.builtins`": (
        "func.grad(lambda a: isinstance(a, np.ndarray) * np.sum(np.array(list(a)) * np.array(tuple(a))))(x)",
        "autograd.grad(lambda a: np.sum(a * a))(x)",
    ),
    "`autograd.misc.flatten`": (
        "func.tree.ravel({'b': x, 'a': s})[0]",
        "__import__('autograd.misc').misc.flatten({'b': x, 'a': s})[0]",
    ),
    "`autograd.misc.fixed_points.fixed_point`": (
        "func.grad(lambda a: func.fixed_point(lambda y: np.cos(a * y), 1.0))(s)",
        "from autograd.misc.fixed_points import fixed_point\n"
        "autograd.grad(lambda a: fixed_point(lambda a: lambda y: np.cos(a * y), a, 1.0,"
        " lambda p, q: np.abs(p - q), 1e-12))(s)",
    ),
    "`autograd.misc.optimizers`": ("not hasattr(func, 'optimizers')",),
    "`autograd.misc.tracers.const_graph`": (
        "func.jit(g)(x)",
        "__import__('autograd.misc.tracers').misc.tracers.const_graph(g)(x)",
    ),
    "`autograd.test_util.check_grads(f)(x)`": ("func.testing.check_grads(f, (x,), order=1) is None",),
    "`@primitive` and `defvjp(f, lambda ans, x: lambda g: …)`": (
        "h = func.custom_vjp(lambda a: a**2)\nh.defvjp(lambda a: (a**2, a), lambda a, ct: (3 * a * ct,))\n"
        "func.grad(h)(s)",
        "from autograd.extend import primitive, defvjp\n"
        "h = primitive(lambda a: a**2)\ndefvjp(h, lambda out, a: lambda ct: 3 * a * ct)\nautograd.grad(h)(s)",
    ),
    "`defjvp(f, lambda g, ans, x: …)`": (
        "h = func.custom_jvp(lambda a: a**2)\nh.defjvp(lambda p, t: (p[0] ** 2, 3 * p[0] * t[0]))\nfunc.jvp(h,"
        " (s,), (2.0,))",
        "from autograd.extend import primitive, defjvp\n"
        "h = primitive(lambda a: a**2)\ndefjvp(h, lambda t, out, a: 3 * a * t)\nautograd.make_jvp(h)(s)(2.0)",
    ),
    "`notrace_primitive`": (
        "func.pure_callback(np.sort, func.stop_gradient(x), x), func.grad(lambda a: func.stop_gradient(a) * a)(s)",
        "from autograd.extend import notrace_primitive\n"
        "notrace_primitive(np.sort)(x), autograd.grad(lambda a: notrace_primitive(lambda b: b)(a) * a)(s)",
    ),
}

BANANA = (
    "from scipy import optimize, integrate\nfrom scipy.sparse.linalg import LinearOperator\n"
    "def f(a):\n    return np.sum(10 * (a[1:] - a[:-1] ** 2) ** 2 + (1 - a[:-1]) ** 2)\n"
    "def r(a):\n    return np.concatenate([3 * (a[1:] - a[:-1] ** 2), 1 - a[:-1]])\n"
    "one, start, near = np.ones(3), np.full(3, 0.8), lambda out: np.allclose(out.x, 1, atol=1e-4)\n"
)
FROM_SCIPY: dict[str, Row] = {
    "`minimize(f, x, jac=)`": (
        BANANA + "near(optimize.minimize(f, start, jac=func.grad(f)))"
        " and near(optimize.minimize(func.value_and_grad(f), start, jac=True))",
    ),
    "`minimize(f, x, hess=)`": (
        BANANA + "near(optimize.minimize(f, start, jac=func.grad(f), hess=func.hessian(f), method='trust-exact'))",
    ),
    "`minimize(f, x, hessp=)`": (
        BANANA + "product = lambda a, t: func.hvp(f, (a,), (t,))\n"
        "near(optimize.minimize(f, start, jac=func.grad(f), hessp=product, method='trust-ncg'))",
    ),
    "`NonlinearConstraint(c, lower, upper, jac=)`": (
        BANANA + "c = lambda a: a[:2] ** 2\nc = optimize.NonlinearConstraint(c, 0.25, 0.25, jac=func.jacobian(c))\n"
        "out = optimize.minimize(f, start, jac=func.grad(f), constraints=c, method='SLSQP')\n"
        "np.allclose(out.x[:2], 0.5, atol=1e-5)",
    ),
    "`NonlinearConstraint(c, lower, upper, hess=)`": (
        BANANA + "h = lambda a: a[:2] ** 2\n"
        "c = optimize.NonlinearConstraint(h, 0.25, 0.25, jac=func.jacobian(h), hess=func.lagrangian_hessian(h))\n"
        "out = optimize.minimize(\n"
        "    f, start, jac=func.grad(f), hess=func.hessian(f), constraints=c, method='trust-constr', tol=1e-10\n"
        ")\n"
        "np.allclose(out.x[:2], 0.5, atol=1e-4)",
    ),
    "`root(f, x, jac=)`, `fsolve(f, x, fprime=)`": (
        BANANA + "h = lambda a: a**3 + np.roll(a, 1) - 2\n"
        "near(optimize.root(h, start, jac=func.jacobian(h)))"
        " and np.allclose(optimize.fsolve(h, start, fprime=func.jacobian(h)), 1)"
        " and np.allclose(optimize.fsolve(h, [2, 3], fprime=func.jacobian(h)), 1)",
    ),
    "`root_scalar(f, x0=x, fprime=, fprime2=)`": (
        BANANA
        + "out = optimize.root_scalar(np.sin, x0=3.0, fprime=func.grad(np.sin), fprime2=func.grad(func.grad(np.sin)))\n"
        "np.isclose(out.root, np.pi)",
    ),
    "`least_squares(f, x, jac=)`": (
        BANANA + "near(optimize.least_squares(r, start, jac=func.jacobian(r)))"
        " and near(optimize.least_squares(r, start, jac=func.sparse_jacobian(r)))",
    ),
    "`curve_fit(model, t, y, jac=)`": (
        BANANA + "model = lambda t, a, b: a * np.exp(-b * t)\nt = np.linspace(0, 2, 9)\n"
        "jac = lambda t, *p: func.jacobian(lambda q: model(t, *q))(np.array(p, float))\n"
        "np.allclose(optimize.curve_fit(model, t, model(t, 2.0, 1.5), p0=[1, 1], jac=jac)[0], [2.0, 1.5])",
    ),
    "`solve_ivp(f, span, y, jac=)`": (
        BANANA + "h = lambda t, y: np.array([y[1], 5 * (1 - y[0] ** 2) * y[1] - y[0]])\n"
        "integrate.solve_ivp(h, (0, 2), [2.0, 0.0], method='Radau', jac=func.jacobian(h, argnums=1)).success",
    ),
    "`LinearOperator((m, n), matvec=, rmatvec=)`": (
        BANANA + "a = LinearOperator((4, 3), matvec=lambda t: func.jvp(r, (start,), (np.ravel(t),))[1],"
        " rmatvec=lambda ct: func.vjp(r, start)[1](np.ravel(ct))[0], dtype=float)\n"
        "np.allclose(a @ one, func.jacobian(r)(start) @ one) and np.allclose(a.T @ np.ones(4),"
        " func.jacobian(r)(start).T @ np.ones(4))",
    ),
    "`SX.sym`, `MX.sym`, expressions": ("callable(f)",),
    '`Function("f", [x], [y])`': ("np.allclose(func.make_program(f)(x)(v), f(v))",),
    "`gradient(y, x)`, `jacobian(y, x)`, `hessian(y, x)`": (
        "np.allclose(func.sparse_jacobian(func.grad(f))(x).toarray(), func.hessian(f)(x))"
        " and np.allclose(func.sparse_hessian(f)(x).toarray(), func.jacobian(func.grad(f))(x))",
    ),
    "`jtimes(y, x, v)`": (
        "np.allclose(func.jvp(g, (x,), (v,))[1], func.jacobian(g)(x) @ v)"
        " and np.allclose(func.vjp(g, x)[1](v)[0], func.jacobian(g)(x).T @ v)",
    ),
    "`f.sparsity_out(0)`, `jacobian_sparsity`": (
        "pattern = func.sparsity(lambda a: a[1:] * a[:-1])(x)\npattern.nnz == 4 and '■' in str(func.spy(pattern))",
    ),
    "`f.map(n)`": ("func.vmap(f)(np.stack([x, v])).shape == (2,)",),
    "`f.mapaccum(n)`": ("func.scan(lambda c, a: (c + a, c + a), 0.0, x)[1].tolist() == np.cumsum(x).tolist()",),
    "`if_else(c, a, b)`": ("func.cond(True, np.sin, np.cos, s) == np.where(True, np.sin(s), np.cos(s))",),
    "`rootfinder`": (
        "from scipy import optimize\n"
        "np.isclose(func.grad(lambda p: optimize.root(lambda a: a**3 - p, 1.0, tol=1e-12).x[0])(8.0), 1 / 12)"
        " and callable(func.custom_root)",
    ),
    "`integrator`": (
        "from scipy.integrate import solve_ivp\n"
        "np.isclose(func.grad(lambda k: solve_ivp(lambda t, y: -k * y, (0, 1), [1.0], rtol=1e-8).y[0, -1])(s),"
        " -np.exp(-s))",
    ),
    '`nlpsol("s", "ipopt", nlp)`': (
        "from scipy import optimize\nh = lambda a: np.sum((a - 2) ** 2)\n"
        "np.allclose(optimize.minimize(h, x, jac=func.grad(h), hess=func.hessian(h), method='trust-constr').x,"
        " 2, atol=1e-4)",
    ),
    '`f.generate("f.c")`': (
        "text = func.to_source(func.grad(f))(x)\n'import numpy' in text and 'import func' not in text",
    ),
}

LEAVES = "t = {0}.tensor([1.0, 2.0], requires_grad=True)\n"
HERE, THERE = LEAVES.format("func"), LEAVES.format("torch")
FROM_PYTORCH: dict[str, Row] = {
    "`torch.tensor(data, dtype=, requires_grad=)`": (
        "t = func.tensor([1, 2], dtype=np.float32, requires_grad=True)\nt, t.requires_grad, str(t.dtype)",
        "t = torch.tensor([1, 2], dtype=torch.float32, requires_grad=True)\nt, t.requires_grad, 'float32'",
    ),
    "`torch.Tensor`": ("isinstance(func.tensor(1.0), func.Tensor)", "isinstance(torch.tensor(1.0), torch.Tensor)"),
    "`x.requires_grad`, `x.requires_grad_()`, `x.is_leaf`": (
        HERE
        + "u = func.tensor([1.0])\nu.requires_grad_()\nt.requires_grad, u.requires_grad, t.is_leaf, (2 * t).is_leaf",
        THERE
        + "u = torch.tensor([1.0])\nu.requires_grad_()\nt.requires_grad, u.requires_grad, t.is_leaf, (2 * t).is_leaf",
    ),
    "`x.grad`, `x.grad_fn`, `x.data`, `x.output_nr`": (
        HERE + "y = (t * t).sum()\ny.backward()\nt.grad, y.grad_fn is not None, t.data, t.output_nr",
        THERE + "y = (t * t).sum()\ny.backward()\nt.grad, y.grad_fn is not None, t.data, t.output_nr",
    ),
    "`x.backward(gradient, retain_graph, create_graph, inputs)`": (
        HERE + "y = t * t\ny.backward(np.array([1.0, 3.0]), retain_graph=True)\n"
        "y.backward(np.ones(2), create_graph=False, inputs=[t])\nt.grad",
        THERE + "y = t * t\ny.backward(torch.tensor([1.0, 3.0]), retain_graph=True)\n"
        "y.backward(torch.ones(2), create_graph=False, inputs=[t])\nt.grad",
    ),
    "`x.detach()`, `x.detach_()`, `x.clone()`": (
        HERE + "u = 2 * t\nu.detach_()\nt.detach().requires_grad, u.requires_grad, t.clone().requires_grad,"
        " np.copy(t).requires_grad and t.copy().requires_grad and t.astype(np.float32).requires_grad",
        THERE + "u = 2 * t\nu.detach_()\nt.detach().requires_grad, u.requires_grad, t.clone().requires_grad, True",
    ),
    "`copy.deepcopy(x)`, `copy.copy(x)` of a leaf": (
        HERE + "import copy\nu = copy.deepcopy(t)\nu.is_leaf, u.requires_grad, u is t",
        THERE + "import copy\nu = copy.deepcopy(t)\nu.is_leaf, u.requires_grad, u is t",
    ),
    "`hash(x)`, dicts and sets of tensors": (
        HERE + "hash(t) == hash(t), len({t, t, t.clone()})",
        THERE + "hash(t) == hash(t), len({t, t, t.clone()})",
    ),
    "`x.retain_grad()`, `x.retains_grad`, `x._version`, `x.is_inference()`": (
        HERE + "y = t * 3\ny.retain_grad()\n(y * y).sum().backward()\nu = func.tensor([1.0])\nu += 1\n"
        "y.grad, y.retains_grad, u._version, u.is_inference()",
        THERE + "y = t * 3\ny.retain_grad()\n(y * y).sum().backward()\nu = torch.tensor([1.0])\nu += 1\n"
        "y.grad, y.retains_grad, u._version, u.is_inference()",
    ),
    "`x.register_hook`, `x.register_post_accumulate_grad_hook`": (
        HERE + "seen = []\nt.register_hook(lambda ct: 2 * ct)\n"
        "t.register_post_accumulate_grad_hook(lambda u: seen.append(1))\n"
        "t.sum().backward()\nt.grad, seen",
        THERE + "seen = []\nt.register_hook(lambda ct: 2 * ct)\n"
        "t.register_post_accumulate_grad_hook(lambda u: seen.append(1))\n"
        "t.sum().backward()\nt.grad, seen",
    ),
    "`x.item()`, `x.tolist()`, `bool(x)`, `int(x)`": (
        HERE + "t[1].item(), t.tolist(), bool(t[0]), int(t[1])",
        THERE + "t[1].item(), t.tolist(), bool(t[0]), int(t[1])",
    ),
    "`float(x)` of a tensor that requires a gradient": (
        HERE + "try:\n    float(t[0])\nexcept TypeError:\n    refused = True\n"
        "with func.no_grad():\n    number = float(t[0])\nrefused and number == t[0].item() == 1.0",
    ),
    "`x.numpy()`, `x.numpy(force=True)`": (
        HERE + "try:\n    t.numpy()\nexcept Exception:\n    refused = True\nrefused, t.numpy(force=True)",
        THERE + "try:\n    t.numpy()\nexcept Exception:\n    refused = True\nrefused, t.numpy(force=True)",
    ),
    "`x.grad.zero_()`": (
        HERE + "t.sum().backward()\nt.grad.fill(0)\nt.grad",
        THERE + "t.sum().backward()\nt.grad.zero_()\nt.grad",
    ),
    "`x.add_(y)`, `x.mul_(y)` and similar methods": (
        "t = func.tensor([1.0, 2.0])\nt += 1\nt *= 3\nt",
        "t = torch.tensor([1.0, 2.0])\nt.add_(1)\nt.mul_(3)\nt",
    ),
    "`x.to(dtype)`, `x.float()`, `x.double()`": (
        HERE + "str(t.astype(np.float32).dtype), str(t.astype(np.float64).dtype)",
        THERE + "str(t.float().dtype)[6:], str(t.double().dtype)[6:]",
    ),
    "`x.to(device)`, `x.cuda()`, `x.device`": ("not hasattr(func.tensor(1.0), 'cuda')",),
    "`torch.autograd.backward`, `torch.autograd.grad`": (
        HERE + "func.autograd.backward((t**2).sum())\nt.grad, func.autograd.grad((t**3).sum(), t)",
        THERE + "torch.autograd.backward((t**2).sum())\nt.grad, torch.autograd.grad((t**3).sum(), t)",
    ),
    "`torch.no_grad`, `enable_grad`, `set_grad_enabled`, `is_grad_enabled`": (
        "out = []\nwith func.no_grad():\n    out.append(func.is_grad_enabled())\n    with func.enable_grad():\n"
        "        out.append(func.is_grad_enabled())\nwith func.set_grad_enabled(False):\n"
        "    out.append(func.is_grad_enabled())\nout",
        "out = []\nwith torch.no_grad():\n    out.append(torch.is_grad_enabled())\n    with torch.enable_grad():\n"
        "        out.append(torch.is_grad_enabled())\nwith torch.set_grad_enabled(False):\n"
        "    out.append(torch.is_grad_enabled())\nout",
    ),
    "`torch.inference_mode`, `is_inference_mode_enabled`": (
        "with func.inference_mode():\n    out = func.autograd.is_inference_mode_enabled()\nout",
        "with torch.inference_mode():\n    out = torch.is_inference_mode_enabled()\nout",
    ),
    "`torch.autograd.detect_anomaly`, `set_detect_anomaly`": (
        "t = func.tensor(0.0, requires_grad=True)\n"
        "try:\n    with np.errstate(all='ignore'), func.autograd.detect_anomaly():\n"
        "        (np.sqrt(t) * 0.0).backward()\n"
        "except Exception:\n    found = True\nfound and callable(func.autograd.set_detect_anomaly)",
        "t = torch.tensor(0.0, requires_grad=True)\n"
        "try:\n    with torch.autograd.detect_anomaly():\n        (torch.sqrt(t) * 0.0).backward()\n"
        "except Exception:\n    found = True\nfound and callable(torch.autograd.set_detect_anomaly)",
    ),
    "`torch.autograd.Function`": (
        "class Square(func.autograd.Function):\n    @staticmethod\n    def forward(a):\n        return a * a\n"
        "    @staticmethod\n    def setup_context(ctx, inputs, output):\n        ctx.save_for_backward(*inputs)\n"
        "    @staticmethod\n    def backward(ctx, ct):\n        return 3 * ctx.saved_tensors[0] * ct\n"
        "func.grad(lambda a: Square.apply(a).sum())(x)",
        "class Square(torch.autograd.Function):\n    @staticmethod\n    def forward(a):\n        return a * a\n"
        "    @staticmethod\n    def setup_context(ctx, inputs, output):\n        ctx.save_for_backward(*inputs)\n"
        "    @staticmethod\n    def backward(ctx, ct):\n        return 3 * ctx.saved_tensors[0] * ct\n"
        "torch.func.grad(lambda a: Square.apply(a).sum())(x)",
    ),
    "`torch.autograd.function.once_differentiable`": ("callable(func.autograd.once_differentiable)",),
    "`torch.autograd.gradcheck`, `gradgradcheck`": (
        HERE + "func.autograd.gradcheck(lambda a: a**3, (t,)), func.autograd.gradgradcheck(lambda a: a**3, (t,))",
        THERE + "u = t.detach().double().requires_grad_()\n"
        "torch.autograd.gradcheck(lambda a: a**3, (u,)), torch.autograd.gradgradcheck(lambda a: a**3, (u,))",
    ),
    "`torch.autograd.functional.vjp`, `jvp`, `vhp`, `hvp`, `jacobian`, `hessian`": (
        "o, a, b = func.autograd.functional, func.tensor(x), func.tensor(v)\n"
        "o.vjp(g, a, b), o.jvp(g, a, b), o.vhp(f, a, b), o.hvp(f, a, b), o.jacobian(g, a), o.hessian(f, a)",
        "o, a, b = torch.autograd.functional, x, v\n"
        "o.vjp(g, a, b), o.jvp(g, a, b), o.vhp(f, a, b), o.hvp(f, a, b), o.jacobian(g, a), o.hessian(f, a)",
    ),
    "`torch.autograd.forward_ad.dual_level`, `make_dual`, `unpack_dual`": (
        "m = func.autograd.forward_ad\nwith m.dual_level():\n"
        "    out = m.unpack_dual(np.sin(m.make_dual(func.tensor(x), func.tensor(v)))).tangent\nout",
        "m = torch.autograd.forward_ad\nwith m.dual_level():\n"
        "    out = m.unpack_dual(torch.sin(m.make_dual(x, v))).tangent\nout",
    ),
    "`torch.autograd.graph.saved_tensors_hooks`, `save_on_cpu`, `disable_saved_tensors_hooks`": (
        HERE + "m, seen = func.autograd.graph, []\n"
        "with m.saved_tensors_hooks(lambda a: (seen.append(1), a)[1], lambda a: a):\n    y = (t**2).sum()\n"
        "y.backward()\nt.grad, bool(seen), callable(m.save_on_cpu), callable(m.disable_saved_tensors_hooks)",
        THERE + "m, seen = torch.autograd.graph, []\n"
        "with m.saved_tensors_hooks(lambda a: (seen.append(1), a)[1], lambda a: a):\n    y = (t**2).sum()\n"
        "y.backward()\nt.grad, bool(seen), callable(m.save_on_cpu), callable(m.disable_saved_tensors_hooks)",
    ),
    "`torch.autograd.graph.register_multi_grad_hook`, `get_gradient_edge`, `GradientEdge`, `Node`": (
        HERE
        + "m, seen = func.autograd.graph, []\nm.register_multi_grad_hook((t,), lambda cts: seen.append(len(cts)))\n"
        "(t**2).sum().backward()\nseen, isinstance(m.get_gradient_edge(t * 2), m.GradientEdge),"
        " isinstance((t * 2).grad_fn, m.Node)",
        THERE
        + "m, seen = torch.autograd.graph, []\nm.register_multi_grad_hook((t,), lambda cts: seen.append(len(cts)))\n"
        "(t**2).sum().backward()\nseen, isinstance(m.get_gradient_edge(t * 2), m.GradientEdge),"
        " isinstance((t * 2).grad_fn, m.Node)",
    ),
    "`torch.autograd.graph.allow_mutation_on_saved_tensors`": (
        HERE + "z = t * 1\ny = (z**2).sum()\nz += 10.0\ny.backward()\nt.grad",
        THERE + "with torch.autograd.graph.allow_mutation_on_saved_tensors():\n"
        "    z = t * 1\n    y = (z**2).sum()\n    z += 10.0\n    y.backward()\nt.grad",
    ),
    "`torch.utils.checkpoint.checkpoint`, `checkpoint_sequential`": (
        HERE + "y = func.autograd.checkpoint(np.sin, t) + func.autograd.checkpoint_sequential([np.sin, np.cos], 2, t)\n"
        "y.sum().backward()\nt.grad",
        THERE + "m = __import__('torch.utils.checkpoint').utils.checkpoint\n"
        "y = m.checkpoint(torch.sin, t, use_reentrant=False)"
        " + m.checkpoint_sequential([torch.sin, torch.cos], 2, t, use_reentrant=False)\ny.sum().backward()\nt.grad",
    ),
    "`set_multithreading_enabled`, the profiler": ("not hasattr(func.autograd, 'set_multithreading_enabled')",),
    "`torch.func.grad`, `grad_and_value`": (
        "func.grad(f)(x), func.grad_and_value(f)(x), func.value_and_grad(f)(x)[::-1]",
        "torch.func.grad(f)(x), *([torch.func.grad_and_value(f)(x)] * 2)",
    ),
    "`torch.func.vjp`, `jvp`, `linearize`": (
        "func.vjp(g, x)[1](v), func.jvp(g, (x,), (v,)), func.linearize(g, x)[1](v)",
        "torch.func.vjp(g, x)[1](v), torch.func.jvp(g, (x,), (v,)), torch.func.linearize(g, x)[1](v)",
    ),
    "`torch.func.jacrev`, `jacfwd`, `hessian`": (
        "func.jacrev(g)(x), func.jacfwd(g)(x), func.hessian(f)(x), func.jacobian(g)(x)",
        "torch.func.jacrev(g)(x), torch.func.jacfwd(g)(x), torch.func.hessian(f)(x), torch.func.jacrev(g)(x)",
    ),
    "`torch.func.vmap(f, in_dims, out_dims, randomness, chunk_size=)`": (
        "func.vmap(lambda a, b: a * b, in_dims=(0, None), out_dims=1, randomness='error',"
        " chunk_size=1)(np.ones((2, 3)), x)",
        "torch.func.vmap(lambda a, b: a * b, in_dims=(0, None), out_dims=1, randomness='error', chunk_size=1)"
        "(torch.ones((2, 3)), x)",
    ),
    "`torch.func.functional_call(module, params, x)`": (
        "func.grad(lambda p: np.sum(p['weight'] @ x + p['bias']))({'weight': np.ones((2, 3)), 'bias': np.zeros(2)})",
        "layer = torch.nn.Linear(3, 2)\n"
        "torch.func.grad(lambda p: torch.func.functional_call(layer, p, (x,)).sum())"
        "({'weight': torch.ones((2, 3)), 'bias': torch.zeros(2)})",
    ),
    "`torch.func.stack_module_state`": (
        "trees = [{'weight': np.ones((2, 3)), 'bias': np.zeros(2)} for i in range(4)]\n"
        "func.tree.map(lambda *leaves: np.stack(leaves), *trees)['weight'].shape",
        "list(torch.func.stack_module_state([torch.nn.Linear(3, 2) for i in range(4)])[0]['weight'].shape)",
    ),
    "`torch.func.functionalize`": (
        "def write(a):\n    b = a * 1\n    b[0] = b[1]\n    return b\nfunc.jit(func.vmap(write))(np.stack([x, v]))",
        "def write(a):\n    b = a * 1\n    b[0] = b[1]\n    return b\n"
        "torch.func.vmap(torch.func.functionalize(write))(torch.stack([x, v]))",
    ),
    "`torch.compile`": ("func.jit(g)(x)", "g(x) if callable(torch.compile) else None"),
    "`dim=`, `keepdim=`": (
        "np.sum(plain, axis=1, keepdims=True)",
        "torch.sum(torch.tensor(plain), dim=1, keepdim=True)",
    ),
    "`x.size()`, `x.numel()`": (
        "plain.shape, plain.size",
        "list(torch.tensor(plain).size()), torch.tensor(plain).numel()",
    ),
    "`x.view`, `x.permute`, `x.unsqueeze(0)`": (
        "plain.reshape(4, 3), plain.transpose(1, 0), plain[np.newaxis]",
        "t = torch.tensor(plain)\nt.view(4, 3), t.permute(1, 0), t.unsqueeze(0)",
    ),
    "`x.transpose(0, 1)`, `x.mT`": (
        "np.swapaxes(plain, 0, 1), np.swapaxes(plain, -1, -2)",
        "t = torch.tensor(plain)\nt.transpose(0, 1), t.mT",
    ),
    "`x.expand(shape)`, `x.repeat(2)`, `torch.repeat_interleave`": (
        "np.broadcast_to(x, (2, 3)), np.tile(x, 2), np.repeat(x, 2)",
        "x.expand((2, 3)), x.repeat(2), torch.repeat_interleave(x, 2)",
    ),
    "`torch.cat`, `torch.stack`, `torch.where`, `torch.einsum`": (
        "np.concatenate([x, v]), np.stack([x, v]), np.where(x > 0.7, x, v), np.einsum('i,j->ij', x, v)",
        "torch.cat([x, v]), torch.stack([x, v]), torch.where(x > 0.7, x, v), torch.einsum('i,j->ij', x, v)",
    ),
    "`torch.clamp`, `torch.relu(x)`": (
        "np.clip(x, 0.6, 1.5), np.maximum(v, 0)",
        "torch.clamp(x, 0.6, 1.5), torch.relu(v)",
    ),
    "`x.max(dim)`, a pair of values and indices": (
        "plain.max(1), plain.argmax(1)",
        "tuple(torch.tensor(plain).max(1))",
    ),
    "`x.std()`, with n - 1": ("x.std(ddof=1)", "x.std()"),
    "`torch.gather`, `x.scatter_`, `x.index_add_`": (
        "i = np.array([[1], [0], [2]])\na, b = plain.copy(), plain.copy()\nnp.put_along_axis(a, i, 9.0, 1)\n"
        "np.add.at(b, np.array([0, 0]), np.ones((2, 4)))\nnp.take_along_axis(plain, i, 1), a, b",
        "i, t = torch.tensor([[1], [0], [2]]), torch.tensor(plain)\n"
        "torch.gather(t, 1, i), t.clone().scatter_(1, i, 9.0),"
        " t.clone().index_add_(0, torch.tensor([0, 0]), torch.ones((2, 4), dtype=t.dtype))",
    ),
    "`torch.linalg.*`, `torch.fft.*`": (
        "a = np.eye(3) + np.outer(x, x)\nnp.linalg.solve(a, x), np.linalg.slogdet(a)[1], np.abs(np.fft.fft(x)),"
        " func.linalg.expm(a)",
        "a = torch.eye(3) + torch.outer(x, x)\n"
        "torch.linalg.solve(a, x), torch.linalg.slogdet(a)[1], torch.abs(torch.fft.fft(x)), torch.linalg.matrix_exp(a)",
    ),
    "`torch.special.*`, `torch.sigmoid`": (
        "func.special.gammaln(x), func.special.erf(x), func.special.expit(x)",
        "torch.special.gammaln(x), torch.special.erf(x), torch.sigmoid(x)",
    ),
    "`F.softmax(x, dim)`, `F.log_softmax`, `torch.logsumexp`": (
        "func.special.softmax(plain, axis=1), func.special.log_softmax(plain, axis=1),"
        " func.special.logsumexp(plain, axis=1)",
        "t = torch.tensor(plain)\nF.softmax(t, 1), F.log_softmax(t, 1), torch.logsumexp(t, 1)",
    ),
    "`F.conv1d`, `F.conv2d`": (
        "a, k = np.arange(32.0).reshape(1, 2, 4, 4), np.arange(24.0).reshape(3, 2, 2, 2)\n"
        "func.numpy.conv_general(a, k), func.numpy.conv_general(a[:, :, 0], k[..., 0], padding=1)",
        "a, k = torch.arange(32.0).reshape(1, 2, 4, 4), torch.arange(24.0).reshape(3, 2, 2, 2)\n"
        "F.conv2d(a, k), F.conv1d(a[:, :, 0], k[..., 0], padding=1)",
    ),
    "`torch.randn`, `torch.manual_seed`": (
        "np.random.default_rng(0).normal(size=(2, 3)).shape, func.random.normal(func.random.key(0), (2, 3)).shape",
        "torch.manual_seed(0)\n(list(torch.randn(2, 3).shape),) * 2",
    ),
    "`torch.zeros(3)`, to be filled with tensors": (
        HERE + "y = np.zeros_like(t, shape=3)\ny[0] = t[1] ** 2\n(y.sum() + np.stack([t[0], t[1]]).sum()).backward()\n"
        "t.grad",
        THERE + "y = torch.zeros(3)\ny[0] = t[1] ** 2\n(y.sum() + torch.stack([t[0], t[1]]).sum()).backward()\nt.grad",
    ),
}

PROGRAMS: dict[str, tuple[str, dict[str, Row]]] = {
    "from_autograd.md": ("autograd", FROM_AUTOGRAD),
    "from_jax.md": ("jax", FROM_JAX),
    "from_pytorch.md": ("torch", FROM_PYTORCH),
    "from_scipy.md": ("scipy", FROM_SCIPY),
}

WRITE = "def h(a):\n    y = {0}.zeros_like(a)\n    y[0] = a[0] ** 2\n    return y.sum()\n"
ROOT = "lambda a: {0}.where(a > 0, {0}.sqrt(a), {1})"
SOLVE = "import scipy.linalg\nh = lambda b: {0}.sum(scipy.linalg.solve(2 * np.eye(2), b))\n"
BRANCH = "lambda a: a if a > 0 else -2 * a"
COMPARED: dict[str, dict[str, str]] = {
    "gradient of `np.sum(np.tanh(x) ** 2)`, plain NumPy": {
        "func": "func.grad(lambda a: np.sum(np.tanh(a) ** 2))(1.0)",
        "jax": "jax.grad(lambda a: np.sum(np.tanh(a) ** 2))(1.0)",
        "torch": "torch.func.grad(lambda a: np.sum(np.tanh(a) ** 2))(torch.tensor(1.0))",
        "autograd": "import numpy\nautograd.grad(lambda a: numpy.sum(numpy.tanh(a) ** 2))(1.0)",
    },
    "gradient through `y = zeros_like(x); y[0] = x[0] ** 2`": {
        "func": WRITE.format("np") + "func.grad(h)(np.ones(2))",
        "jax": WRITE.format("jnp") + "jax.grad(h)(jnp.ones(2))",
        "torch": WRITE.format("torch") + "torch.func.grad(h)(torch.ones(2))",
        "autograd": WRITE.format("np") + "autograd.grad(h)(np.ones(2))",
    },
    "`vmap` of `x if x > 0 else -2 * x`": {
        "func": f"func.vmap({BRANCH})(np.array([3.0, -1.0]))",
        "jax": f"jax.vmap({BRANCH})(jnp.array([3.0, -1.0]))",
        "torch": f"torch.func.vmap({BRANCH})(torch.tensor([3.0, -1.0]))",
    },
    "slope of `where(x > 0, sqrt(x), 0)` at 0": {
        "func": f"func.grad({ROOT.format('np', '0.0')})(np.array(0.0))",
        "jax": f"jax.grad({ROOT.format('jnp', '0.0')})(0.0)",
        "torch": f"torch.func.grad({ROOT.format('torch', 'torch.tensor(0.0)')})(torch.tensor(0.0))",
        "autograd": f"autograd.grad({ROOT.format('np', '0.0')})(np.array(0.0))",
    },
    "slope of `x.item() * x` at 3, which is 6": {
        "func": "func.grad(lambda a: a.item() * a)(3.0)",
        "jax": "jax.grad(lambda a: a.item() * a)(3.0)",
        "torch": "torch.func.grad(lambda a: a.item() * a)(torch.tensor(3.0))",
        "autograd": "autograd.grad(lambda a: a.item() * a)(3.0)",
    },
    "gradient of `x[5]` for three elements": {
        "func": "func.grad(lambda a: a[5])(np.ones(3))",
        "jax": "jax.grad(lambda a: a[5])(jnp.ones(3))",
        "torch": "torch.func.grad(lambda a: a[5])(torch.ones(3))",
        "autograd": "autograd.grad(lambda a: a[5])(np.ones(3))",
    },
    "slope through a loop that ends by its value, `while_loop`": {
        "func": "func.grad(lambda a: func.while_loop(lambda c: c < 10.0, lambda c: c * 2 * a, a))(1.0)",
        "jax": "jax.grad(lambda a: lax.while_loop(lambda c: c < 10.0, lambda c: c * 2 * a, a))(1.0)",
    },
    "gradient through `scipy.linalg.solve(2 * eye(2), b)`": {
        "func": SOLVE.format("np") + "func.grad(h)(np.ones(2))",
        "jax": SOLVE.format("jnp") + "jax.grad(h)(jnp.ones(2))",
        "autograd": SOLVE.format("np") + "autograd.grad(h)(np.ones(2))",
    },
    "gradient of the norm at 0": {
        "func": "func.grad(np.linalg.norm)(np.zeros(2))",
        "jax": "jax.grad(jnp.linalg.norm)(jnp.zeros(2))",
        "torch": "torch.func.grad(torch.linalg.norm)(torch.zeros(2))",
        "autograd": "autograd.grad(np.linalg.norm)(np.zeros(2))",
    },
}
"""The table of programs on the page of comparisons: rows by their first cell, then a program for each library."""
