"""Run reports on Spark: sessions, engine, and output."""
