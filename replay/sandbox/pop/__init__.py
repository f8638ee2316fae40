"""Serve POP consumers: pop, acknowledge, revive."""
