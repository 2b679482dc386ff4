"""The parts of the benchmark. Each is one question, answered with a table and judged by its targets."""
