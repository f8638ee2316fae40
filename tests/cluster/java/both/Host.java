import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * Runs programs one after the other, so that Java starts once for all of them.
 *
 * <p>Lines on standard input, their words apart by tabs: {@code run FILE PROGRAM ARG...} runs the main method of a
 * program, which prints to a file; {@code end} ends the standard input of that program. Where standard input ends, so
 * does all. A line on standard output says {@code ended STATUS}.
 */
public final class Host {
    private static volatile boolean hosts;

    /** The end of a program that others run beside it here. */
    private static final class Ended extends Error {
        private final int status;

        Ended(int status) {
            super(null, null, false, false);
            this.status = status;
        }
    }

    /** Ends a program at once: threads that clients leave behind for some seconds are not waited for. */
    static void end(int status) {
        if (hosts) {
            throw new Ended(status);
        }
        System.exit(status);
    }

    public static void main(String[] args) throws Exception {
        hosts = true;
        PrintStream answers = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PipedOutputStream input = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            if (words[0].equals("end")) {
                input.close();
                continue;
            }
            input = new PipedOutputStream();
            System.setIn(new PipedInputStream(input));
            PrintStream output = new PrintStream(new FileOutputStream(words[1]), true, StandardCharsets.UTF_8);
            System.setOut(output);
            System.setErr(output);
            Method main = Class.forName(words[2]).getMethod("main", String[].class);
            Object arguments = Arrays.copyOfRange(words, 3, words.length);
            new Thread(() -> {
                int status = run(main, arguments);
                System.setOut(answers);  // what threads that are left behind say is of no program
                System.setErr(answers);
                answers.println("ended " + status);
            }, "main").start();
        }
        System.exit(0);
    }

    private static int run(Method main, Object arguments) {
        try {
            forget(main.getDeclaringClass());
            main.invoke(null, arguments);
            return 0;
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof Ended ended) {
                return ended.status;
            }
            System.err.print("Exception in thread \"main\" ");
            error.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Empties lists that a program has filled before: of the commands of mqadmin some keep clients that are shut down. */
    private static void forget(Class<?> program) throws ReflectiveOperationException {
        for (Field field : program.getDeclaredFields()) {
            if (field.getType() == List.class && Modifier.isStatic(field.getModifiers())) {
                field.setAccessible(true);
                ((List<?>) field.get(null)).clear();
            }
        }
    }

    private Host() { }
}
