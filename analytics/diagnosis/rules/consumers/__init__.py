"""Rules about groups, subscriptions, offsets, consumption retries and orderly locks."""
