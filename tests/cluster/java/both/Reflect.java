import java.io.File;
import java.lang.annotation.Annotation;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.rocketmq.remoting.CommandCustomHeader;

/**
 * Prints, as one JSON object, what the jars on the class path say about the protocol: the constants of the tables and
 * every CommandCustomHeader class with its fields, inherited ones first, their types and whether they must not be null.
 */
public final class Reflect {
    /** Tables by the name that both generations know; the package differs. */
    private static final String[] TABLES = {
        "RequestCode", "ResponseCode", "RemotingSysResponseCode", "LanguageCode", "SerializeType", "MQVersion$Version",
        "MessageConst", "MessageSysFlag", "PullSysFlag", "PermName", "TopicValidator", "MixAll",
    };

    /** Sets of names by their table: properties that applications may not set, topics of the system. */
    private static final Map<String, List<String>> SETS = Map.of(
        "MessageConst", List.of("STRING_HASH_SET"),
        "TopicValidator", List.of("SYSTEM_TOPIC_SET", "NOT_ALLOWED_SEND_TOPIC_SET"));

    private static final String[] HOST_DEPENDENT = {"LOCAL_INET_ADDRESS", "LOCALHOST", "CURRENT_JVM_PID"};

    public static void main(String[] args) throws Exception {
        List<Class<?>> classes = new ArrayList<>();
        for (String name : classNames()) {
            try {
                classes.add(Class.forName(name, false, Reflect.class.getClassLoader()));
            } catch (Throwable missing) {
                // A class over an optional dependency that is not there; no table and no header is one.
            }
        }
        Map<String, Object> tables = new LinkedHashMap<>();
        Map<String, Object> headers = new TreeMap<>();
        for (String table : TABLES) {
            for (Class<?> one : classes) {
                if (one.getName().endsWith("." + table)) {
                    tables.put(table, constants(one));
                    for (String set : SETS.getOrDefault(table, List.of())) {
                        tables.put(table + "." + set, names(one, set));
                    }
                }
            }
        }
        for (Class<?> one : classes) {
            if (CommandCustomHeader.class.isAssignableFrom(one) && !one.isInterface()) {
                headers.put(one.getName(), header(one));
            }
        }
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("tables", tables);
        all.put("headers", headers);
        System.out.println(Json.of(all));
        System.exit(0);
    }

    private static TreeSet<String> classNames() throws Exception {
        TreeSet<String> names = new TreeSet<>();
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!path.endsWith(".jar") || !new File(path).getName().startsWith("rocketmq-")) {
                continue;
            }
            try (JarFile jar = new JarFile(path)) {
                for (Enumeration<JarEntry> entries = jar.entries(); entries.hasMoreElements();) {
                    String name = entries.nextElement().getName();
                    if (name.startsWith("org/apache/rocketmq/") && name.endsWith(".class")) {
                        names.add(name.substring(0, name.length() - 6).replace('/', '.'));
                    }
                }
            }
        }
        return names;
    }

    private static Map<String, Object> constants(Class<?> table) throws Exception {
        Map<String, Object> values = new LinkedHashMap<>();
        if (table.isEnum()) {
            for (Object constant : table.getEnumConstants()) {
                values.put(((Enum<?>) constant).name(), number((Enum<?>) constant));
            }
            return values;
        }
        for (Field field : table.getDeclaredFields()) {
            boolean plain = field.getType().isPrimitive() || field.getType() == String.class;
            if (Modifier.isStatic(field.getModifiers()) && Modifier.isFinal(field.getModifiers()) && plain
                    && !List.of(HOST_DEPENDENT).contains(field.getName())) {
                field.setAccessible(true);
                values.put(field.getName(), field.get(null));
            }
        }
        return values;
    }

    /** Each name of the set, with true. */
    private static Map<String, Object> names(Class<?> table, String set) throws Exception {
        Map<String, Object> names = new TreeMap<>();
        Field field = table.getDeclaredField(set);
        field.setAccessible(true);
        for (Object name : (Iterable<?>) field.get(null)) {
            names.put((String) name, true);
        }
        return names;
    }

    /** The byte on the wire where the enum has one, else its ordinal. */
    private static Object number(Enum<?> constant) {
        try {
            return constant.getClass().getMethod("getCode").invoke(constant);
        } catch (ReflectiveOperationException none) {
            return constant.ordinal();
        }
    }

    private static Map<String, Object> header(Class<?> kind) {
        List<Object> fields = new ArrayList<>();
        List<Class<?>> line = new ArrayList<>();
        for (Class<?> one = kind; one != null && one != Object.class; one = one.getSuperclass()) {
            line.add(0, one);
        }
        for (Class<?> one : line) {
            for (Field field : one.getDeclaredFields()) {
                if (Modifier.isStatic(field.getModifiers()) || field.isSynthetic()) {
                    continue;
                }
                Map<String, Object> row = new LinkedHashMap<>();
                row.put("name", field.getName());
                row.put("type", field.getType().getSimpleName());
                row.put("notNull", has(field.getAnnotations(), "CFNotNull"));
                row.put("of", one.getSimpleName());
                fields.add(row);
            }
        }
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("fields", fields);
        row.put("code", action(kind));
        row.put("fast", List.of(kind.getInterfaces()).stream().anyMatch(i -> i.getSimpleName().startsWith("FastCodes")));
        return row;
    }

    private static boolean has(Annotation[] annotations, String name) {
        for (Annotation annotation : annotations) {
            if (annotation.annotationType().getSimpleName().equals(name)) {
                return true;
            }
        }
        return false;
    }

    /** The request code of the RocketMQAction annotation, which 5.x has; else null. */
    private static Object action(Class<?> kind) {
        for (Annotation annotation : kind.getAnnotations()) {
            if (annotation.annotationType().getSimpleName().equals("RocketMQAction")) {
                try {
                    Method value = annotation.annotationType().getMethod("value");
                    return value.invoke(annotation);
                } catch (ReflectiveOperationException none) {
                    return null;
                }
            }
        }
        return null;
    }

    private Reflect() { }
}
