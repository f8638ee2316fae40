package bench;

import java.util.HashMap;
import java.util.Map;

/** One decoded frame: the header's members, where it was seen, and how long its parts are. */
final class Command {
    int code;
    int opaque;
    int flag;
    int version;
    String language = "";
    String remark;
    final Map<String, String> fields = new HashMap<>(32);
    boolean binary;
    int headerLength;
    int bodyLength;
    int messages = -1;
    int packet;
    long micros;

    boolean isResponse() {
        return (flag & 1) != 0;
    }

    boolean isOneway() {
        return (flag & 2) != 0;
    }

    /** The value of the length prefix. */
    int length() {
        return 4 + headerLength + bodyLength;
    }

    private boolean hasShortNames() {
        return code == 310 || code == 320 || code == 325;
    }

    String topic() {
        return fields.get(hasShortNames() ? "b" : "topic");
    }

    String group() {
        if (hasShortNames()) {
            return fields.get("a");
        }
        String consumer = fields.get("consumerGroup");
        return consumer != null ? consumer : fields.get("producerGroup");
    }

    String queueId() {
        return fields.get(hasShortNames() ? "e" : "queueId");
    }

    String brokerName() {
        String name = fields.get(hasShortNames() ? "n" : "bname");
        return name != null ? name : fields.get("brokerName");
    }

    /** A property of the message that a send request carries, or null. */
    String property(String name) {
        String properties = fields.get(hasShortNames() ? "i" : "properties");
        if (properties == null) {
            return null;
        }
        int at = 0;
        while (at < properties.length()) {
            int end = properties.indexOf('\u0002', at);
            end = end < 0 ? properties.length() : end;
            int mark = at + name.length();
            if (mark < end && properties.charAt(mark) == '\u0001'
                    && properties.startsWith(name, at)) {
                return properties.substring(mark + 1, end);
            }
            at = end + 1;
        }
        return null;
    }

    boolean isSend() {
        return code == 10 || code == 310;
    }
}
