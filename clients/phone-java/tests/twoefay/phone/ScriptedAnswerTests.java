package twoefay.phone;

import java.util.ArrayList;
import java.util.List;
import twoefay.phone.Tests.Test;

/** Polling and answering with a relay that is busy, or loses answers. */
final class ScriptedAnswerTests {
    private static final String SUCCESS = "{\"login\":\"success\"}";

    private ScriptedAnswerTests() {}

    @Test
    static void unansweredDecisionIsSentAgainAsItWas() throws Exception {
        Script script = new Script().loses().answers(503, "{}")
            .answers(409, "{\"code\":\"already_decided\",\"login\":\"success\"}");
        Phone phone = script.bound();
        Check.that(phone.answer(Script.challenge(), Decision.approve("47")), "approved");
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
        Failure failure = Check.refused(409, "already_decided", () -> phone.answer(Script.challenge(), Decision.deny()));
        Check.equal("success", failure.problem.text("login"));
    }

    @Test
    static void onlyWhatTheWebsiteAsksForIsSigned() throws Exception {
        Script script = new Script().answers(200, SUCCESS).answers(200, SUCCESS).answers(200, "{\"login\":\"failure\"}");
        Phone phone = script.bound();
        Status status = new Status();
        status.osVersion = "16";
        Decision all = Decision.approve("07").verifiedBy(Decision.Verification.PASSCODE, 3).at(52.5, 13.4).withPosture(status);
        phone.answer(Script.challenge(), all.withPin("2580"));
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
            Failure failure = Check.fails(Failure.class, () -> phone.answer(Script.challenge(), Decision.approve(number)));
            Check.equal(Failure.Kind.UNABLE, failure.kind);
        }
        Json none = ChallengeTests.entry("c1", ChallengeTests.context().put("number_digits", 0).toString());
        script.answers(200, SUCCESS);
        phone.answer(new Challenge(none, "shop", ChallengeTests.NOW), Decision.approve("47"));
        Check.equal(null, script.claims(0, "answer").text("number"));
    }

    @Test
    static void moreThanSixteenPendingArePolledSlowly() throws Exception {
        Script script = new Script().answers(200, Script.pending(20)).answers(200, Script.pending(20)).answers(401, "{}").answers(401, "{}");
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
        String bad = Script.pending(2).replaceFirst("\"context\":\"[^\"]*\"", "\"context\":\"e30\"");
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
            .answers(200, Script.pending(1)).answers(503, "{}").answers(400, "{\"code\":\"invalid\"}");
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
}
