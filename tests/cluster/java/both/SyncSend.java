import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/** Sends messages one after another and waits for each answer. */
public final class SyncSend {
    public static void main(String[] args) throws Exception {
        Options options = new Options(args);
        DefaultMQProducer producer = options.configure(new DefaultMQProducer(options.group()));
        producer.setSendMsgTimeout(options.number("timeout-ms", 10000));
        producer.start();
        try {
            for (int i = 0; i < options.number("count", 8); i++) {
                Message message = new Message(options.topic(), "TagA", "key-" + i, body(i));
                message.putUserProperty("number", Integer.toString(i));
                SendResult result = producer.send(message);
                System.out.println(result.getSendStatus() + " " + result.getOffsetMsgId());
                Thread.sleep(options.number("pause-ms", 20));
            }
            Thread.sleep(options.number("linger-ms", 0));
        } finally {
            producer.shutdown();
        }
    }

    private static byte[] body(int i) {
        return ("message " + i + " \u00e4\u6d88\u606f").getBytes(StandardCharsets.UTF_8);
    }

    private SyncSend() { }
}
