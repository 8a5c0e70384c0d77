package twoefay.phone;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.cert.X509Certificate;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManager;

/**
 * HTTP/1.1 over TLS, with nothing but sockets.
 *
 * <p>Not {@code HttpsURLConnection}: it sends a request again by itself, and the relay takes the
 * second use of a proof as a fault; and it loses the fields of a 401, which bring the nonce. A
 * connection has one request at a time, so a request beside a held one gets a connection of its
 * own.
 */
public final class SocketTransport implements Transport {
    private static final int CONNECT_MILLIS = 10_000;
    /** The relay ends a connection without a request after 180 seconds. */
    private static final long MOST_IDLE_NANOS = 60_000_000_000L;
    private static final int MOST_HEAD = 65_536;
    private static final int MOST_BODY = 4 << 20;

    private final Origin relay;
    private final Pinning trust;
    private final Deque<Connection> idle = new ArrayDeque<>();
    private final Set<Connection> open = new HashSet<>();

    public SocketTransport(Origin relay, Pinning trust) {
        this.relay = relay;
        this.trust = trust;
    }

    @Override
    public Answer send(Request request) throws IOException {
        Connection connection = take();
        try {
            Answer answer = connection.exchange(request);
            give(connection, "close".equalsIgnoreCase(answer.field("connection")));
            return answer;
        } catch (IOException noAnswer) {
            give(connection, true);
            throw noAnswer;
        }
    }

    @Override
    public synchronized void disconnect() {
        open.forEach(Connection::close);
        open.clear();
        idle.clear();
    }

    private Connection take() throws NotSent {
        synchronized (this) {
            while (!idle.isEmpty()) {
                Connection connection = idle.pop();
                if (System.nanoTime() - connection.idleSince < MOST_IDLE_NANOS) {
                    return connection;
                }
                open.remove(connection);
                connection.close();
            }
        }
        Connection connection = new Connection();
        synchronized (this) {
            open.add(connection);
        }
        return connection;
    }

    private synchronized void give(Connection connection, boolean isOver) {
        connection.idleSince = System.nanoTime();
        if (!isOver && open.contains(connection)) {
            idle.push(connection);
        } else {
            open.remove(connection);
            connection.close();
        }
    }

    private final class Connection implements Closeable {
        private final SSLSocket socket;
        private final InputStream in;
        private final X509Certificate certificate;
        private long idleSince;

        Connection() throws NotSent {
            Socket plain = new Socket();
            try {
                plain.setTcpNoDelay(true);
                plain.connect(new InetSocketAddress(relay.host, relay.port), CONNECT_MILLIS);
            } catch (IOException unreachable) {
                throw new NotSent(unreachable, false);
            }
            try {
                // A context of its own for each connection, so that no session is resumed: the
                // trust manager would not see the certificate of a resumed one.
                SSLContext context = SSLContext.getInstance("TLS");
                context.init(null, new TrustManager[] {trust}, null);
                socket = (SSLSocket) context.getSocketFactory().createSocket(plain, relay.host, relay.port, true);
                socket.setEnabledProtocols(Arrays.stream(socket.getSupportedProtocols())
                    .filter(name -> name.equals("TLSv1.3") || name.equals("TLSv1.2")).toArray(String[]::new));
                socket.setSoTimeout(CONNECT_MILLIS);
                socket.startHandshake();
                certificate = (X509Certificate) socket.getSession().getPeerCertificates()[0];
                in = new BufferedInputStream(socket.getInputStream());
            } catch (IOException refused) {
                closeQuietly(plain);
                throw new NotSent(refused, true);
            } catch (GeneralSecurityException missing) {
                closeQuietly(plain);
                throw new NotSent(new IOException(missing), true);
            }
        }

