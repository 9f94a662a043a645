"""Speed comparisons: ``python -m benchmarks`` prints the table, ``pytest benchmarks`` measures the pieces."""
