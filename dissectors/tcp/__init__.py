"""Read captures and reassemble TCP streams.

Knows no RocketMQ; may import `expert`."""
