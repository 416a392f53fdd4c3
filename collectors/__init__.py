"""How a source becomes raw rows: `collect` yields batches, parsing is pure; no lake, no clock."""
