import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.protocol.heartbeat.MessageModel;

/** The 4.x counterpart of what the 5.x client has elsewhere or alone. */
final class Generation {
    static void broadcast(DefaultMQPushConsumer consumer) {
        consumer.setMessageModel(MessageModel.BROADCASTING);
    }

    static void pop(DefaultMQPushConsumer consumer, boolean wanted, int invisible) {
        refuse(wanted, "POP");
    }

    static void configure(DefaultMQProducer producer, Options options) {
        refuse(options.is("auto-batch") || options.is("detector") || options.is("heartbeat-v2"), "a 5.x option");
    }

    static void deliverLater(Message message, int i) {
        refuse(true, "timer messages");
    }

    static void deliverAt(Message message, long time) {
        refuse(true, "timer messages");
    }

    static SendResult recallSome(DefaultMQProducer producer, Message message, SendResult sent, int i) {
        return sent;
    }

    private static void refuse(boolean wanted, String what) {
        if (wanted) {
            throw new IllegalArgumentException("the 4.x client has not: " + what);
        }
    }

    private Generation() { }
}
