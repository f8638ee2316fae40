import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.RequestTimeoutException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Request and reply: {@code role=asks} sends requests and prints the replies, {@code role=replies} answers them. */
public final class RequestReply {
    public static void main(String[] args) throws Exception {
        Options options = new Options(args);
        if (options.text("role", "asks").equals("replies")) {
            reply(options);
        } else {
            ask(options);
        }
        Host.end(0);
    }

    private static void ask(Options options) throws Exception {
        DefaultMQProducer producer = options.producer();
        producer.start();
        for (int i = 0; i < options.number("count", 3); i++) {
            try {
                Message answer = producer.request(options.message(i), options.number("ttl-ms", 10000));
                System.out.println("reply " + new String(answer.getBody(), StandardCharsets.UTF_8));
            } catch (RequestTimeoutException error) {
                System.out.println("no reply");
            }
        }
        Thread.sleep(options.number("linger-ms", 0));
        producer.shutdown();
    }

    private static void reply(Options options) throws Exception {
        DefaultMQProducer producer = options.producer();
        producer.setInstanceName(options.text("instance", "sample") + "-replies");
        producer.start();
        DefaultMQPushConsumer consumer =
            options.configure(new DefaultMQPushConsumer(options.group() + "_replier"));
        consumer.subscribe(options.topic(), "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> {
                System.out.println("asked");
                pause(options.number("delay-ms", 0));
                reply(producer, message);
            });
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        System.out.println("started");
        while (System.in.read() >= 0) {
            // until the end of standard input
        }
        consumer.shutdown();
        producer.shutdown();
    }

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static void reply(DefaultMQProducer producer, MessageExt message) {
        byte[] body = ("answer to " + message.getKeys()).getBytes(StandardCharsets.UTF_8);
        try {
            producer.send(MessageUtil.createReplyMessage(message, body), 5000);
            System.out.println("replied");
        } catch (Exception error) {
            System.out.println("reply failed " + error.getClass().getSimpleName() + " " + error.getMessage());
        }
    }

    private RequestReply() { }
}
