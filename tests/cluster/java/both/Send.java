import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.remoting.exception.RemotingException;

/**
 * Sends messages in one of the ways that a producer knows:
 * {@code kind=sync|async|oneway|batch|ordered|one-queue|delay|timer|timer-late}.
 */
public final class Send {
    private final Options options;
    private final DefaultMQProducer producer;
    private final long began = System.currentTimeMillis();
    private Told told;

    private Send(Options options) {
        this.options = options;
        this.producer = options.producer();
    }

    public static void main(String[] args) throws Exception {
        new Send(new Options(args)).run();
        Host.end(0);
    }

    private void run() throws Exception {
        Generation.configure(producer, options);
        producer.start();
        told = new Told(options, producer.buildMQClientId());
        Thread.sleep(options.number("warm-ms", 0));
        try {
            switch (options.text("kind", "sync")) {
                case "async" -> async();
                case "batch" -> batch();
                default -> together();
            }
            Thread.sleep(options.number("linger-ms", 0));
        } finally {
            producer.shutdown();
        }
    }

    /** As many threads as wanted, each of which sends one message after the other. */
    private void together() throws Exception {
        List<CompletableFuture<Void>> threads = new ArrayList<>();
        for (int i = 1; i < options.number("threads", 1); i++) {
            CompletableFuture<Void> ended = new CompletableFuture<>();
            threads.add(ended);
            new Thread(() -> {
                try {
                    oneByOne();
                    ended.complete(null);
                } catch (Exception error) {
                    ended.completeExceptionally(error);
                }
            }).start();
        }
        oneByOne();
        for (CompletableFuture<Void> thread : threads) {
            thread.get(60, TimeUnit.SECONDS);
        }
    }

    private void oneByOne() throws Exception {
        for (int i = 0; i < options.number("count", 8); i++) {
            Message message = options.message(i);
            long begin = System.currentTimeMillis();
            try {
                SendResult result = send(message, i);
                told.sent(begin, message, result, null);
                System.out.println(result == null ? "sent" : result.getSendStatus() + " " + result.getOffsetMsgId());
                if (!options.text("also", "").isEmpty()) {
                    message.setTopic(options.text("also", ""));  // the same object, with its UNIQ_KEY
                    begin = System.currentTimeMillis();
                    told.sent(begin, message, producer.send(message), null);
                }
            } catch (MQClientException | MQBrokerException | RemotingException error) {
                told.sent(begin, message, null, error);
                System.out.println("failed " + error.getClass().getSimpleName() + " " + error.getMessage());
                if (!options.is("may-fail")) {
                    throw error;
                }
            }
            Thread.sleep(options.number("pause-ms", 20));
        }
    }

    private SendResult send(Message message, int i) throws Exception {
        switch (options.text("kind", "sync")) {
            case "oneway":
                producer.sendOneway(message);
                return null;
            case "ordered":
                // All messages of one order go to one queue, whatever the fault strategy thinks.
                return producer.send(message, (queues, wanted, order) ->
                    queues.get((Integer) order % queues.size()), i % 3);
            case "one-queue":
                return producer.send(message, (queues, wanted, number) -> queues.get((Integer) number),
                    options.number("queue", 0));
            case "delay":
                message.setDelayTimeLevel(1 + i);
                return producer.send(message);
            case "timer-late":
                Generation.deliverAt(message, began + options.number("late-ms", 0));
                return producer.send(message);
            case "timer":
                Generation.deliverLater(message, i);
                return Generation.recallSome(producer, message, producer.send(message), i);
            default:
                return producer.send(message);
        }
    }

    /** Before the asynchronous sends as many synchronous ones as wanted, which make route and connections. */
    private void async() throws Exception {
        boolean inSteps = options.number("sync-first", 0) > 0;
        for (int i = 0; i < options.number("sync-first", 0); i++) {
            producer.send(options.message(1000 + i));
        }
        if (inSteps) {
            System.out.println("ready");
            Thread.sleep(options.number("ready-ms", 0));
        }
        int count = options.number("count", 8);
        CountDownLatch answered = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            producer.send(options.message(i), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    System.out.println(result.getSendStatus());
                    answered.countDown();
                }

                @Override
                public void onException(Throwable error) {
                    System.out.println("failed " + error.getClass().getSimpleName() + " " + error.getMessage());
                    answered.countDown();
                }
            });
            Thread.sleep(options.number("pause-ms", 0));
        }
        if (inSteps) {
            System.out.println("asked");
        }
        if (!answered.await(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException("not every callback was called");
        }
    }

    private void batch() throws Exception {
        int size = options.number("batch", 4);
        for (int i = 0; i < options.number("count", 8); i += size) {
            List<Message> messages = new ArrayList<>();
            for (int j = i; j < i + size; j++) {
                messages.add(options.message(j));
            }
            System.out.println(producer.send(messages).getSendStatus());
        }
    }
}
