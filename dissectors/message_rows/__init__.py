"""Make the rows of the table of messages: what one exchange shows of each message in it.

May import `conversations`, `grpc`, `remoting`, `rows` and the modules beside; knows PDUs and rows,
no capture and no pairing.
"""
