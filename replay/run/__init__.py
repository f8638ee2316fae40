"""Run a plan: order, rate, journal, resume, and comparison with the capture."""
