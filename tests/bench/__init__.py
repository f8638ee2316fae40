"""Tests of what `make bench` runs."""
