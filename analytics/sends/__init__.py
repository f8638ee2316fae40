"""Stitch the attempts of each message together and name the brokers.

May import `spark` and the contract in `report`."""
