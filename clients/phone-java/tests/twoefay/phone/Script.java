package twoefay.phone;

import java.io.IOException;
import java.security.Signature;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A relay that is a list of answers, and notes the requests. */
final class Script implements Transport.Maker {
    interface Step {
        Transport.Answer answer(Transport.Request request) throws Exception;
    }

    final List<Transport.Request> requests = new ArrayList<>();
    final MemoryStore store = new MemoryStore();
    final SoftwareKeys keys = new SoftwareKeys();
    final TestClock clock = new TestClock();
    final App app = new App(keys, store);
    private final Deque<Step> steps = new ArrayDeque<>();
    /** The certificate that the connections have. */
    Certificates.Holder server;
    int disconnections;

    Script() throws Exception {
        app.transports = this;
        app.clock = clock;
        server = shared();
    }

    private static Certificates.Holder shared;

    static synchronized Certificates.Holder shared() throws Exception {
        if (shared == null) {
            shared = Certificates.server(Certificates.authority(), "DNS:login.example.com");
        }
        return shared;
    }

    Script then(Step step) {
        steps.add(step);
        return this;
    }

    Script answers(int status, String body, String... fields) {
        return then(request -> reply(status, body, fields));
    }

    Script loses() {
        return then(request -> {
            throw new IOException("the connection was lost");
        });
    }

    Script refusesTls() {
        return then(request -> {
            throw new Transport.NotSent(new IOException("the certificate has expired"), true);
        });
    }

    Transport.Answer reply(int status, String body, String... fields) {
        Map<String, String> all = new HashMap<>();
        for (int index = 0; index < fields.length; index += 2) {
            all.put(fields[index], fields[index + 1]);
        }
        return new Transport.Answer(status, all, body.getBytes(java.nio.charset.StandardCharsets.UTF_8), server.certificate);
    }

    /** Returns a statement that a certificate's key has signed. */
    static String signed(String type, Json claims, Certificates.Holder by) throws Exception {
        return signed(type, claims, by, by);
    }

    /** The same, but the header names another certificate. */
    static String signed(String type, Json claims, Certificates.Holder by, Certificates.Holder named) throws Exception {
        String thumbprint = Base64Url.encode(P256.sha256(named.certificate.getEncoded()));
        Json header = new Json().put("alg", "ES256").put("typ", type).put("x5t#S256", thumbprint);
        String input = Base64Url.encode(header.bytes()) + "." + Base64Url.encode(claims.bytes());
        Signature signature = Signature.getInstance("SHA256withECDSA");
        signature.initSign(by.key);
        signature.update(input.getBytes());
        return input + "." + Base64Url.encode(Der.raw(signature.sign(), 32));
    }

    @Override
    public Transport make(Origin relay, Pinning trust) {
        return new Transport() {
            @Override
            public Answer send(Request request) throws IOException {
                requests.add(request);
                Step step = steps.poll();
                Check.that(step != null, "one request too many: " + request.path);
                try {
                    return step.answer(request);
                } catch (IOException | RuntimeException | Error thrown) {
                    throw thrown;
                } catch (Exception thrown) {
                    throw new AssertionError(thrown);
                }
            }

            @Override
            public void disconnect() {
                disconnections += 1;
            }
        };
    }

    void ended() {
        Check.equal(0, steps.size());
    }

    List<String> paths() {
        List<String> paths = new ArrayList<>();
        requests.forEach(request -> paths.add(request.path));
        return paths;
    }

    Json body(int index) {
        return requests.get(index).body;
    }

    Json claims(int index, String member) throws Exception {
        return new Jws(body(index).text(member)).claims;
    }

    static Activation activation(String more) throws Exception {
        return new Activation("twoefay://enrol?relay=https%3A%2F%2Flogin.example.com&website=shop&token=t1&code=c1&pin="
            + Pinning.pin(shared().certificate) + more);
    }

    /** Returns a phone that is bound, and stored so. */
    Phone bound() throws Exception {
        Enrolment enrolment = new Enrolment("e", activation(""), null, null);
        keys.createSigningKey("e", null);
        keys.createAgreementKey("e");
        enrolment.device = "d1";
        enrolment.activationCode = null;
        store.save(enrolment);
        return new Phone(app, enrolment);
    }

    /** Returns an answer of {@code /pending} with so many challenges. */
    static String pending(int count) {
        List<String> entries = new ArrayList<>();
        for (int index = 0; index < count; index++) {
            entries.add(ChallengeTests.entry("c" + index, ChallengeTests.context().toString()).toString());
        }
        return "{\"pending\":[" + String.join(",", entries) + "],\"time\":\"2026-11-21T10:04:31.002Z\"}";
    }

    static Challenge challenge() throws Exception {
        return new Challenge(ChallengeTests.entry("c1", ChallengeTests.context().toString()), "shop", ChallengeTests.NOW);
    }
}
