package twoefay.phone;

import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.List;
import twoefay.phone.Tests.Test;

/** Statements of the relay, its time and its pins: which of them are believed. */
final class ScriptedRelayTests {
    private ScriptedRelayTests() {}

    private static String farewell(Script script, Transport.Request request, String... change) throws Exception {
        Jws goodbye = new Jws(request.body.text("goodbye"));
        Json claims = new Json().put("v", 1).put("aud", "https://login.example.com#shop").put("device", "d1")
            .put("thumbprint", P256.thumbprint(script.keys.signingKey("e").publicKey()))
            .put("nonce", goodbye.claims.text("nonce")).put("by", "website").put("time", "2026-11-21T10:04:47.250Z");
        String type = "twoefay-farewell+jwt";
        for (int index = 0; index < change.length; index += 2) {
            if (change[index].equals("typ")) {
                type = change[index + 1];
            } else {
                claims.put(change[index], change[index + 1]);
            }
        }
        return "{\"device\":\"d1\",\"farewell\":\"" + Script.signed(type, claims, script.server) + "\"}";
    }

    @Test
    static void unboundPhoneDeletesItsKeys() throws Exception {
        Script script = new Script();
        script.answers(401, "{}").then(request -> script.reply(200, farewell(script, request)));
        Phone phone = script.bound();
        Failure.Unbound unbound = Check.fails(Failure.Unbound.class, () -> phone.pending(0, List.of()));
        Check.equal("website", unbound.farewell.by);
        Check.equal(List.of("/pending", "/device/goodbye"), script.paths());
        Check.equal(false, script.claims(1, "goodbye").flag("leaves"));
        Check.equal(null, script.requests.get(1).fields.get("dpop"));
        Check.equal(0, script.keys.count());
        Check.equal(0, script.store.stored.size());
    }

    @Test
    static void farewellForAnotherPhoneIsNotBelieved() throws Exception {
        for (String[] change : new String[][] {
            {"device", "d2"}, {"nonce", "x"}, {"thumbprint", "x"}, {"aud", "https://login.example.com#bank"},
            {"typ", "twoefay-time+jwt"}, {"by", null}, {"time", "now"}, {"v", "1"},
        }) {
            Script script = new Script();
            script.then(request -> script.reply(200, farewell(script, request, change)));
            Phone phone = script.bound();
            Check.equal(Failure.Kind.UNBELIEVABLE, Check.fails(Failure.class, phone::leave).kind);
            Check.equal(2, script.keys.count());
        }
        Script bound = new Script().answers(200, "{\"device\":\"d1\",\"bound\":true}");
        Phone phone = bound.bound();
        Check.fails(Failure.class, phone::leave);
        Check.equal(2, bound.keys.count());
    }

    @Test
    static void statementOfANewCertificateIsFetchedOnceMore() throws Exception {
        Certificates.Holder next = Certificates.server(Certificates.authority(), "DNS:login.example.com");
        Json claims = new Json().put("v", 1).put("aud", "https://login.example.com#shop").put("id_token", "t1")
            .put("message", "m1").put("from", "website").put("title", "Prices").put("text", "New.\nThe Shop")
            .put("created_at", "2026-11-21T10:04:30.120Z");
        String statement = "{\"statement\":\"" + Script.signed("twoefay-message+jwt", claims, next) + "\"}";
        Script script = new Script();
        script.answers(200, statement).then(request -> {
            script.server = next;
            return script.reply(200, statement);
        });
        Check.equal("New.\nThe Shop", script.bound().notices.read("m1").text);
        Check.equal(1, script.disconnections);
        String misnamed = Script.signed("twoefay-message+jwt", claims, Script.shared(), next);
        for (String lie : List.of(statement, "{\"statement\":\"" + misnamed + "\"}", "{\"statement\":\"x\"}")) {
            Script liar = new Script().answers(200, lie).answers(200, lie);
            Phone phone = liar.bound();
            Check.equal(Failure.Kind.UNBELIEVABLE, Check.fails(Failure.class, () -> phone.notices.read("m1")).kind);
        }
        for (Object[] change : new Object[][] {
            {"id_token", "t2"}, {"message", "m2"}, {"from", "bank"}, {"title", "a\u202Eb"}, {"text", "a\u0007"}, {"v", 2},
        }) {
            Json other = Json.read(claims.toString()).put((String) change[0], change[1]);
            Script odd = new Script();
            odd.answers(200, "{\"statement\":\"" + Script.signed("twoefay-message+jwt", other, odd.server) + "\"}");
            Phone reader = odd.bound();
            Check.equal(Failure.Kind.UNBELIEVABLE, Check.fails(Failure.class, () -> reader.notices.read("m1")).kind);
        }
    }

