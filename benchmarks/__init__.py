"""Speed comparisons: ``python -m benchmarks`` prints the table, ``pytest -n 0 benchmarks`` measures the pieces."""
