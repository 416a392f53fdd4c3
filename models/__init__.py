"""What a table means: contracts, configuration, prices and the GPU catalogue; no I/O but reading those."""