    @Test
    static void laterReportIsReplaced() throws Exception {
        Script script = new Script();
        script.then(request -> {
            Instant later = Instant.ofEpochSecond(script.claims(0, "status").integer("iat") + 100);
            return script.reply(200, "{\"report\":{\"reported_at\":\"" + later + "\",\"os\":\"Other\"}}");
        }).then(request -> script.reply(200, "{\"report\":{\"reported_at\":\""
            + Instant.ofEpochSecond(script.claims(1, "status").integer("iat")) + "\",\"os\":\"Android\"}}"));
        Status status = new Status();
        status.os = "Android";
        script.bound().report(status);
        Check.equal(script.claims(0, "status").integer("iat") + 101, script.claims(1, "status").integer("iat"));
        script.ended();
    }

    @Test
    static void statedPinsAreStoredBeforeTheyAreUsed() throws Exception {
        Script script = new Script();
        String next = Base64Url.encode(new byte[32]);
        Phone phone = script.bound();
        long now = System.currentTimeMillis() / 1000;
        Json claims = new Json().put("v", 1).put("aud", "https://login.example.com").put("seq", 5)
            .put("pins", List.of(Pinning.pin(script.server.certificate), next)).put("iat", now).put("exp", now + 60);
        Keys.SigningKey authority = SoftwareKeys.signing(
            (java.security.interfaces.ECPublicKey) script.server.certificate.getPublicKey(), script.server.key, List.of());
        String statement = Jws.sign("twoefay-pins+jwt", "jwk", P256.jwk(authority.publicKey()), claims, authority);
        String answer = "{\"pending\":[],\"time\":\"2026-11-21T10:04:31.002Z\",\"pins\":\"" + statement + "\"}";
        script.answers(200, answer).answers(200, answer);
        Check.equal(null, phone.pending(0, List.of()).pinsFault);
        Check.equal(List.of(Pinning.pin(script.server.certificate), next), script.store.only().pins);
        Check.equal(5L, script.store.only().pinsSequence);
        Check.equal("a later one was taken before", phone.pending(0, List.of()).pinsFault);
        Check.equal(5L, script.body(1).integer("pins_seq"));
        Check.equal(2, script.body(1).list("pins").size());
    }

    private static Script.Step time(Script script, long offset, String... change) {
        return request -> {
            Json claims = new Json().put("v", 1).put("aud", "https://login.example.com")
                .put("nonce", request.fields.get("nonce"))
                .put("time", Instant.ofEpochMilli(script.clock.now() + offset).toString());
            for (int index = 0; index < change.length; index += 2) {
                claims.put(change[index], change[index + 1]);
            }
            return script.reply(200, "{\"time\":\"" + Script.signed("twoefay-time+jwt", claims, script.server) + "\"}");
        };
    }

    @Test
    static void clockThatIsBehindIsCorrected() throws Exception {
        long day = 86_400_000;
        Script script = new Script();
        script.refusesTls().then(time(script, 400 * day)).answers(200, Script.pending(0));
        Phone phone = script.bound();
        phone.pending(0, List.of());
        Check.equal(List.of("/pending", "/time", "/pending"), script.paths());
        Check.that(Math.abs(script.store.only().clockOffset - 400 * day) < 20_000, script.store.only().clockOffset);
    }

