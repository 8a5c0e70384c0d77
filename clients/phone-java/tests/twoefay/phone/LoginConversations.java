package twoefay.phone;

import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import twoefay.phone.Tests.Test;

/** Logins with a real relay: held requests, decisions, and what a website demands. */
final class LoginConversations {
    private static Website club;

    private LoginConversations() {}

    private static synchronized Website club() throws Exception {
        if (club == null) {
            club = RealRelay.shared().website("club", "--display-name", "The Club", "--guesses", "20");
        }
        return club;
    }

    private static String wrong(Json login) {
        return login.text("number").equals("12") ? "13" : "12";
    }

    @Test
    static void personApprovesWithTheNumber() throws Exception {
        Person ada = Person.enrolled(club(), "ada");
        Json login = club().login("ada");
        Challenge challenge = ada.challenge();
        Check.equal(login.text("challenge"), challenge.id);
        Check.equal("The Club ada members pay 192.0.2.7", String.join(" ", challenge.context.displayName,
            challenge.context.username, challenge.context.service, challenge.context.action, challenge.context.ip));
        Check.equal("12.00 EUR", challenge.context.details.get(0).value);
        Check.equal(2, challenge.context.numberDigits);
        Check.that(challenge.timeLeft.getSeconds() > 30, challenge.timeLeft);
        Decision decision = Decision.approve(login.text("number")).verifiedBy(Decision.Verification.PASSCODE, 0);
        Check.that(ada.phone.answer(challenge, decision), "not approved");
        Json outcome = club().outcome(login);
        Check.equal("success signed", outcome.text("login") + " " + outcome.text("proof"));
        // The receipt of the website covers exactly the bytes that were shown.
        Jws receipt = new Jws(outcome.text("receipt"));
        Check.that(receipt.isSignedBy(ada.keys.signingKey(ada.phone.enrolment.name).publicKey()), "not signed");
        Check.equal(Base64Url.encode(challenge.context.bytes), outcome.text("context"));
        Check.equal("passcode", receipt.claims.text("uv"));
    }

    @Test
    static void otherDecisionsEndTheLogin() throws Exception {
        Person bea = Person.enrolled(club(), "bea");
        Json denied = club().login("bea");
        Check.that(!bea.phone.answer(bea.challenge(), Decision.deny()), "denied");
        Check.equal("failure denied signed", club().result(denied));

        Json mistaken = club().login("bea");
        Check.that(!bea.phone.answer(bea.challenge(), Decision.approve(wrong(mistaken))), "wrong number");
        Check.equal("failure wrong_number signed", club().result(mistaken));

        // For a time the phone can only deny.
        Json next = club().login("bea");
        Challenge challenge = bea.challenge();
        Failure failure = Check.refused(429, "limited",
            () -> bea.phone.answer(challenge, Decision.approve(next.text("number"))));
        Check.that(failure.retryAfter > 0 && failure.retryAfter <= 5, failure.retryAfter);
        Check.that(!bea.phone.answer(challenge, Decision.deny()), "denied");
        Check.equal("failure denied signed", club().result(next));

        Json strange = club().login("bea");
        bea.phone.answer(bea.challenge(), Decision.fraud());
        Check.equal("failure fraud signed", club().result(strange));
        // A frozen user gets no challenges.
        Check.equal(0, bea.phone.pending(0, List.of()).known.size());
    }

    @Test
    static void lostAnswerCountsOnce() throws Exception {
        Person cora = Person.enrolled(club(), "cora");
        Json login = club().login("cora");
        cora.lost.add("/success");
        Check.that(cora.approve(login), "approved");
        Check.equal("success null signed", club().result(login));
        Json second = club().login("cora");
        cora.lost.add("/failure");
        Check.that(!cora.phone.answer(cora.challenge(second), Decision.deny()), "denied");
        Check.equal("failure denied signed", club().result(second));
    }

