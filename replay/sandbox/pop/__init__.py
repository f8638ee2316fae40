"""Answer POP consumers: pop, acknowledge, revive.

May import `store` and the broker's state."""
