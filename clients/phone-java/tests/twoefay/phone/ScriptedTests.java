package twoefay.phone;

import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import twoefay.phone.Tests.Test;

/** What a phone does when answers are lost, late, or not what the protocol says. */
final class ScriptedTests {
    private static final String VERIFIED = "{\"login\":\"verified\",\"device\":\"d1\",\"revocation_code\":\"r1\"}";
    private static final String SUCCESS = "{\"login\":\"success\"}";

    /** A screen that notes what it shows. */
    private static final class Notes implements Enroller.Screen {
        final List<String> shown = new ArrayList<>();

        @Override
        public void waits(String number, String thumbprint) {
            shown.add("wait " + number + " " + thumbprint);
        }

        @Override
        public void bound(String revocationCode) {
            shown.add("bound " + revocationCode);
        }
    }

    private ScriptedTests() {}

    private static String pending(int count) {
        List<String> entries = new ArrayList<>();
        for (int index = 0; index < count; index++) {
            entries.add(ChallengeTests.entry("c" + index, ChallengeTests.context().toString()).toString());
        }
        return "{\"pending\":[" + String.join(",", entries) + "],\"time\":\"2026-11-21T10:04:31.002Z\"}";
    }

    private static Challenge challenge() throws Exception {
        return new Challenge(ChallengeTests.entry("c1", ChallengeTests.context().toString()), "shop", ChallengeTests.NOW);
    }

    // Enrolment

    @Test
    static void enrolmentIsRepeatedWithTheSameBytes() throws Exception {
        Script script = new Script();
        script.loses().answers(503, "{}").answers(200, "{\"login\":\"wait\",\"device\":\"d1\",\"number\":\"47\"}")
            .answers(429, "{\"code\":\"limited\"}", "retry-after", "9").answers(200, VERIFIED);
        String k = Base64Url.encode(new byte[32]);
        Enroller enroller = Enroller.begin(script.app, Script.activation("&k=" + k), "push", "Ada's phone");
        Notes notes = new Notes();
        Phone phone = enroller.run(notes);
        script.ended();
        for (Transport.Request request : script.requests) {
            Check.equal(script.body(0).toString(), request.body.toString());
        }
        Check.equal(List.of("wait 47 " + enroller.thumbprint(), "bound r1"), notes.shown);
        Check.equal(List.of(4_000L, 8_000L, 2_000L, 9_000L), script.clock.pauses);
        Json body = script.body(0);
        Check.equal("[id_token, dev_token, activation_code, proof, binding, name, platform]", body.names().toString());
        Check.equal("android", body.text("platform"));
        Json proof = new Jws(body.text("proof")).claims;
        Json binding = new Jws(body.text("binding")).claims;
        Check.equal(proof.object("agreement").toString(), binding.object("agreement").toString());
        Check.equal("https://login.example.com#shop", binding.text("aud"));
        // Code and k are deleted, and the revocation code is not stored.
        Enrolment stored = script.store.only();
        Check.equal("d1", stored.device);
        Check.that(stored.activationCode == null && stored.websiteKey == null, "deleted");
        Check.that(!stored.json().toString().contains("r1\""), stored.json());
        Check.equal("d1", phone.enrolment.device);
    }

    @Test
    static void whatIsMissingIsLeftOut() throws Exception {
        Script script = new Script().answers(200, VERIFIED);
        script.keys.hasAgreement = false;
        script.keys.attestation = List.of(script.server.certificate);
        Enroller.begin(script.app, Script.activation(""), null, null).run(new Notes());
        Check.equal("[id_token, activation_code, proof, attestation, platform]", script.body(0).names().toString());
        Check.equal("[v, aud, id_token, activation_code, iat]", script.claims(0, "proof").names().toString());
        Json attestation = script.body(0).object("attestation");
        Check.equal("android-key", attestation.text("format"));
        Check.equal(List.of(Base64Url.encode(script.server.certificate.getEncoded())), attestation.list("chain"));
        Check.equal(32, script.keys.challenge.length);
    }

    @Test
    static void enrolmentThatCannotBeginLeavesNothing() throws Exception {
        Script script = new Script();
        script.keys.fails = true;
        Activation activation = Script.activation("");
        Check.fails(Failure.class, () -> Enroller.begin(script.app, activation, null, null));
        Check.equal(0, script.keys.count());
        Check.equal(0, script.store.stored.size());
    }

    @Test
    static void interruptedEnrolmentGoesOnWithItsKey() throws Exception {
        Script script = new Script().loses().answers(200, VERIFIED);
        Enroller first = Enroller.begin(script.app, Script.activation(""), null, null);
        Check.equal(Failure.Kind.NO_ANSWER, Check.fails(Failure.class, () -> first.attempt(new Notes())).kind);
        Enroller second = new Enroller(script.app, script.store.only());
        Check.equal(first.thumbprint(), second.thumbprint());
        Check.equal("d1", second.run(new Notes()).enrolment.device);
    }

