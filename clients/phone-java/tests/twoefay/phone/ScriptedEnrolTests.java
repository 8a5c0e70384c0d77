package twoefay.phone;

import java.util.ArrayList;
import java.util.List;
import twoefay.phone.Tests.Test;

/** Enrolments whose answers are lost, late, or not what the protocol says. */
final class ScriptedEnrolTests {
    private static final String VERIFIED = "{\"login\":\"verified\",\"device\":\"d1\",\"revocation_code\":\"r1\"}";

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

    private ScriptedEnrolTests() {}

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
}
