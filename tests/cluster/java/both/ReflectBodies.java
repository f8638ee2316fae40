import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.GenericArrayType;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.lang.reflect.WildcardType;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.Enumeration;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Prints, as one JSON object, the members of body classes as the serializer of the release writes them: class → member
 * → Java type, and enum → constants. Taken are all RemotingSerializable classes, those whose names come on standard
 * input (nested ones as Outer.Inner), and every class of RocketMQ that a member of these has.
 */
public final class ReflectBodies {
    private static final String ROCKETMQ = "org.apache.rocketmq.";

    private final Map<String, Object> classes = new TreeMap<>();
    private final Map<String, Object> enums = new TreeMap<>();
    private final Deque<Class<?>> waiting = new ArrayDeque<>();
    private final Set<Class<?>> met = new HashSet<>();

    public static void main(String[] args) throws Exception {
        Set<String> asked = new HashSet<>();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            asked.add(line.trim());
        }
        ReflectBodies reflection = new ReflectBodies();
        for (String name : classNames()) {
            try {
                Class<?> one = Class.forName(name, false, ReflectBodies.class.getClassLoader());
                boolean body = RemotingSerializable.class.isAssignableFrom(one) && one != RemotingSerializable.class;
                if (body || asked.contains(nameOf(one))) {
                    reflection.meet(one);
                }
            } catch (Throwable missing) {
                // A class over an optional dependency that is not there; no body is one.
            }
        }
        reflection.followMembers();
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("classes", reflection.classes);
        all.put("enums", reflection.enums);
        System.out.println(Json.of(all));
        System.exit(0);
    }

    private void meet(Type type) {
        if (type instanceof ParameterizedType) {
            meet(((ParameterizedType) type).getRawType());
            for (Type argument : ((ParameterizedType) type).getActualTypeArguments()) {
                meet(argument);
            }
        } else if (type instanceof Class<?> && ((Class<?>) type).getName().startsWith(ROCKETMQ)
                && met.add((Class<?>) type)) {
            waiting.add((Class<?>) type);
        }
    }

    private void followMembers() throws Exception {
        while (!waiting.isEmpty()) {
            Class<?> one = waiting.poll();
            if (one.isEnum()) {
                List<Object> names = new ArrayList<>();
                for (Object constant : one.getEnumConstants()) {
                    names.add(((Enum<?>) constant).name());
                }
                enums.put(one.getName(), names);
                continue;
            }
            Map<String, Object> members = new TreeMap<>();
            for (Map.Entry<String, Type> member : membersOf(one).entrySet()) {
                members.put(member.getKey(), describe(member.getValue()));
                meet(member.getValue());
            }
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("members", members);
            row.put("body", RemotingSerializable.class.isAssignableFrom(one));
            row.put("abstract", Modifier.isAbstract(one.getModifiers()));
            classes.put(one.getName(), row);
        }
    }

    /** What the serializer says: fastjson2 where RemotingSerializable writes with it, else fastjson. */
    private static Map<String, Type> membersOf(Class<?> one) throws Exception {
        List<?> writers;
        String name;
        if (writesWithFastjson2()) {
            Class<?> factory = Class.forName("com.alibaba.fastjson2.JSONFactory");
            Object provider = factory.getMethod("getDefaultObjectWriterProvider").invoke(null);
            Method find = provider.getClass().getMethod("getObjectWriter", Type.class, Class.class);
            Object writer = find.invoke(provider, one, one);
            Method all = Class.forName("com.alibaba.fastjson2.writer.ObjectWriter").getMethod("getFieldWriters");
            writers = (List<?>) all.invoke(writer);
            name = "fieldName";
        } else {
            Class<?> utils = Class.forName("com.alibaba.fastjson.util.TypeUtils");
            writers = (List<?>) utils.getMethod("computeGetters", Class.class, Map.class).invoke(null, one, null);
            name = "name";
        }
        Map<String, Type> members = new TreeMap<>();
        for (Object writer : writers) {
            Field names = writer.getClass().getField(name);
            Field types = writer.getClass().getField("fieldType");
            members.put((String) names.get(writer), (Type) types.get(writer));
        }
        return members;
    }

    private static boolean writesWithFastjson2() {
        for (Method method : RemotingSerializable.class.getMethods()) {
            for (Class<?> parameter : method.getParameterTypes()) {
                if (parameter.getName().startsWith("[Lcom.alibaba.fastjson2.")) {
                    return true;
                }
            }
        }
        return false;
    }

    private static String describe(Type type) {
        if (type instanceof ParameterizedType) {
            StringBuilder text = new StringBuilder(describe(((ParameterizedType) type).getRawType())).append('<');
            Type[] arguments = ((ParameterizedType) type).getActualTypeArguments();
            for (int i = 0; i < arguments.length; i++) {
                text.append(i == 0 ? "" : ", ").append(describe(arguments[i]));
            }
            return text.append('>').toString();
        }
        if (type instanceof WildcardType) {
            return describe(((WildcardType) type).getUpperBounds()[0]);
        }
        if (type instanceof GenericArrayType) {
            return describe(((GenericArrayType) type).getGenericComponentType()) + "[]";
        }
        if (!(type instanceof Class<?>)) {
            return "Object";
        }
        Class<?> one = (Class<?>) type;
        if (Map.class.isAssignableFrom(one)) {
            return "Map";
        }
        if (Set.class.isAssignableFrom(one)) {
            return "Set";
        }
        return Collection.class.isAssignableFrom(one) ? "List" : nameOf(one);
    }

    private static String nameOf(Class<?> one) {
        Class<?> outer = one.getEnclosingClass();
        return outer == null ? one.getSimpleName() : nameOf(outer) + "." + one.getSimpleName();
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

    private ReflectBodies() { }
}
