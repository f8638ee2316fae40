package bench;

import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.function.Consumer;

/**
 * The Java baseline: `Main CAPTURE OUTPUT PASSES` decodes the capture that often in one thread and
 * prints one JSON object: seconds of the first pass, wall and CPU seconds of each warm one, and what
 * was found. The multiset hash, as the ground truth has it, is computed in one more pass that is not
 * timed.
 */
public final class Main {
    private long multiset;

    public static void main(String[] arguments) throws Exception {
        new Main().run(arguments[0], arguments[1], Integer.parseInt(arguments[2]));
    }

    private void run(String capture, String output, int passes) throws IOException {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        double[] seconds = new double[passes];
        double[] cpu = new double[passes];
        for (int pass = 0; pass < passes; pass++) {
            long used = threads.getCurrentThreadCpuTime();
            long start = System.nanoTime();
            decode(capture, output, null);
            seconds[pass] = (System.nanoTime() - start) / 1e9;
            cpu[pass] = (threads.getCurrentThreadCpuTime() - used) / 1e9;
        }
        Decoder decoder = decode(capture, output, this::observe);
        String warm = Arrays.toString(Arrays.copyOfRange(seconds, 1, passes));
        String warmCpu = Arrays.toString(Arrays.copyOfRange(cpu, 1, passes));
        System.out.printf(
                "{\"first\": %.4f, \"warm\": %s, \"warm_cpu\": %s, "
                        + "\"packets\": %d, \"commands\": %d, \"exchanges\": %d, "
                        + "\"multiset\": \"%016x\"}%n",
                seconds[0], warm, warmCpu, decoder.packets, decoder.commands, decoder.exchanges,
                multiset);
    }

    private static Decoder decode(String capture, String output, Consumer<Command> observer)
            throws IOException {
        try (OutputStream file =
                new BufferedOutputStream(new FileOutputStream(output), 1 << 16)) {
            String name = Path.of(capture).getFileName().toString();
            ExchangeWriter writer = new ExchangeWriter(file, name);
            Decoder decoder = new Decoder(writer, observer);
            decoder.read(capture);
            writer.finish();
            return decoder;
        }
    }

    private void observe(Command command) {
        ByteBuffer identity = ByteBuffer.allocate(16);
        identity.putInt(command.code).putInt(command.opaque).putInt(command.flag);
        identity.putInt(command.length());
        try {
            byte[] digest = MessageDigest.getInstance("MD5").digest(identity.array());
            multiset += ByteBuffer.wrap(digest).getLong();
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }
}
