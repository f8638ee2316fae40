package bench;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Integers out of byte arrays. */
final class Bytes {
    private static final VarHandle BIG_32 =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle BIG_16 =
            MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle LITTLE_32 =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

    private Bytes() {}

    static int int32(byte[] data, int at) {
        return (int) BIG_32.get(data, at);
    }

    static int int16(byte[] data, int at) {
        return (short) BIG_16.get(data, at);
    }

    static int little32(byte[] data, int at) {
        return (int) LITTLE_32.get(data, at);
    }
}
