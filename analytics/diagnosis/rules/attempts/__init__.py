"""Rules about the attempts of one message: timeouts, retries, duplicates."""
