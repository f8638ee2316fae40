import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.BrokerStartup;
import org.apache.rocketmq.namesrv.NamesrvStartup;

/**
 * Starts a NameServer or a broker in this JVM and obeys lines on standard input, so that a server never outlives
 * the program that started it: the end of standard input ends the server.
 *
 * <p>Usage: {@code Node namesrv|broker ARGS...}, ARGS as RocketMQ's own start classes take them.
 * Lines: {@code disk-full} and {@code disk-ok} set the flag that the store's cleaning service sets when the disk
 * passes its threshold; {@code exit} stops.
 */
public final class Node {
    private static BrokerController broker;

    public static void main(String[] args) throws Exception {
        String[] rest = Arrays.copyOfRange(args, 1, args.length);
        if (args[0].equals("broker")) {
            broker = BrokerStartup.createBrokerController(rest);
            BrokerStartup.start(broker);
        } else {
            NamesrvStartup.main(rest);
        }
        obey(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
        System.exit(0);
    }

    private static void obey(BufferedReader lines) throws Exception {
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            switch (line.trim()) {
                case "disk-full" -> runningFlags("getAndMakeDiskFull");
                case "disk-ok" -> runningFlags("getAndMakeDiskOK");
                case "exit" -> { return; }
                default -> System.err.println("unknown line: " + line);
            }
            System.out.println("done " + line.trim());
            System.out.flush();
        }
    }

    private static void runningFlags(String change) throws Exception {
        Object store = broker.getMessageStore();
        Object flags = store.getClass().getMethod("getRunningFlags").invoke(store);
        flags.getClass().getMethod(change).invoke(flags);
    }

    private Node() { }
}
