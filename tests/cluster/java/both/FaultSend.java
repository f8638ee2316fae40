import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Arrays;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.remoting.exception.RemotingTimeoutException;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * Sends with the latency fault strategy on and prints, as one JSON line each, the outcome of every send and the
 * strategy's own state, read by reflection right after it and between sends. Ends with standard input.
 */
public final class FaultSend {
    private static volatile boolean ended;

    public static void main(String[] args) throws Exception {
        Options options = new Options(args);
        DefaultMQProducer producer = options.producer();
        Generation.configure(producer, options);
        producer.start();
        if (options.is("warm")) {
            timeOut(producer);
        }
        Object strategy = read(producer.getDefaultMQProducerImpl(), "mqFaultStrategy");
        System.out.println(settings(producer, strategy));
        Thread reader = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (java.io.IOException error) {
                // the end all the same
            }
            ended = true;
        });
        reader.setDaemon(true);
        reader.start();
        for (int i = 0; !ended; i++) {
            System.out.println(outcome(producer, strategy, options.message(i)));
            Thread.sleep(options.number("pause-ms", 100));
            System.out.println(line("state", "", strategy));
        }
        producer.shutdown();
        System.exit(0);
    }

    /**
     * Waits in vain for somebody who says nothing: the first timeout of a process loads classes for some
     * milliseconds, which a client that has been running for a while no longer does.
     */
    private static void timeOut(DefaultMQProducer producer) throws Exception {
        MQClientInstance client = (MQClientInstance) read(producer.getDefaultMQProducerImpl(), "mQClientFactory");
        try (ServerSocket silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            String address = "127.0.0.1:" + silent.getLocalPort(); // outside of what is captured
            RemotingCommand request = RemotingCommand.createRequestCommand(34, null);
            client.getMQClientAPIImpl().getRemotingClient().invokeSync(address, request, 300);
            throw new IllegalStateException("somebody answered");
        } catch (RemotingTimeoutException expected) {
            // and the connection was closed
        }
    }

    private static String outcome(DefaultMQProducer producer, Object strategy, Message message) throws Exception {
        long begin = System.currentTimeMillis();
        String result;
        try {
            SendResult sent = producer.send(message);
            result = text("status", sent.getSendStatus()) + "," + text("broker", sent.getMessageQueue().getBrokerName())
                + ",\"queueId\":" + sent.getMessageQueue().getQueueId() + "," + text("msgId", sent.getMsgId());
        } catch (Exception error) {
            result = text("error", error.getClass().getSimpleName()) + ","
                + text("msgId", message.getProperty("UNIQ_KEY"));
        }
        return line("send", "\"begin\":" + begin + "," + result + ",", strategy);
    }

    private static String line(String kind, String fields, Object strategy) throws Exception {
        Map<?, ?> table = (Map<?, ?>) read(read(strategy, "latencyFaultTolerance"), "faultItemTable");
        StringJoiner items = new StringJoiner(",", "[", "]");
        for (Map.Entry<?, ?> entry : new TreeMap<Object, Object>(table).entrySet()) {
            items.add(fieldsOf(entry.getValue()));
        }
        return "{" + text("kind", kind) + "," + fields + "\"at\":" + System.currentTimeMillis() + ",\"items\":" + items + "}";
    }

    private static String settings(DefaultMQProducer producer, Object strategy) throws Exception {
        return "{" + text("kind", "settings")
            + ",\"sendLatencyFaultEnable\":" + producer.isSendLatencyFaultEnable()
            + ",\"sendMsgTimeout\":" + producer.getSendMsgTimeout()
            + ",\"retryTimesWhenSendFailed\":" + producer.getRetryTimesWhenSendFailed()
            + ",\"latencyMax\":" + Arrays.toString((long[]) read(strategy, "latencyMax"))
            + ",\"notAvailableDuration\":" + Arrays.toString((long[]) read(strategy, "notAvailableDuration")) + "}";
    }

    /** All fields of a fault item, whatever this client's generation has. */
    private static String fieldsOf(Object item) throws Exception {
        StringJoiner fields = new StringJoiner(",", "{", "}");
        for (Field field : item.getClass().getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) || field.isSynthetic()) {
                continue;
            }
            Object value = read(item, field.getName());
            fields.add(value instanceof String ? text(field.getName(), value) : "\"" + field.getName() + "\":" + value);
        }
        return fields.toString();
    }

    private static Object read(Object from, String name) throws Exception {
        Field field = from.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(from);
    }

    private static String text(String name, Object value) {
        return "\"" + name + "\":\"" + value + "\"";
    }

    private FaultSend() { }
}
