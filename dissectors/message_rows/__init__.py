"""Makes the rows of the table of messages: what one exchange shows of each message in it.

Knows PDUs and rows, no capture and no pairing; may import `conversations`, `remoting`, `rows`."""
