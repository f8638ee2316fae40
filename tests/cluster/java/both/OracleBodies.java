import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Decodes bodies with RocketMQ's own RemotingSerializable. A line of standard input is a class below the package of the
 * protocol, such as heartbeat.HeartbeatData, and the body in hexadecimal; the answer is a line of JSON: {@code text},
 * the object as RocketMQ encodes it again, null where there is none; or {@code error}.
 */
public final class OracleBodies {
    private static final String[] PACKAGES = {
        "org.apache.rocketmq.remoting.protocol.", "org.apache.rocketmq.common.protocol."
    };

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(Json.of(answer(line.trim().split(" "))));
        }
        System.out.flush();
        System.exit(0);
    }

    private static Map<String, Object> answer(String[] words) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            byte[] body = words.length > 1 ? HexFormat.of().parseHex(words[1]) : new byte[0];
            Object object = RemotingSerializable.decode(body, classOf(words[0]));
            answer.put("text", object == null ? null : RemotingSerializable.toJson(object, false));
        } catch (Throwable error) {
            answer.put("error", error.toString());
        }
        return answer;
    }

    private static Class<?> classOf(String name) throws ClassNotFoundException {
        for (String prefix : PACKAGES) {
            try {
                return Class.forName(prefix + name);
            } catch (ClassNotFoundException elsewhere) {
                // 5.x has moved these classes.
            }
        }
        throw new ClassNotFoundException(name);
    }

    private OracleBodies() { }
}
