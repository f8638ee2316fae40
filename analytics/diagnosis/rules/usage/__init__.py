"""Rules about how clients use RocketMQ: load of queues, versions, settings."""
