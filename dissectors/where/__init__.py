"""Turn a filter expression (`--where`) into a test of rows."""
