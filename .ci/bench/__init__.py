"""The benchmark: captures with known contents, the decoders they are given to, and the ratios."""
