"""Read and write JSON in fastjson's dialect.

Imports nothing else of the project but `foreign`.
"""
