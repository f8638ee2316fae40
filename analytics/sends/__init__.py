"""Combine sends to attempts of messages and name the brokers."""
