import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Pull consumers: {@code kind=lite} (361) or {@code kind=pull} (11, the older one, queue by queue);
 * {@code kind=serial} waits at the end of each queue before it goes to the next one, until its time has ended.
 */
public final class PullConsume {
    public static void main(String[] args) throws Exception {
        Options options = new Options(args);
        if (options.text("kind", "lite").equals("lite")) {
            lite(options);
        } else {
            pull(options);
        }
        Host.end(0);
    }

    private static void lite(Options options) throws Exception {
        DefaultLitePullConsumer consumer =
            options.configure(new DefaultLitePullConsumer(options.group(), options.hook()));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setAutoCommitIntervalMillis(1000);
        consumer.setPullThreadNums(2);
        consumer.subscribe(options.topic(), "*");
        consumer.start();
        int count = 0;
        long end = System.currentTimeMillis() + options.number("wait-ms", 20000);
        while (count < options.number("count", 8) && System.currentTimeMillis() < end) {
            for (MessageExt message : consumer.poll(1000)) {
                System.out.println(message.getQueueId() + " " + message.getQueueOffset());
                count++;
            }
        }
        consumer.poll(options.number("linger-ms", 1500));
        consumer.shutdown();
        if (count < options.number("count", 8)) {
            throw new IllegalStateException("only " + count + " messages");
        }
    }

    private static void pull(Options options) throws Exception {
        DefaultMQPullConsumer consumer =
            options.configure(new DefaultMQPullConsumer(options.group(), options.hook()));
        consumer.setBrokerSuspendMaxTimeMillis(options.number("suspend-ms", 20000));
        consumer.start();
        try {
            if (options.text("kind", "pull").equals("serial")) {
                waitAtEach(consumer, options);
            } else {
                pullAll(consumer, options);
            }
        } finally {
            consumer.shutdown();
        }
    }

    private static void pullAll(DefaultMQPullConsumer consumer, Options options) throws Exception {
        for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(options.topic())) {
            long offset = Math.max(0, consumer.fetchConsumeOffset(queue, true));
            PullResult found = consumer.pull(queue, "*", offset, 2);
            System.out.println(queue.getQueueId() + " " + found.getPullStatus() + " "
                + (found.getMsgFoundList() == null ? List.of() : found.getMsgFoundList()).size());
            consumer.updateConsumeOffset(queue, found.getNextBeginOffset());
            // Beyond the end, and far beyond: 19 and 21, the two ways to say that nothing is there.
            System.out.println(consumer.pull(queue, "*", consumer.maxOffset(queue), 2).getPullStatus());
            System.out.println(consumer.pull(queue, "*", 1000000, 2).getPullStatus());
            System.out.println(consumer.searchOffset(queue, System.currentTimeMillis() - 3600000));
        }
    }

    private static void waitAtEach(DefaultMQPullConsumer consumer, Options options) throws Exception {
        long end = System.currentTimeMillis() + options.number("wait-ms", 60000);
        while (System.currentTimeMillis() < end) {
            for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(options.topic())) {
                long offset = Math.max(0, consumer.fetchConsumeOffset(queue, false));
                PullResult found = consumer.pullBlockIfNotFound(queue, "*", offset, 4);
                System.out.println(queue.getQueueId() + " " + found.getPullStatus());
                consumer.updateConsumeOffset(queue, found.getNextBeginOffset());
            }
        }
    }

    private PullConsume() { }
}
