"""Record producers' sends as numbers, and evaluate their fault strategy."""
