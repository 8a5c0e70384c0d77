package twoefay.phone;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.util.ArrayList;
import java.util.List;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;
import twoefay.phone.Tests.Test;

/** HTTP/1.1 with a server that answers exactly these bytes. */
final class TransportTests {
    private static Certificates.Holder root;
    private static Certificates.Holder server;

    private TransportTests() {}

    /** Serves one connection for each list of answers, and notes the requests. */
    private static final class Server implements AutoCloseable {
        final List<String> requests = new ArrayList<>();
        final SSLServerSocket socket;
        final Thread thread;

        Server(List<List<String>> connections) throws Exception {
            if (server == null) {
                root = Certificates.authority();
                server = Certificates.server(root, "DNS:localhost,IP:127.0.0.1");
            }
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(null, null);
            store.setKeyEntry("server", server.key, new char[0], new Certificate[] {server.certificate, root.certificate});
            KeyManagerFactory keys = KeyManagerFactory.getInstance("PKIX");
            keys.init(store, new char[0]);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(keys.getKeyManagers(), null, null);
            socket = (SSLServerSocket) context.getServerSocketFactory()
                .createServerSocket(0, 5, InetAddress.getLoopbackAddress());
            thread = new Thread(() -> connections.forEach(this::serve));
            thread.start();
        }

        private void serve(List<String> answers) {
            try (SSLSocket connection = (SSLSocket) socket.accept()) {
                for (String answer : answers) {
                    requests.add(request(connection.getInputStream()));
                    connection.getOutputStream().write(answer.getBytes(java.nio.charset.StandardCharsets.UTF_8));
                }
            } catch (IOException refused) {
                requests.add(refused.getMessage());
            }
        }

        private static String request(InputStream in) throws IOException {
            StringBuilder text = new StringBuilder();
            while (text.indexOf("\r\n\r\n") < 0) {
                int next = in.read();
                if (next < 0) {
                    throw new IOException("closed");
                }
                text.append((char) next);
            }
            int start = text.indexOf("content-length: ");
            int count = start < 0 ? 0 : Integer.parseInt(text.substring(start + 16, text.indexOf("\r", start)));
            return text + new String(in.readNBytes(count));
        }

        SocketTransport transport(Certificates.Holder pinned) {
            Origin origin = Origin.read("https://127.0.0.1:" + socket.getLocalPort());
            List<String> pins = List.of(Pinning.pin(pinned.certificate));
            return new SocketTransport(origin, new Pinning("127.0.0.1", () -> pins, System::currentTimeMillis));
        }

        @Override
        public void close() throws Exception {
            socket.close();
            thread.join();
        }
    }

    private static Transport.Request get() {
        return new Transport.Request("GET", "/time", null);
    }

    @Test
    static void answersAreReadOverOneConnection() throws Exception {
        try (Server server = new Server(List.of(List.of(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDPoP-Nonce:  n1 \r\n\r\n{}",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 401 \r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\n{\"a\r\n5\r\n\":\"é\r\n2\r\n\"}\r\n0\r\n\r\n",
            "HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
            List.of("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")))) {
            SocketTransport transport = server.transport(root);
            Transport.Answer first = transport.send(new Transport.Request("POST", "/verify", new Json().put("a", "é")));
            Check.equal("200 n1 {}", first.status + " " + first.field("dpop-nonce") + " " + new String(first.body));
            Check.equal(TransportTests.server.certificate, first.certificate);
            Check.equal(204, transport.send(get()).status);
            Check.equal("é", Json.read(transport.send(get().with("dpop", "p")).body).text("a"));
            Check.equal(503, transport.send(get()).status);
            Check.equal(200, transport.send(get()).status);
            transport.disconnect();
            Check.that(server.requests.get(0).startsWith("POST /verify HTTP/1.1\r\nhost: 127.0.0.1:"), server.requests.get(0));
            Check.that(server.requests.get(0).contains("\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{\"a\":\""),
                server.requests.get(0));
            Check.that(server.requests.get(2).endsWith("\r\ndpop: p\r\n\r\n"), server.requests.get(2));
        }
    }

    @Test
    static void incompleteAnswerIsNoAnswer() throws Exception {
        for (String answer : List.of(
            "", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", "HTTP/1.1 200 OK\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "SSH-2.0\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 200 OK\r\n" + "a: b\r\n".repeat(20_000),
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n")) {
            try (Server server = new Server(List.of(List.of(answer)))) {
                IOException thrown = Check.fails(IOException.class, () -> server.transport(root).send(get()));
                Check.that(!(thrown instanceof Transport.NotSent), thrown);
            }
        }
    }

    @Test
    static void nothingIsSentToAnotherServer() throws Exception {
        try (Server server = new Server(List.of(List.of("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")))) {
            Certificates.Holder other = Certificates.authority();
            Transport.NotSent refused = Check.fails(Transport.NotSent.class, () -> server.transport(other).send(get()));
            Check.that(refused.isTls && refused.getMessage().contains("pinned authority"), refused.getMessage());
            server.thread.join();
            Check.that(!server.requests.get(0).contains("GET"), server.requests);
        }
        Origin nobody = Origin.read("https://127.0.0.1:1");
        Pinning trust = new Pinning("127.0.0.1", List::of, System::currentTimeMillis);
        Check.that(!Check.fails(Transport.NotSent.class, () -> new SocketTransport(nobody, trust).send(get())).isTls, "TLS");
    }
}
