package bench;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;

/** One pass over a capture: pcap, Ethernet, IPv4, TCP, frames, headers, exchanges, lines. */
final class Decoder {
    private static final int CHUNK = 1 << 18;

    private record Flow(long addresses, int ports) {
        Flow reversed() {
            return new Flow(Long.rotateLeft(addresses, 32), Integer.rotateLeft(ports, 16));
        }
    }

    /** Number and endpoints, as the rows have them, of the flow from client to server. */
    private record Conversation(int number, String client, String server) {}

    private final ExchangeWriter writer;
    private final Consumer<Command> observer;
    private final HeaderDecoder headers = new HeaderDecoder();
    private final Map<Flow, StreamReassembler> streams = new HashMap<>();
    private final Map<Flow, Map<Integer, Command>> open = new HashMap<>();
    private final Map<Flow, Conversation> conversations = new HashMap<>();
    private int lastConversation;
    int packets;
    int commands;
    int exchanges;

    /** The observer sees every command; it may be null. */
    Decoder(ExchangeWriter writer, Consumer<Command> observer) {
        this.writer = writer;
        this.observer = observer;
    }

    void read(String path) throws IOException {
        byte[] chunk = new byte[CHUNK];
        int have = 0;
        try (InputStream file = new FileInputStream(path)) {
            if (file.readNBytes(24).length < 24) {
                throw new IOException("not a capture: " + path);
            }
            int got;
            while ((got = file.read(chunk, have, chunk.length - have)) > 0) {
                have += got;
                int at = 0;
                while (have - at >= 16) {
                    int size = Bytes.little32(chunk, at + 8);
                    if (have - at < 16 + size) {
                        break;
                    }
                    packet(chunk, at, size);
                    at += 16 + size;
                }
                have -= at;
                System.arraycopy(chunk, at, chunk, 0, have);
            }
        }
        open.forEach(this::writeOpen);
    }

    private void packet(byte[] data, int record, int size) throws IOException {
        packets++;
        int ip = record + 30;
        if (size < 54 || Bytes.int16(data, ip - 2) != 0x0800 || data[ip + 9] != 6) {
            return;
        }
        int tcp = ip + (data[ip] & 15) * 4;
        int payload = tcp + (data[tcp + 12] >> 4 & 15) * 4;
        int length = ip + (Bytes.int16(data, ip + 2) & 0xFFFF) - payload;
        boolean syn = (data[tcp + 13] & 2) != 0;
        if (length == 0 && !syn) {
            return;
        }
        long addresses = (long) Bytes.int32(data, ip + 12) << 32
                | Bytes.int32(data, ip + 16) & 0xFFFFFFFFL;
        Flow flow = new Flow(addresses, Bytes.int32(data, tcp));
        StreamReassembler stream = streams.get(flow);
        if (stream == null) {
            stream = new StreamReassembler(new FrameCutter(headers, c -> command(flow, c)));
            streams.put(flow, stream);
        }
        int sequence = Bytes.int32(data, tcp + 4);
        if (syn) {
            stream.start(sequence + 1);
            return;
        }
        long seconds = Bytes.little32(data, record) & 0xFFFFFFFFL;
        long micros = seconds * 1_000_000 + Bytes.little32(data, record + 4);
        stream.receive(sequence, data, payload, length, packets, micros);
    }

    private void command(Flow flow, Command command) {
        commands++;
        if (observer != null) {
            observer.accept(command);
        }
        if (command.isResponse()) {
            Flow asked = flow.reversed();
            Map<Integer, Command> waiting = open.get(asked);
            Command request = waiting == null ? null : waiting.remove(command.opaque);
            write(asked, request, command);
        } else if (command.isOneway()) {
            write(flow, command, null);
        } else {
            open.computeIfAbsent(flow, key -> new HashMap<>()).put(command.opaque, command);
        }
    }

    private void writeOpen(Flow flow, Map<Integer, Command> waiting) {
        for (Command request : waiting.values()) {
            write(flow, request, null);
        }
    }

    private void write(Flow flow, Command request, Command response) {
        exchanges++;
        Conversation of = conversations.computeIfAbsent(flow, this::conversationOf);
        writer.write(of.number, of.client, of.server, request, response);
    }

    private Conversation conversationOf(Flow flow) {
        Conversation other = conversations.get(flow.reversed());
        int number = other != null ? other.number : ++lastConversation;
        return new Conversation(
                number,
                endpoint((int) (flow.addresses >>> 32), flow.ports >>> 16),
                endpoint((int) flow.addresses, flow.ports & 0xFFFF));
    }

    private static String endpoint(int address, int port) {
        return (address >>> 24) + "." + (address >>> 16 & 255) + "." + (address >>> 8 & 255) + "."
                + (address & 255) + ":" + port;
    }
}
