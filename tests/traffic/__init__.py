"""Synthetic traffic: commands → what two ends say → TCP segments → packets → capture files.

Written from the formats' own documents and not with the code under test, so that it can be its
oracle. Each layer is usable alone: `commands`, `talk`, `network`, `captures`; `scripts` has the
hypothesis strategies and `decoded` runs what is tested.
"""
