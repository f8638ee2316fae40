package bench;

import java.io.IOException;
import java.util.Arrays;
import java.util.function.Consumer;

/** The bytes of one direction, in order, cut into frames; a body is kept if it may be messages. */
final class FrameCutter {
    private static final int PREFIX = 8;

    private final HeaderDecoder decoder;
    private final Consumer<Command> sink;
    private byte[] partial = new byte[1024];
    private int have;
    private int skip;
    private Command waiting;
    private byte[] body = new byte[1 << 16];
    private boolean keep;

    FrameCutter(HeaderDecoder decoder, Consumer<Command> sink) {
        this.decoder = decoder;
        this.sink = sink;
    }

    void receive(byte[] data, int from, int length, int packet, long micros) throws IOException {
        int at = from;
        int end = from + length;
        while (at < end) {
            if (waiting != null) {
                at = takeBody(data, at, end, packet, micros);
            } else if (have == 0 && end - at >= PREFIX && end - at >= needed(data, at)) {
                int size = needed(data, at);
                begin(data, at, size, packet, micros);
                at += size;
            } else {
                at = collect(data, at, end, packet, micros);
            }
        }
    }

    private static int needed(byte[] data, int at) {
        return PREFIX + (Bytes.int32(data, at + 4) & 0xFFFFFF);
    }

    /** Take bytes until prefix and header are together. */
    private int collect(byte[] data, int from, int end, int packet, long micros)
            throws IOException {
        int target = have < PREFIX ? PREFIX : needed(partial, 0);
        int take = Math.min(target - have, end - from);
        if (have + take > partial.length) {
            partial = Arrays.copyOf(partial, Math.max(target, 2 * partial.length));
        }
        System.arraycopy(data, from, partial, have, take);
        have += take;
        if (have >= PREFIX && have == needed(partial, 0)) {
            have = 0;
            begin(partial, 0, needed(partial, 0), packet, micros);
        }
        return from + take;
    }

    private void begin(byte[] data, int at, int size, int packet, long micros)
            throws IOException {
        Command command = decoder.decode(data, at + PREFIX, size - PREFIX, data[at + 4] == 1);
        command.bodyLength = Bytes.int32(data, at) + 4 - size;
        skip = command.bodyLength;
        keep = Messages.mayBeIn(command);
        if (keep && body.length < skip) {
            body = new byte[skip];
        }
        if (skip == 0) {
            finish(command, packet, micros);
        } else {
            waiting = command;
        }
    }

    private int takeBody(byte[] data, int from, int end, int packet, long micros) {
        int take = Math.min(skip, end - from);
        if (keep) {
            System.arraycopy(data, from, body, waiting.bodyLength - skip, take);
        }
        skip -= take;
        if (skip == 0) {
            Command command = waiting;
            waiting = null;
            if (keep) {
                command.messages = Messages.count(body, command.bodyLength);
            }
            finish(command, packet, micros);
        }
        return from + take;
    }

    private void finish(Command command, int packet, long micros) {
        command.packet = packet;
        command.micros = micros;
        sink.accept(command);
    }
}