    /** The relay holds the request, and each change of the list completes it. */
    @Test
    static void heldRequestEndsWithEachChange() throws Exception {
        Person dora = Person.enrolled(club(), "dora");
        BlockingQueue<List<String>> shown = new LinkedBlockingQueue<>();
        BlockingQueue<Failure> ends = new LinkedBlockingQueue<>();
        Watcher watcher = new Watcher(dora.app, dora.phone, new Watcher.Screen() {
            @Override
            public void show(Phone.Pending pending) {
                shown.add(pending.known);
            }

            @Override
            public void waits(Failure failure, long millis) {}

            @Override
            public void ends(Failure failure) {
                ends.add(failure);
            }
        });
        Thread thread = new Thread(watcher);
        thread.start();
        Check.equal(List.of(), shown.take());
        for (int round = 0; round < 2; round++) {
            Json login = club().login("dora");
            await(shown, List.of(login.text("challenge")));
            // The answer goes over another connection than the request that is held.
            Check.that(dora.approve(login), "approved");
            Check.equal("success null signed", club().result(login));
            await(shown, List.of());
        }
        Json cancelled = club().login("dora");
        await(shown, List.of(cancelled.text("challenge")));
        club().call(204, "DELETE", "/challenge/" + cancelled.text("challenge"), null);
        await(shown, List.of());
        club().call(204, "DELETE", "/user/dora/devices/" + dora.phone.enrolment.device, null);
        Check.equal(Failure.Kind.UNBOUND, ends.take().kind);
        thread.join();

        Person elsa = Person.enrolled(club(), "elsa");
        Watcher stopped = new Watcher(elsa.app, elsa.phone, new Watcher.Screen() {
            @Override
            public void show(Phone.Pending pending) {
                shown.add(List.of("elsa"));
            }

            @Override
            public void waits(Failure failure, long millis) {}

            @Override
            public void ends(Failure failure) {
                ends.add(failure);
            }
        });
        Thread second = new Thread(stopped);
        second.start();
        await(shown, List.of("elsa"));
        stopped.stop();
        second.join();
        Check.equal(0, ends.size());
    }

    /** An answer may have the list of the former moment once more. */
    private static void await(BlockingQueue<List<String>> shown, List<String> expected) throws InterruptedException {
        while (!shown.take().equals(expected)) {
            Thread.onSpinWait();
        }
    }

    @Test
    static void verificationOfTheOwnerIsDemanded() throws Exception {
        Website strict = RealRelay.shared().website("strict", "--max-uv-age", "120", "--min-uv", "biometric");
        Person fay = Person.enrolled(strict, "fay");
        Json login = strict.login("fay");
        Challenge challenge = fay.challenge();
        Check.equal(120L, challenge.demands.mostVerificationAge);
        for (Decision decision : List.of(
            Decision.approve(login.text("number")),
            Decision.approve(login.text("number")).verifiedBy(Decision.Verification.PASSCODE, 0),
            Decision.approve(login.text("number")).verifiedBy(Decision.Verification.BIOMETRIC, 121))) {
            Check.equal(403, Check.fails(Failure.class, () -> fay.phone.answer(challenge, decision)).status);
        }
        Decision right = Decision.approve(login.text("number")).verifiedBy(Decision.Verification.BIOMETRIC, 120);
        Check.that(fay.phone.answer(challenge, right), "approved");
        Check.equal("success null signed", strict.result(login));
    }

    @Test
    static void postureIsDemanded() throws Exception {
        Website posture = RealRelay.shared().website("posture", "--screen-lock", "on", "--min-os-android", "14");
        Person gina = new Person();
        gina.app.platform = "android";
        gina.enrol(posture.register("gina", null), null);
        Json login = posture.login("gina");
        Challenge challenge = gina.challenge();
        Check.that(challenge.demands.screenLock && challenge.demands.osVersion.equals("14"), "demands");
        Failure failure = Check.refused(403, "posture_unmet",
            () -> gina.phone.answer(challenge, Decision.approve(login.text("number"))));
        Check.that(failure.problem.list("unmet").contains("screen_lock"), failure.problem);
        Status status = new Status();
        status.osVersion = "15";
        status.screenLock = true;
        Check.that(gina.phone.answer(challenge, Decision.approve(login.text("number")).withPosture(status)), "approved");
    }

    @Test
    static void placeIsSentIfTheWebsiteAsks() throws Exception {
        Website near = RealRelay.shared().website("near", "--phone-place", "flag");
        Person hana = Person.enrolled(near, "hana");
        Json login = near.login("hana");
        Challenge challenge = hana.challenge();
        Check.that(challenge.asksPlace, "the website asks");
        hana.phone.answer(challenge, Decision.approve(login.text("number")).at(52.5163, 13.3777));
        Check.equal("52.5,13.4", new Jws(near.outcome(login).text("receipt")).claims.text("place"));
    }

    /** Refusals are in the language of the person. */
    @Test
    static void refusalIsInGerman() throws Exception {
        Website german = RealRelay.shared().website("german", "--min-uv", "passcode", "--number", "0");
        Person iris = Person.enrolled(german, "iris");
        iris.app.languages = "de-AT, de;q=0.8";
        german.login("iris");
        Failure failure = Check.fails(Failure.class, () -> iris.phone.answer(iris.challenge(), Decision.approve(null)));
        Check.that(failure.getMessage().contains("Die Website verlangt"), failure.getMessage());
    }
}
