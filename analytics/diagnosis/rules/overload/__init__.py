"""Rules about brokers that refuse requests because they have too much to do."""
