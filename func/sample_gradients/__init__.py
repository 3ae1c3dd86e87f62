"""Statistics of per-sample gradients, by their structure: norms, clipped sums, inner products, variances, noise.

The loss of one sample and a batch come in. The Program of all per-sample gradients shows which of them are sums of
outer products (`factors`); the statistics (`per_sample`) are computed from the factors, without storing the gradients.
"""
