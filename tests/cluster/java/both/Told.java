import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.hook.FilterMessageContext;
import org.apache.rocketmq.client.hook.FilterMessageHook;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * What a client itself knows, as one JSON line each: what it sent, what came out of each answer to a pull or a pop,
 * what its listener was given and what became of it, which queues it holds. Says nothing unless {@code told=true}.
 */
final class Told implements FilterMessageHook {
    private static final long WATCH_MS = 20;
    private final boolean wanted;
    private final String client;
    private final String group;

    Told(Options options, String client) {
        this.wanted = options.is("told");
        this.client = client;
        this.group = options.group();
    }

    void say(String kind, Object... more) {
        if (wanted) {
            print(line(kind, more));
        }
    }

    void about(String kind, List<MessageExt> messages, Object... more) {
        if (!wanted) {
            return;
        }
        for (MessageExt message : messages) {
            Map<String, Object> line = line(kind, more);
            String key = MessageConst.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX;
            line.put("msgId", message.getProperty(key));
            line.put("offsetMsgId",
                message instanceof MessageClientExt ofClient ? ofClient.getOffsetMsgId() : message.getMsgId());
            line.put("topic", message.getTopic());
            line.put("queue", message.getQueueId());
            line.put("offset", message.getQueueOffset());
            line.put("reconsumed", message.getReconsumeTimes());
            print(line);
        }
    }

    /** The outcome of one call of the producer. */
    void sent(long begin, Message message, SendResult result, Exception error) {
        if (!wanted) {
            return;
        }
        Map<String, Object> line = line("send", "begin", begin);
        line.put("msgId", message.getProperty(MessageConst.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX));
        line.put("topic", message.getTopic());
        if (result != null && result.getMessageQueue() != null) {
            line.put("status", result.getSendStatus());
            line.put("offsetMsgId", result.getOffsetMsgId());
            line.put("broker", result.getMessageQueue().getBrokerName());
            line.put("queue", result.getMessageQueue().getQueueId());
            line.put("offset", result.getQueueOffset());
        }
        if (error != null) {
            line.put("error", error.getClass().getSimpleName());
        }
        print(line);
    }

    /** Tells from now on what comes, and which queues this consumer holds whenever that changes. */
    void watch(DefaultMQPushConsumer consumer) {
        if (!wanted) {
            return;
        }
        consumer.getDefaultMQPushConsumerImpl().registerFilterMessageHook(this);
        Thread watcher = new Thread(() -> {
            Map<String, Object> before = Map.of();
            while (true) {
                Map<String, Object> held = new TreeMap<>();
                consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().forEach(
                    (queue, state) -> held.put(
                        queue.getTopic() + " " + queue.getBrokerName() + " " + queue.getQueueId(), state.isLocked()));
                if (!held.equals(before)) {
                    say("queues", "held", held);
                    before = held;
                }
                try {
                    Thread.sleep(WATCH_MS);
                } catch (InterruptedException error) {
                    return;
                }
            }
        });
        watcher.setDaemon(true);
        watcher.start();
    }

    @Override
    public String hookName() {
        return "told";
    }

    @Override
    public void filterMessage(FilterMessageContext context) {
        about("received", context.getMsgList());
    }

    private Map<String, Object> line(String kind, Object... more) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("kind", kind);
        line.put("at", System.currentTimeMillis());
        line.put("client", client);
        line.put("group", group);
        for (int i = 0; i < more.length; i += 2) {
            line.put((String) more[i], more[i + 1]);
        }
        return line;
    }

    private static void print(Map<String, Object> line) {
        System.out.println(Json.of(line));
    }
}
