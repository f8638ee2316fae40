"""`anonymize`: captures and rows that can be shared."""
