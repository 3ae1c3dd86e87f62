"""The functional transforms: grad, vjp, jvp, jacobian, hessian, vmap, checkpoint, custom rules.

A user's function and its arguments come in and are checked; an interpreter is opened, the function runs on tracers, and
arrays that belong to the caller come out.
"""