    @Test
    static void clockThatIsAheadIsSetBackOnRequestOnly() throws Exception {
        long day = 86_400_000;
        Script script = new Script();
        script.refusesTls().then(time(script, -3 * day));
        Phone phone = script.bound();
        Failure failure = Check.fails(Failure.class, () -> phone.pending(0, List.of()));
        Check.that(failure.kind == Failure.Kind.NOT_SENT && failure.getMessage().contains("ahead"), failure.getMessage());
        Check.equal(0L, phone.enrolment.clockOffset);
        script.then(time(script, -3 * day)).then(time(script, -3 * day));
        phone.synchronise();
        Check.that(Math.abs(phone.enrolment.clockOffset + 3 * day) < 20_000, phone.enrolment.clockOffset);
        // The certificate is not valid at the time that the relay states.
        script.then(time(script, 9 * day)).refusesTls();
        Check.fails(Failure.class, phone::synchronise);
        Check.that(Math.abs(phone.enrolment.clockOffset + 3 * day) < 20_000, phone.enrolment.clockOffset);
    }

    @Test
    static void unbelievableTimeLeavesTheClock() throws Exception {
        for (String[] change : new String[][] {
            {"nonce", "AAAAAAAAAAAAAAAAAAAAAA"}, {"aud", "https://other.example.com"}, {"v", "1"}, {"time", "now"},
        }) {
            Script script = new Script();
            script.then(time(script, 9_000_000, change));
            Phone phone = script.bound();
            Check.fails(Failure.class, phone::synchronise);
            Check.equal(0L, phone.enrolment.clockOffset);
        }
        Script slow = new Script();
        slow.then(request -> {
            slow.clock.pause(10_001);
            return time(slow, 9_000_000).answer(request);
        });
        Phone phone = slow.bound();
        Check.fails(Failure.class, phone::synchronise);
        Script.Step other = request -> {
            Json claims = new Json().put("v", 1).put("aud", "https://login.example.com").put("nonce", request.fields.get("nonce"))
                .put("time", "2030-01-01T00:00:00Z");
            Certificates.Holder stranger = Certificates.authority();
            return slow.reply(200, "{\"time\":\"" + Script.signed("twoefay-time+jwt", claims, stranger) + "\"}");
        };
        slow.then(other);
        Check.fails(Failure.class, phone::synchronise);
        Check.equal(0L, phone.enrolment.clockOffset);
    }

    @Test
    static void dateOfARefusalIsAReasonToAsk() throws Exception {
        long hour = 3_600_000;
        for (long[] stated : new long[][] {{-48, -48, 1}, {48, 48, 1}, {-48, -60, 0}, {0, 0, 0}}) {
            Script script = new Script();
            String date = DateTimeFormatter.RFC_1123_DATE_TIME.format(
                Instant.ofEpochMilli(script.clock.now() + stated[0] * hour).atOffset(ZoneOffset.UTC));
            script.answers(401, "{}", "date", date);
            boolean isAsked = stated[0] != 0;
            boolean isTaken = stated[2] == 1;
            if (isAsked) {
                script.then(time(script, stated[1] * hour));
            }
            if (isTaken) {
                script.then(time(script, stated[1] * hour)).answers(200, Script.pending(0));
            } else {
                script.answers(401, "{}");
            }
            Phone phone = script.bound();
            if (isTaken) {
                phone.pending(0, List.of());
                long iat = new Jws(script.requests.get(3).fields.get("dpop")).claims.integer("iat");
                Check.that(Math.abs(iat - (script.clock.now() + stated[1] * hour) / 1000) < 30, iat);
            } else {
                Check.fails(Failure.class, () -> phone.pending(0, List.of()));
                Check.equal(0L, phone.enrolment.clockOffset);
            }
            script.ended();
        }
    }
}
