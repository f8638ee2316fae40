import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;

/** The {@code key=value} arguments of a client program, for a client without ACL, namespaces and traces. */
final class Options {
    private final Map<String, String> values = new HashMap<>();

    Options(String[] args) {
        for (String arg : args) {
            int at = arg.indexOf('=');
            values.put(arg.substring(0, at), arg.substring(at + 1));
        }
    }

    int number(String key, int otherwise) {
        return values.containsKey(key) ? Integer.parseInt(values.get(key)) : otherwise;
    }

    boolean is(String key) {
        return Boolean.parseBoolean(values.get(key));
    }

    DefaultMQProducer producer() {
        DefaultMQProducer producer = new DefaultMQProducer("sample_group");
        producer.setNamesrvAddr(values.get("namesrv"));
        producer.setClientIP("127.0.0.1");
        producer.setInstanceName(values.getOrDefault("instance", "sample"));
        producer.setVipChannelEnabled(is("vip"));
        producer.setHeartbeatBrokerInterval(number("heartbeat-ms", 10000));
        producer.setPollNameServerInterval(number("poll-ms", 30000));
        producer.setSendMsgTimeout(number("timeout-ms", 10000));
        producer.setSendLatencyFaultEnable(is("fault-strategy"));
        producer.setRetryTimesWhenSendFailed(number("retries", 2));
        return producer;
    }

    Message message(int i) {
        Message message = new Message(values.get("topic"), "TagA", "key-" + i,
            ("message " + i).getBytes(StandardCharsets.UTF_8));
        message.putUserProperty("number", Integer.toString(i));
        return message;
    }
}
