import java.lang.reflect.Array;
import java.util.Map;
import java.util.StringJoiner;

/** Writes maps, iterables, arrays, numbers, booleans and texts as strict JSON. */
final class Json {
    static String of(Object value) {
        if (value == null || value instanceof Boolean || value instanceof Number) {
            return String.valueOf(value);
        }
        if (value instanceof Map<?, ?> map) {
            StringJoiner out = new StringJoiner(",", "{", "}");
            map.forEach((key, item) -> out.add(quoted(String.valueOf(key)) + ":" + of(item)));
            return out.toString();
        }
        if (value instanceof Iterable<?> items) {
            StringJoiner out = new StringJoiner(",", "[", "]");
            items.forEach(item -> out.add(of(item)));
            return out.toString();
        }
        if (value.getClass().isArray()) {
            StringJoiner out = new StringJoiner(",", "[", "]");
            for (int i = 0; i < Array.getLength(value); i++) {
                out.add(of(Array.get(value, i)));
            }
            return out.toString();
        }
        return quoted(value.toString());
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || c > '~') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }

    private Json() { }
}
