"""Build and print the summary of a decode run."""
