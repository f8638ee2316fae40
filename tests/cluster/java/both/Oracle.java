import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.remoting.CommandCustomHeader;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * Decodes frames with RocketMQ's own RemotingCommand. A line of standard input is one whole frame in hexadecimal, its
 * total length included, and optionally the class of its custom header after a blank; the answer is a line of JSON:
 * the command's fields, the body in base64, with a class also the header's fields, and what RocketMQ makes of the
 * command when it encodes it again; or {@code {"error": ...}}.
 */
public final class Oracle {
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
            byte[] frame = HexFormat.of().parseHex(words[0]);
            ByteBuffer buffer = ByteBuffer.wrap(frame);
            int length = buffer.getInt();
            if (length != frame.length - 4) {
                throw new IllegalArgumentException("total length " + length + " of " + (frame.length - 4));
            }
            describe(answer, RemotingCommand.decode(buffer.slice()), words);
        } catch (Throwable error) {
            answer.put("error", error.toString());
        }
        return answer;
    }

    private static void describe(Map<String, Object> answer, RemotingCommand command, String[] words)
            throws Exception {
        answer.put("code", command.getCode());
        answer.put("language", command.getLanguage());
        answer.put("version", command.getVersion());
        answer.put("opaque", command.getOpaque());
        answer.put("flag", command.getFlag());
        answer.put("remark", command.getRemark());
        answer.put("serializeType", command.getSerializeTypeCurrentRPC());
        answer.put("extFields", command.getExtFields() == null ? null : new TreeMap<>(command.getExtFields()));
        byte[] body = command.getBody() == null ? new byte[0] : command.getBody();
        answer.put("bodyLength", body.length);
        answer.put("body", Base64.getEncoder().encodeToString(body));
        if (words.length > 1) {
            answer.put("header", header(command, words[1]));
        }
        ByteBuffer again = command.encode();
        byte[] bytes = new byte[again.remaining()];
        again.get(bytes);
        answer.put("encoded", HexFormat.of().formatHex(bytes));
    }

    private static Map<String, Object> header(RemotingCommand command, String name) throws Exception {
        Class<? extends CommandCustomHeader> kind = Class.forName(name).asSubclass(CommandCustomHeader.class);
        CommandCustomHeader header = command.decodeCommandCustomHeader(kind);
        Map<String, Object> fields = new TreeMap<>();
        for (Class<?> one = kind; one != Object.class; one = one.getSuperclass()) {
            for (Field field : one.getDeclaredFields()) {
                if (!Modifier.isStatic(field.getModifiers()) && !field.isSynthetic()) {
                    field.setAccessible(true);
                    fields.putIfAbsent(field.getName(), field.get(header));
                }
            }
        }
        return fields;
    }

    private Oracle() { }
}
