"""Define the rows of output, and write them as JSON lines, CSV, and Parquet."""
