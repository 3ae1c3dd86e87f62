"""The benchmark on a device: the workloads of the processor at a hundred times their size, and their predictions."""
