import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;

/** Reads {@code count} messages of a topic and prints each as a line of JSON, as the client gives it to an application. */
public final class PrintMessages {
    public static void main(String[] args) throws Exception {
        Options options = new Options(args);
        DefaultLitePullConsumer consumer =
            options.configure(new DefaultLitePullConsumer(options.group(), options.hook()));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(options.topic(), "*");
        consumer.start();
        int left = options.number("count", 8);
        long end = System.currentTimeMillis() + options.number("wait-ms", 30000);
        while (left > 0 && System.currentTimeMillis() < end) {
            for (MessageExt message : consumer.poll(1000)) {
                System.out.println(Json.of(fields(message)));
                left--;
            }
        }
        consumer.shutdown();
        if (left > 0) {
            throw new IllegalStateException(left + " messages are missing");
        }
        Host.end(0);
    }

    private static Map<String, Object> fields(MessageExt message) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("topic", message.getTopic());
        fields.put("queueId", message.getQueueId());
        fields.put("queueOffset", message.getQueueOffset());
        fields.put("msgId", message.getMsgId());
        fields.put("offsetMsgId", ((MessageClientExt) message).getOffsetMsgId());
        fields.put("flag", message.getFlag());
        fields.put("sysFlag", message.getSysFlag());
        fields.put("bornTimestamp", message.getBornTimestamp());
        fields.put("storeTimestamp", message.getStoreTimestamp());
        fields.put("reconsumeTimes", message.getReconsumeTimes());
        fields.put("commitLogOffset", message.getCommitLogOffset());
        fields.put("bodyCRC", message.getBodyCRC());
        fields.put("properties", new LinkedHashMap<>(message.getProperties()));
        fields.put("body", Base64.getEncoder().encodeToString(message.getBody()));
        return fields;
    }

    private PrintMessages() { }
}