        Answer exchange(Request request) throws IOException {
            byte[] body = request.body == null ? new byte[0] : request.body.bytes();
            StringBuilder head = new StringBuilder();
            head.append(request.method).append(' ').append(request.path).append(" HTTP/1.1\r\n");
            head.append("host: ").append(relay.authority()).append("\r\n");
            if (request.body != null) {
                head.append("content-type: application/json\r\n");
                head.append("content-length: ").append(body.length).append("\r\n");
            }
            request.fields.forEach((name, value) -> head.append(name).append(": ").append(value).append("\r\n"));
            socket.setSoTimeout(request.timeoutMillis);
            // One write, so that the request leaves in one record.
            socket.getOutputStream().write(P256.joined(P256.utf8(head.append("\r\n").toString()), body));
            return answer();
        }

        private Answer answer() throws IOException {
            int[] left = {MOST_HEAD};
            String line = line(left);
            while (line.matches("HTTP/1\\.1 1\\d\\d .*")) {
                fields(left);
                line = line(left);
            }
            if (!line.matches("HTTP/1\\.[01] [2-5]\\d\\d( .*)?")) {
                throw new IOException("the answer is not HTTP/1.1");
            }
            int status = Integer.parseInt(line.substring(9, 12));
            Map<String, String> fields = fields(left);
            return new Answer(status, fields, body(status, fields), certificate);
        }

        private Map<String, String> fields(int[] left) throws IOException {
            Map<String, String> fields = new HashMap<>();
            for (String line = line(left); !line.isEmpty(); line = line(left)) {
                int colon = line.indexOf(':');
                if (colon < 1) {
                    throw new IOException("the answer has a malformed field");
                }
                fields.put(line.substring(0, colon).toLowerCase(Locale.ROOT), line.substring(colon + 1).trim());
            }
            return fields;
        }

        private byte[] body(int status, Map<String, String> fields) throws IOException {
            if (status == 204 || status == 304) {
                return new byte[0];
            }
            if ("chunked".equalsIgnoreCase(fields.get("transfer-encoding"))) {
                return chunks();
            }
            String length = fields.get("content-length");
            if (length == null || !length.matches("[0-9]{1,9}") || Integer.parseInt(length) > MOST_BODY) {
                throw new IOException("the answer has no length, or is too long");
            }
            return exactly(Integer.parseInt(length));
        }

        private byte[] chunks() throws IOException {
            ByteArrayOutputStream body = new ByteArrayOutputStream();
            int[] left = {MOST_HEAD};
            while (true) {
                String size = line(left).replaceFirst(";.*", "").trim();
                if (!size.matches("[0-9A-Fa-f]{1,7}") || body.size() + Integer.parseInt(size, 16) > MOST_BODY) {
                    throw new IOException("the answer has a malformed chunk");
                }
                int count = Integer.parseInt(size, 16);
                body.write(exactly(count), 0, count);
                if (count == 0) {
                    fields(left);
                    return body.toByteArray();
                }
                line(left);
            }
        }

        private byte[] exactly(int count) throws IOException {
            byte[] bytes = new byte[count];
            for (int position = 0; position < count; ) {
                int more = in.read(bytes, position, count - position);
                if (more < 0) {
                    throw new EOFException("the answer is incomplete");
                }
                position += more;
            }
            return bytes;
        }

        private String line(int[] left) throws IOException {
            ByteArrayOutputStream line = new ByteArrayOutputStream();
            for (int each = in.read(); each != '\n'; each = in.read()) {
                if (each < 0) {
                    throw new EOFException("the connection ended without an answer");
                }
                if (--left[0] < 0) {
                    throw new IOException("the head of the answer is too long");
                }
                line.write(each);
            }
            String text = new String(line.toByteArray(), StandardCharsets.ISO_8859_1);
            return text.endsWith("\r") ? text.substring(0, text.length() - 1) : text;
        }

        @Override
        public void close() {
            closeQuietly(socket);
        }
    }

    private static void closeQuietly(Socket socket) {
        try {
            socket.close();
        } catch (IOException alreadyClosed) {
            // There is nothing to save: the answer was read, or given up.
        }
    }
}
