import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.remoting.RPCHook;

/** The {@code key=value} arguments of a client program, and what every client of a recording has in common. */
final class Options {
    private final Map<String, String> values = new HashMap<>();

    Options(String[] args) {
        for (String arg : args) {
            int at = arg.indexOf('=');
            values.put(arg.substring(0, at), arg.substring(at + 1));
        }
    }

    String text(String key, String otherwise) {
        return values.getOrDefault(key, otherwise);
    }

    int number(String key, int otherwise) {
        return values.containsKey(key) ? Integer.parseInt(values.get(key)) : otherwise;
    }

    boolean is(String key) {
        return Boolean.parseBoolean(values.get(key));
    }

    String topic() {
        return text("topic", "SampleTopic");
    }

    String group() {
        return text("group", "sample_group");
    }

    /** The signing hook when a secret is given, else null. */
    RPCHook hook() {
        return values.containsKey("secret")
            ? new AclClientRPCHook(new SessionCredentials(text("access", ""), text("secret", "")))
            : null;
    }

    /** Names the client by loopback and a fixed instance name, so that no host name or process id is recorded. */
    <T extends ClientConfig> T configure(T client) {
        client.setNamesrvAddr(text("namesrv", "127.0.0.1:9876"));
        client.setClientIP(text("client-ip", "127.0.0.1"));
        client.setInstanceName(text("instance", "sample"));
        client.setVipChannelEnabled(is("vip"));
        client.setUseTLS(is("tls"));
        client.setHeartbeatBrokerInterval(number("heartbeat-ms", 10000));
        client.setPollNameServerInterval(number("poll-ms", 30000));
        client.setMqClientApiTimeout(number("api-ms", 3000));
        if (values.containsKey("namespace")) {
            client.setNamespace(values.get("namespace"));
        }
        return client;
    }

    DefaultMQProducer producer() {
        DefaultMQProducer producer = configure(new DefaultMQProducer(group(), hook(), is("trace"), null));
        tune(producer);
        return producer;
    }

    void tune(DefaultMQProducer producer) {
        producer.setSendMsgTimeout(number("timeout-ms", 10000));
        producer.setSendLatencyFaultEnable(is("fault-strategy"));
        producer.setCompressMsgBodyOverHowmuch(number("compress-over", 4096));
        producer.setRetryTimesWhenSendFailed(number("retries", 2));
        producer.setMaxMessageSize(number("max-size", 4 * 1024 * 1024));
        producer.setRetryTimesWhenSendAsyncFailed(number("retries", 2));
    }

    /** The i-th message: a tag, a key, a property of the user's, and a body of text that is not only ASCII. */
    Message message(int i) {
        StringBuilder text = new StringBuilder("message " + i + " \u00e4\u6d88\u606f");
        while (text.length() < number("body", 0)) {
            text.append(" and again ").append(text.length());
        }
        String tag = "Tag" + (char) ('A' + i % number("tags", 1));
        Message message = new Message(topic(), tag, "key-" + i, text.toString().getBytes(StandardCharsets.UTF_8));
        message.putUserProperty("number", Integer.toString(i));
        if (values.containsKey("refused")) {
            // Whoever sends it again can tell that no broker takes it.
            message.putUserProperty("refused", values.get("refused"));
        }
        if (values.containsKey("property")) {
            message.putUserProperty("large", "x".repeat(number("property", 0)));
        }
        return message;
    }
}
