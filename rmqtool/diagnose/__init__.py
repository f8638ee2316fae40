"""Implement `rmqtool diagnose`: what is wrong, why, and what to do about it."""