    @Test
    static void lostBindingIsDetected() throws Exception {
        Script script = new Script().loses().answers(401, "{\"code\":\"unauthenticated\"}")
            .answers(401, "{}", "dpop-nonce", "n1", "www-authenticate", "DPoP error=\"use_dpop_nonce\"")
            .answers(200, "{\"device\":\"d1\"}");
        Notes notes = new Notes();
        Phone phone = Enroller.begin(script.app, Script.activation(""), null, null).run(notes);
        Check.equal("d1", phone.enrolment.device);
        Check.equal(List.of(), notes.shown);
        Check.equal(List.of("/verify", "/verify", "/device", "/device"), script.paths());
        Check.equal("{\"certificate\":true}", script.body(3).toString());
        Json proof = new Jws(script.requests.get(3).fields.get("dpop")).claims;
        Check.equal("POST https://login.example.com/device n1",
            proof.text("htm") + " " + proof.text("htu") + " " + proof.text("nonce"));
    }

    @Test
    static void keyStaysUntilItIsCertainThatItIsNotBound() throws Exception {
        String[][] doubts = {
            {"500", ""}, {"429", ""}, {"401", "DPoP error=\"use_dpop_nonce\""}, {"403", ""},
        };
        for (String[] doubt : doubts) {
            Script script = new Script().answers(401, "{}")
                .answers(Integer.parseInt(doubt[0]), "{}", "www-authenticate", doubt[1]);
            Enroller enroller = Enroller.begin(script.app, Script.activation(""), null, null);
            Check.fails(Failure.class, () -> enroller.run(new Notes()));
            Check.equal(2, script.keys.count());
            Check.equal("c1", script.store.only().activationCode);
        }
        Script script = new Script().answers(401, "{}")
            .answers(401, "{}", "www-authenticate", "DPoP error=\"invalid_dpop_proof\"");
        Check.equal(null, Enroller.begin(script.app, Script.activation(""), null, null).run(new Notes()));
        Check.equal(0, script.keys.count());
        Check.equal(0, script.store.stored.size());
    }

    @Test
    static void oddAnswersOfTheEnrolmentAreRefused() throws Exception {
        String pem = "-----BEGIN CERTIFICATE-----\n"
            + java.util.Base64.getMimeEncoder().encodeToString(Script.shared().certificate.getEncoded())
            + "\n-----END CERTIFICATE-----\n";
        String escaped = pem.replace("\r", "").replace("\n", "\\n");
        for (String body : List.of(
            "{}", "[]", "{\"login\":\"maybe\"}", "{\"login\":\"verified\",\"device\":\"d1\"}",
            "{\"login\":\"verified\",\"device\":\"../x\",\"revocation_code\":\"r1\"}",
            "{\"login\":\"wait\",\"device\":\"d1\",\"number\":\"4 7\"}",
            VERIFIED.replace("}", ",\"certificate\":\"x\"}"), VERIFIED.replace("}", ",\"certificate\":\"" + escaped + "\"}"))) {
            Script script = new Script().answers(200, body);
            Enroller enroller = Enroller.begin(script.app, Script.activation(""), null, null);
            Failure failure = Check.fails(Failure.class, () -> enroller.run(new Notes()));
            Check.equal(Failure.Kind.UNBELIEVABLE, failure.kind);
            Check.equal(null, script.store.only().device);
        }
    }

    // Answers

    @Test
    static void unansweredDecisionIsSentAgainAsItWas() throws Exception {
        Script script = new Script().loses().answers(503, "{}")
            .answers(409, "{\"code\":\"already_decided\",\"login\":\"success\"}");
        Phone phone = script.bound();
        Check.that(phone.answer(challenge(), Decision.approve("47")), "approved");
        Check.equal(List.of("/success", "/success", "/success"), script.paths());
        Check.equal(script.body(0).toString(), script.body(2).toString());
        Check.equal(List.of(2_000L, 4_000L), script.clock.pauses);
        // A new proof each time, because the relay accepts none twice.
        Check.that(!script.requests.get(0).fields.get("dpop").equals(script.requests.get(2).fields.get("dpop")), "proofs");
    }

    @Test
    static void anothersDecisionIsNotTakenForOnesOwn() throws Exception {
        Script script = new Script().answers(409, "{\"code\":\"already_decided\",\"login\":\"success\"}");
        Phone phone = script.bound();
        Failure failure = Check.refused(409, "already_decided", () -> phone.answer(challenge(), Decision.deny()));
        Check.equal("success", failure.problem.text("login"));
    }

