import org.apache.rocketmq.client.producer.DefaultMQProducer;

/** The 5.1 counterpart of what later clients have elsewhere or alone. */
final class Generation {
    static void configure(DefaultMQProducer producer, Options options) {
        if (options.is("auto-batch") || options.is("heartbeat-v2")) {
            throw new IllegalArgumentException("no recording asks this client for: auto-batch, heartbeat-v2");
        }
        producer.setStartDetectorEnable(options.is("detector"));
    }

    private Generation() { }
}
