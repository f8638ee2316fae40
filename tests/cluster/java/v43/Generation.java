import org.apache.rocketmq.client.producer.DefaultMQProducer;

/** The 4.3 counterpart of what later clients have elsewhere or alone. */
final class Generation {
    static void configure(DefaultMQProducer producer, Options options) {
        if (options.is("detector") || options.is("auto-batch") || options.is("heartbeat-v2")) {
            throw new IllegalArgumentException("the 4.3 client has not: a 5.x option");
        }
    }

    private Generation() { }
}
