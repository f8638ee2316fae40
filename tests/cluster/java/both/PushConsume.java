import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.client.producer.DefaultMQProducer;

/** A push consumer that runs until it has consumed enough or its time has ended; with {@code until-end=true}, its input. */
public final class PushConsume {
    private final Options options;
    private final CountDownLatch wanted;
    private final DefaultMQProducer forwarder;
    private Told told;

    private PushConsume(Options options) {
        this.options = options;
        this.wanted = new CountDownLatch(options.number("count", 1));
        this.forwarder = options.text("forward", "").isEmpty() ? null : options.producer();
    }

    public static void main(String[] args) throws Exception {
        try {
            Host.end(new PushConsume(new Options(args)).run() ? 0 : 3);
        } catch (Exception error) {
            // Its threads would go on without the one that failed to start them all.
            error.printStackTrace();
            System.exit(1);
        }
    }

    private boolean run() throws Exception {
        DefaultMQPushConsumer consumer = options.configure(new DefaultMQPushConsumer(
            null, options.group(), options.hook(),
            strategy(), options.is("trace"), null));
        consumer.setConsumeFromWhere(options.is("from-last")
            ? ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET : ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(2);
        consumer.setConsumeThreadMax(2);
        consumer.setPullThresholdForQueue(options.number("threshold", 1000));
        consumer.setPullBatchSize(options.number("batch", 32));
        consumer.setConsumeMessageBatchMaxSize(options.number("at-once", 1));
        consumer.setMaxReconsumeTimes(options.number("max-reconsume", -1));
        consumer.setSuspendCurrentQueueTimeMillis(200);
        Generation.pop(consumer, options.is("pop"), options.number("invisible-ms", 60000));
        if (options.is("broadcast")) {
            Generation.broadcast(consumer);
        }
        if (options.text("sql", "").isEmpty()) {
            consumer.subscribe(options.topic(), options.text("expression", "*"));
            if (!options.text("unsubscribe", "").isEmpty()) {
                consumer.subscribe(options.text("unsubscribe", ""), "*");
            }
        } else {
            consumer.subscribe(options.topic(), MessageSelector.bySql(options.text("sql", "")));
        }
        told = new Told(options, consumer.buildMQClientId());
        told.watch(consumer);
        listen(consumer);
        if (forwarder != null) {
            forwarder.start();
        }
        consumer.start();
        told.say("started");
        System.out.println("started");
        if (options.number("suspend-after-ms", 0) > 0) {
            Thread.sleep(options.number("suspend-after-ms", 0));
            consumer.suspend();
        }
        if (!options.text("unsubscribe", "").isEmpty()) {
            Thread.sleep(options.number("unsubscribe-after-ms", 0));
            consumer.unsubscribe(options.text("unsubscribe", ""));
        }
        if (options.is("until-end")) {
            while (System.in.read() >= 0) { }
        }
        boolean complete = options.is("until-end")
            || wanted.await(options.number("wait-ms", 30000), TimeUnit.MILLISECONDS);
        System.out.println(complete ? "complete" : "incomplete");
        Thread.sleep(options.number("linger-ms", 0));
        told.say("stopping");
        consumer.shutdown();
        if (forwarder != null) {
            forwarder.shutdown();
        }
        told.say("stopped");
        return complete;
    }

    /** Who gets which queue: averagely unless {@code circle=true} or {@code only=2} (the first two queues) say else. */
    private AllocateMessageQueueStrategy strategy() {
        if (options.number("only", 0) > 0) {
            List<MessageQueue> queues = new ArrayList<>();
            for (int i = 0; i < options.number("only", 0); i++) {
                queues.add(new MessageQueue(options.topic(), "broker-a", i));
            }
            AllocateMessageQueueByConfig strategy = new AllocateMessageQueueByConfig();
            strategy.setMessageQueueList(queues);
            return strategy;
        }
        return options.is("circle") ? new AllocateMessageQueueAveragelyByCircle() : new AllocateMessageQueueAveragely();
    }

    private void listen(DefaultMQPushConsumer consumer) {
        if (options.is("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) ->
                ended(messages, succeeds(messages) ? ConsumeOrderlyStatus.SUCCESS
                    : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT));
            return;
        }
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            context.setDelayLevelWhenNextConsume(options.number("delay-level", 1));
            return ended(messages, succeeds(messages) ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS
                : ConsumeConcurrentlyStatus.RECONSUME_LATER);
        });
    }

    private <T> T ended(List<MessageExt> messages, T outcome) {
        told.about("done", messages, "outcome", outcome);
        return outcome;
    }

    /** Works on each message for a while; on the one with the key {@code hang} for ever. */
    private void work(MessageExt message) {
        try {
            boolean hangs = options.text("hang", "").equals(message.getKeys());
            Thread.sleep(hangs ? Long.MAX_VALUE : options.number("work-ms", 0));
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    /** Sends the same object to another topic, which keeps its UNIQ_KEY. */
    private void forward(MessageExt message) {
        if (forwarder == null) {
            return;
        }
        String topic = message.getTopic();
        try {
            message.setTopic(options.text("forward", ""));
            long begin = System.currentTimeMillis();
            told.sent(begin, message, forwarder.send(message), null);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        } finally {
            message.setTopic(topic);
        }
    }

    /** Fails each message until it was delivered again often enough; {@code fail=0} never fails. */
    private boolean succeeds(List<MessageExt> messages) {
        told.about("given", messages);
        for (MessageExt message : messages) {
            System.out.println(message.getTopic() + " " + message.getQueueId() + " " + message.getQueueOffset()
                + " " + message.getReconsumeTimes());
            work(message);
            forward(message);
            wanted.countDown();
        }
        return messages.get(0).getReconsumeTimes() >= options.number("fail", 0);
    }
}
