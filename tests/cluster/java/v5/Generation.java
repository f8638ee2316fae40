import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/** What the 4.x client has not, or has elsewhere. */
final class Generation {
    static void broadcast(DefaultMQPushConsumer consumer) {
        consumer.setMessageModel(MessageModel.BROADCASTING);
    }

    static void pop(DefaultMQPushConsumer consumer, boolean wanted, int invisible) {
        consumer.setClientRebalance(!wanted);
        consumer.setPopInvisibleTime(invisible);
    }

    static void configure(DefaultMQProducer producer, Options options) {
        producer.setUseHeartbeatV2(options.is("heartbeat-v2"));
        producer.setAutoBatch(options.is("auto-batch"));
        producer.setStartDetectorEnable(options.is("detector"));
        if (options.number("per-request-ms", -1) > 0) {
            producer.setSendMsgMaxTimeoutPerRequest(options.number("per-request-ms", -1));
        }
        if (!options.text("namespace-v2", "").isEmpty()) {
            producer.setNamespaceV2(options.text("namespace-v2", ""));
        }
    }

    /** The three ways to name a time: seconds from now, milliseconds from now, a point of time. */
    static void deliverLater(Message message, int i) {
        switch (i % 3) {
            case 0 -> message.setDelayTimeSec(3);
            case 1 -> message.setDelayTimeMs(2500);
            default -> message.setDeliverTimeMs(System.currentTimeMillis() + 4000);
        }
    }

    static void deliverAt(Message message, long time) {
        message.setDeliverTimeMs(time);
    }

    /** Calls every fourth timed message back before it is due. */
    static SendResult recallSome(DefaultMQProducer producer, Message message, SendResult sent, int i) throws Exception {
        if (i % 4 == 3) {
            System.out.println("recalled " + producer.recallMessage(message.getTopic(), sent.getRecallHandle()));
        }
        return sent;
    }

    private Generation() { }
}
