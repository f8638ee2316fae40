import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** A push consumer that runs until it has consumed enough, then some seconds more. */
public final class PushConsume {
    public static void main(String[] args) throws Exception {
        Options options = new Options(args);
        DefaultMQPushConsumer consumer = options.configure(new DefaultMQPushConsumer(options.group()));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(2);
        consumer.setConsumeThreadMax(2);
        consumer.setMaxReconsumeTimes(options.number("max-reconsume", -1));
        if (options.is("broadcast")) {
            Generation.broadcast(consumer);
        }
        consumer.subscribe(options.topic(), options.text("expression", "*"));
        CountDownLatch wanted = new CountDownLatch(options.number("count", 1));
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> System.out.println(describe(message)));
            messages.forEach(message -> wanted.countDown());
            return answer(options, messages.get(0), context);
        });
        consumer.start();
        System.out.println("started");
        boolean complete = wanted.await(options.number("wait-ms", 30000), TimeUnit.MILLISECONDS);
        Thread.sleep(options.number("linger-ms", 0));
        consumer.shutdown();
        System.out.println(complete ? "complete" : "incomplete");
        System.exit(complete ? 0 : 3);
    }

    /** Fails each message until it was delivered again often enough; {@code fail=0} never fails. */
    private static ConsumeConcurrentlyStatus answer(
            Options options, MessageExt message, ConsumeConcurrentlyContext context) {
        if (message.getReconsumeTimes() < options.number("fail", 0)) {
            context.setDelayLevelWhenNextConsume(options.number("delay-level", 1));
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        }
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    }

    private static String describe(MessageExt message) {
        return message.getTopic() + " " + message.getQueueId() + " " + message.getQueueOffset() + " "
            + message.getReconsumeTimes();
    }

    private PushConsume() { }
}