    @Test
    static void onlyWhatTheWebsiteAsksForIsSigned() throws Exception {
        Script script = new Script().answers(200, SUCCESS).answers(200, SUCCESS).answers(200, "{\"login\":\"failure\"}");
        Phone phone = script.bound();
        Status status = new Status();
        status.osVersion = "16";
        Decision all = Decision.approve("07").verifiedBy(Decision.Verification.PASSCODE, 3).at(52.5, 13.4).withPosture(status);
        phone.answer(challenge(), all.withPin("2580"));
        Check.equal("[v, aud, challenge, request, decision, number, context, nonce, uv, iat]",
            script.claims(0, "answer").names().toString());
        Json entry = ChallengeTests.entry("c1", ChallengeTests.context().toString()).put("asks_place", true)
            .put("demands", Json.read("{\"max_uv_age\":60,\"os_version\":\"15\",\"pin\":\"sign\"}"));
        phone.enrolment.pinSecret = new PinSecret(new byte[32]);
        phone.answer(new Challenge(entry, "shop", ChallengeTests.NOW), all);
        Json claims = script.claims(1, "answer");
        Check.equal("07 passcode 3 52.5,13.4 {\"os_version\":\"16\"}", String.join(" ", claims.text("number"), claims.text("uv"),
            claims.integer("uv_age") + "", claims.text("place"), claims.object("posture") + ""));
        String signature = script.body(1).text("answer").replaceFirst("\\.[^.]*$", ".") + script.body(1).text("pin_signature");
        Check.that(new Jws(signature).isSignedBy(phone.enrolment.pinSecret.pin("2580").publicKey), "by the PIN");
        Check.that(!phone.answer(new Challenge(entry, "shop", ChallengeTests.NOW), Decision.fraud()), "fraud");
        Check.equal("/failure", script.requests.get(2).path);
        Check.equal("[challenge, answer]", script.body(2).names().toString());
    }

    @Test
    static void textThatCannotBeTheNumberIsNotSent() throws Exception {
        Script script = new Script();
        Phone phone = script.bound();
        for (String number : new String[] {null, "", "4", "047", "4 7", "４７", "4a"}) {
            Failure failure = Check.fails(Failure.class, () -> phone.answer(challenge(), Decision.approve(number)));
            Check.equal(Failure.Kind.UNABLE, failure.kind);
        }
        Json none = ChallengeTests.entry("c1", ChallengeTests.context().put("number_digits", 0).toString());
        script.answers(200, SUCCESS);
        phone.answer(new Challenge(none, "shop", ChallengeTests.NOW), Decision.approve("47"));
        Check.equal(null, script.claims(0, "answer").text("number"));
    }

    // Polling

    @Test
    static void moreThanSixteenPendingArePolledSlowly() throws Exception {
        Script script = new Script().answers(200, pending(20)).answers(200, pending(20)).answers(401, "{}").answers(401, "{}");
        Phone phone = script.bound();
        List<Integer> shown = new ArrayList<>();
        List<Failure> ends = new ArrayList<>();
        new Watcher(script.app, phone, new Watcher.Screen() {
            @Override
            public void show(Phone.Pending pending) {
                shown.add(pending.challenges.size());
            }

            @Override
            public void waits(Failure failure, long millis) {}

            @Override
            public void ends(Failure failure) {
                ends.add(failure);
            }
        }).run();
        Check.equal(List.of(20, 20), shown);
        Check.equal(null, script.body(0).list("known"));
        Check.equal(16, script.body(1).list("known").size());
        Check.equal("wait=60", script.requests.get(1).fields.get("prefer"));
        // An answer that came at once and has nothing new.
        Check.equal(List.of(2_000L), script.clock.pauses);
        Check.equal(401, ends.get(0).status);
        Check.equal(2, script.keys.count());
    }

    @Test
    static void refusedChallengesAreKnownToo() throws Exception {
        String bad = pending(2).replaceFirst("\"context\":\"[^\"]*\"", "\"context\":\"e30\"");
        Script script = new Script().answers(200, bad);
        Phone.Pending pending = script.bound().pending(0, List.of());
        Check.equal(List.of("c0", "c1"), pending.known);
        Check.equal("c0", pending.refused.get(0).id);
        Check.equal("c1", pending.challenges.get(0).id);
        Check.equal("[pins, pins_seq]", script.body(0).names().toString());
    }

    @Test
    static void pollingBacksOff() throws Exception {
        Script script = new Script().answers(503, "{}").loses().answers(429, "{}", "retry-after", "7").loses().loses().loses()
            .answers(200, pending(1)).answers(503, "{}").answers(400, "{\"code\":\"invalid\"}");
        List<Long> waits = new ArrayList<>();
        new Watcher(script.app, script.bound(), new Watcher.Screen() {
            @Override
            public void show(Phone.Pending pending) {}

            @Override
            public void waits(Failure failure, long millis) {
                waits.add(millis);
            }

            @Override
            public void ends(Failure failure) {
                waits.add((long) failure.status);
            }
        }).run();
        Check.equal(List.of(2_000L, 4_000L, 7_000L, 16_000L, 30_000L, 30_000L, 2_000L, 400L), waits);
    }

    // Statements of the relay

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
        Script liar = new Script().answers(200, statement).answers(200, statement);
        Phone phone = liar.bound();
        Check.equal(Failure.Kind.UNBELIEVABLE, Check.fails(Failure.class, () -> phone.notices.read("m1")).kind);
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

    // The relay's time

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
        script.refusesTls().then(time(script, 400 * day)).answers(200, pending(0));
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
                script.then(time(script, stated[1] * hour)).answers(200, pending(0));
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
