package twoefay.phone;

import java.io.IOException;
import java.security.cert.X509Certificate;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * Sends requests to one relay.
 *
 * <p>{@link SocketTransport} speaks HTTP/1.1 and works on Android, too. An app that has an HTTP
 * library with HTTP/2 can use that instead. It must follow no redirect, retry nothing by itself,
 * keep no cache, resume no TLS session, and trust nothing but the trust manager that it is given.
 */
public interface Transport {
    /**
     * Makes a transport for a relay whose certificates {@code trust} checks, with its host name.
     */
    interface Maker {
        Transport make(Origin relay, Pinning trust);
    }

    /** The relay was not reached, or its certificate was refused: nothing was sent. */
    final class NotSent extends IOException {
        /** Whether TLS failed, which may be because the phone's clock is wrong. */
        final boolean isTls;

        public NotSent(IOException cause, boolean isTls) {
            super(cause.getMessage(), cause);
            this.isTls = isTls;
        }
    }

    final class Request {
        public final String method;
        public final String path;
        /** Null for a request without a body. */
        public final Json body;
        public final Map<String, String> fields = new LinkedHashMap<>();
        /** The time until the answer. */
        public int timeoutMillis = 10_000;

        Request(String method, String path, Json body) {
            this.method = method;
            this.path = path;
            this.body = body;
        }

        Request with(String name, String value) {
            Request changed = new Request(method, path, body);
            changed.fields.putAll(fields);
            changed.fields.put(name, value);
            changed.timeoutMillis = timeoutMillis;
            return changed;
        }
    }

    final class Answer {
        public final int status;
        public final byte[] body;
        /** The relay's certificate in the connection of this answer. */
        public final X509Certificate certificate;
        private final Map<String, String> fields = new LinkedHashMap<>();

        /** @param fields the names may have letters of either case */
        public Answer(int status, Map<String, String> fields, byte[] body, X509Certificate certificate) {
            this.status = status;
            this.body = body;
            this.certificate = certificate;
            fields.forEach((name, value) -> this.fields.put(name.toLowerCase(Locale.ROOT), value));
        }

        /** Returns a header field; null if it is missing. */
        String field(String name) {
            return fields.get(name);
        }
    }

    /**
     * Sends a request.
     *
     * @throws NotSent if the relay has certainly done nothing
     * @throws IOException if there is no answer, or an incomplete one
     */
    Answer send(Request request) throws IOException;

    /**
     * Ends all connections, also those that wait for an answer. The next request opens another one.
     */
    void disconnect();
}
