package bench;

import java.io.IOException;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;

/** Segments of one direction to bytes in order: repeated bytes dropped, late segments waited for. */
final class StreamReassembler {
    private record Segment(byte[] data, int packet, long micros) {}

    private final FrameCutter cutter;
    private final TreeMap<Integer, Segment> pending = new TreeMap<>((a, b) -> a - b);
    private boolean started;
    private int expected;

    StreamReassembler(FrameCutter cutter) {
        this.cutter = cutter;
    }

    void start(int sequence) {
        started = true;
        expected = sequence;
    }

    void receive(int sequence, byte[] data, int from, int length, int packet, long micros)
            throws IOException {
        if (!started) {
            start(sequence);
        }
        if (sequence == expected && pending.isEmpty()) {
            expected += length;
            cutter.receive(data, from, length, packet, micros);
            return;
        }
        int known = expected - sequence;
        if (known >= length) {
            return;
        }
        if (known < 0) {
            byte[] copy = Arrays.copyOfRange(data, from, from + length);
            pending.putIfAbsent(sequence, new Segment(copy, packet, micros));
            return;
        }
        expected += length - known;
        cutter.receive(data, from + known, length - known, packet, micros);
        release();
    }

    private void release() throws IOException {
        Map.Entry<Integer, Segment> first;
        while ((first = pending.firstEntry()) != null && first.getKey() - expected <= 0) {
            pending.pollFirstEntry();
            Segment segment = first.getValue();
            int known = expected - first.getKey();
            int rest = segment.data.length - known;
            if (rest > 0) {
                expected += rest;
                cutter.receive(segment.data, known, rest, segment.packet, segment.micros);
            }
        }
    }
}
