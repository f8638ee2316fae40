"""Stitch the attempts of each message together and name the brokers.

May import `spark`, the contract in `report`, `schema`, `derived`, and of `dissectors` what knows
rows: `dissectors.grpc`, `dissectors.remoting`, `dissectors.rows`.
"""
