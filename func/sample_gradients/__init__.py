"""Statistics of per-sample gradients, by their structure: norms, clipped sums, inner products, variances, noise.

The Program of all per-sample gradients of a loss and a batch shows which of them are sums of outer products
(`factors`). `per_sample` computes the statistics from the factors, without storing the gradients.
"""
