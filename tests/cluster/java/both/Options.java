import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.client.ClientConfig;

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

    /** Names the client by loopback and a fixed instance name, so that no host name or process id is recorded. */
    <T extends ClientConfig> T configure(T client) {
        client.setNamesrvAddr(text("namesrv", "127.0.0.1:9876"));
        client.setClientIP(text("client-ip", "127.0.0.1"));
        client.setInstanceName(text("instance", "sample"));
        client.setVipChannelEnabled(is("vip"));
        client.setUseTLS(is("tls"));
        client.setHeartbeatBrokerInterval(number("heartbeat-ms", 30000));
        client.setPollNameServerInterval(number("poll-ms", 30000));
        return client;
    }
}
