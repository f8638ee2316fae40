"""Message traces: the steps of single messages, in order, and what the capture cannot show."""
