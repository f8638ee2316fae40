import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/** How fast the Java producer sends: {@code kind=sync|async|oneway}, after a warm-up; prints one line of JSON. */
public final class SendBench {
    private final Options options;
    private final DefaultMQProducer producer;
    private final byte[] body;

    private SendBench(Options options) {
        this.options = options;
        this.producer = options.producer();
        this.body = new byte[options.number("body", 100)];
        Arrays.fill(body, (byte) 'x');
    }

    public static void main(String[] args) throws Exception {
        new SendBench(new Options(args)).run();
        System.exit(0);
    }

    private void run() throws Exception {
        producer.setRetryTimesWhenSendAsyncFailed(0);
        producer.start();
        send(options.number("warm", 0));
        int count = options.number("count", 1000);
        long cpu = cpuNanos();
        long begin = System.nanoTime();
        Outcome outcome = send(count);
        long nanos = System.nanoTime() - begin;
        cpu = cpuNanos() - cpu;
        Arrays.sort(outcome.latencies);
        System.out.printf("{\"count\":%d,\"failed\":%d,\"seconds\":%.6f,\"cpu\":%.6f,\"p50\":%d,\"p99\":%d}%n",
            count, outcome.failed.get(), nanos / 1e9, cpu / 1e9,
            outcome.at(50) / 1000, outcome.at(99) / 1000);
        producer.shutdown();
    }

    private Outcome send(int count) throws Exception {
        Outcome outcome = new Outcome(count);
        if (count == 0) {
            return outcome;
        }
        if (options.text("kind", "sync").equals("async")) {
            async(count, outcome);
            return outcome;
        }
        boolean oneway = options.text("kind", "sync").equals("oneway");
        for (int i = 0; i < count; i++) {
            long begin = System.nanoTime();
            try {
                if (oneway) {
                    producer.sendOneway(new Message(options.topic(), body));
                } else {
                    producer.send(new Message(options.topic(), body));
                }
            } catch (Exception error) {
                outcome.failed.incrementAndGet();
            }
            outcome.latencies[i] = System.nanoTime() - begin;
        }
        if (oneway) {
            // Its answer says that the broker has read all that was written before it.
            producer.send(new Message(options.topic(), body));
        }
        return outcome;
    }

    private void async(int count, Outcome outcome) throws Exception {
        int inFlight = options.number("in-flight", 64);
        Semaphore room = new Semaphore(inFlight);
        for (int i = 0; i < count; i++) {
            room.acquire();
            int number = i;
            long begin = System.nanoTime();
            producer.send(new Message(options.topic(), body), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    end();
                }

                @Override
                public void onException(Throwable error) {
                    outcome.failed.incrementAndGet();
                    end();
                }

                private void end() {
                    outcome.latencies[number] = System.nanoTime() - begin;
                    room.release();
                }
            });
        }
        room.acquire(inFlight);
    }

    private static long cpuNanos() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
            .getProcessCpuTime();
    }

    private static final class Outcome {
        private final long[] latencies;
        private final AtomicInteger failed = new AtomicInteger();

        private Outcome(int count) {
            latencies = new long[count];
        }

        private long at(int percent) {
            return latencies[Math.min(latencies.length - 1, latencies.length * percent / 100)];
        }
    }
}
