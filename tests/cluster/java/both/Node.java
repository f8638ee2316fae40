import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.BrokerStartup;
import org.apache.rocketmq.broker.mqtrace.SendMessageContext;
import org.apache.rocketmq.broker.mqtrace.SendMessageHook;
import org.apache.rocketmq.namesrv.NamesrvStartup;
import org.apache.rocketmq.remoting.RemotingClient;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.RunningFlags;

/**
 * Starts a NameServer or a broker in this JVM and obeys lines on standard input, so that a server never outlives
 * the program that started it: the end of standard input ends the server.
 *
 * <p>Usage: {@code Node namesrv|broker ARGS...}, ARGS as RocketMQ's own start classes take them.
 * Lines: {@code disk-full} and {@code disk-ok} set the flag that the store's cleaning service sets when the disk
 * passes its threshold, which here only these lines do; {@code page-cache-busy} and {@code page-cache-ok} set the time since which a message is being
 * written, as when the page cache does not take it; {@code slow-sends MS} makes each send take so much longer in its
 * thread, by a hook as plug-ins have them; {@code exit} stops.
 */
public final class Node {
    private static final ToldFlags FLAGS = new ToldFlags();
    private static BrokerController broker;
    private static volatile long sendMillis = -1;

    public static void main(String[] args) throws Exception {
        String[] rest = Arrays.copyOfRange(args, 1, args.length);
        if (args[0].equals("broker")) {
            broker = BrokerStartup.createBrokerController(rest);
            Field flags = DefaultMessageStore.class.getDeclaredField("runningFlags");
            flags.setAccessible(true);
            flags.set(broker.getMessageStore(), FLAGS);
            expectNamesrvs();
            BrokerStartup.start(broker);
        } else {
            NamesrvStartup.main(rest);
        }
        obey(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
        System.exit(0);
    }

    /**
     * A 5.x broker registers with the NameServers that it has found to be there. One that starts fast has looked for
     * none yet, and would try again ten seconds later.
     */
    @SuppressWarnings("unchecked")
    private static void expectNamesrvs() throws Exception {
        Object api = broker.getBrokerOuterAPI();
        Field field = api.getClass().getDeclaredField("remotingClient");
        field.setAccessible(true);
        RemotingClient client = (RemotingClient) field.get(api);
        try {
            Field found = client.getClass().getDeclaredField("availableNamesrvAddrMap");
            found.setAccessible(true);
            for (String address : client.getNameServerAddressList()) {
                ((Map<String, Boolean>) found.get(client)).put(address, true);
            }
        } catch (NoSuchFieldException error) {
            // 4.x registers with all
        }
    }

    private static void obey(BufferedReader lines) throws Exception {
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.trim().split(" ");
            switch (words[0]) {
                case "disk-full" -> FLAGS.tell(true);
                case "disk-ok" -> FLAGS.tell(false);
                case "page-cache-busy" -> writingSince(System.currentTimeMillis() - 60_000);
                case "page-cache-ok" -> writingSince(0);
                case "slow-sends" -> slowSends(Long.parseLong(words[1]));
                case "exit" -> { return; }
                default -> System.err.println("unknown line: " + line);
            }
            System.out.println("done " + line.trim());
            System.out.flush();
        }
    }

    private static void writingSince(long time) throws Exception {
        Object store = broker.getMessageStore();
        Object log = store.getClass().getMethod("getCommitLog").invoke(store);
        Class<?> kind = log.getClass();
        while (!kind.getSimpleName().equals("CommitLog")) {
            kind = kind.getSuperclass();
        }
        Field field = kind.getDeclaredField("beginTimeInLock");
        field.setAccessible(true);
        field.setLong(log, time);
    }

    private static void slowSends(long millis) {
        if (sendMillis < 0) {
            broker.registerSendMessageHook(new SlowSends());
        }
        sendMillis = millis;
    }

    private static final class SlowSends implements SendMessageHook {
        @Override
        public String hookName() {
            return "slow-sends";
        }

        @Override
        public void sendMessageBefore(SendMessageContext context) {
            try {
                Thread.sleep(sendMillis);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }

        @Override
        public void sendMessageAfter(SendMessageContext context) {
            // the time was taken before
        }
    }

    /**
     * A disk is full when a line says so: the store refuses messages from 90 % on, whatever its configuration
     * says, and the machine of the tests may be there.
     */
    private static final class ToldFlags extends RunningFlags {
        void tell(boolean full) {
            if (full) {
                super.getAndMakeDiskFull();
            } else {
                super.getAndMakeDiskOK();
            }
        }

        @Override
        public boolean getAndMakeDiskFull() {
            return false;
        }

        @Override
        public boolean getAndMakeDiskOK() {
            return true;
        }

        // 5.x only
        public boolean getAndMakeLogicDiskFull() {
            return false;
        }
    }

    private Node() { }
}
