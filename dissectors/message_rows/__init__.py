"""Build the rows of the message table: what one exchange shows of each message in it."""
