"""The functional transforms: grad, vjp, jvp, jacobian, hessian, vmap, checkpoint, custom rules.

A transform checks a user's function and its arguments, runs the function on the tracers of an interpreter, and returns
arrays that the caller owns.
"""
