"""What is released: the sdist and the wheels are built, tested, built again, and listed.

`make dist`, `make reproducible`, `make sbom` and `make image` call it, with the interpreter of
`.venv/release`; no test of `make test` does, for each takes minutes.
"""
