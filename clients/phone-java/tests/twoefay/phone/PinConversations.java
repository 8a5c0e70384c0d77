package twoefay.phone;

import java.util.List;
import twoefay.phone.Tests.Test;

/** The PIN and the codes of a phone with a real relay. */
final class PinConversations {
    private static Website bank;

    private PinConversations() {}

    private static synchronized Website bank() throws Exception {
        if (bank == null) {
            bank = RealRelay.shared().website("bank", "--number", "0", "--pin", "required", "--phone-codes", "again");
        }
        return bank;
    }

    private static String set(Person person, String pin) throws Exception {
        PinChange change = person.phone.pin.prepare(PinChange.Kind.SET, null, pin);
        Check.equal("set", person.phone.pin.send(change).state);
        return change.puk;
    }

    private static Decision approval(String pin) {
        return Decision.approve(null).withPin(pin);
    }

    @Test
    static void personLocksAndResetsThePin() throws Exception {
        Person ada = Person.enrolled(bank(), "ada");
        Phone phone = ada.phone;
        Json login = bank().login("ada");
        Challenge bare = ada.challenge();
        Check.equal("set", bare.demands.pin);
        Check.refused(403, "pin_required", () -> phone.answer(bare, Decision.approve(null)));
        Check.equal("none", phone.pin.state().state);

        String puk = set(ada, "258014736900");
        Check.that(PinSecret.isPuk(puk), puk);
        Check.equal("set", bank().device("ada", 0).text("pin"));
        // Nothing that was stored depends on the PIN or the PUK.
        String stored = ada.store.stored.toString();
        PinSecret.Key key = phone.enrolment.pinSecret.pin("258014736900");
        for (String text : List.of("258014736900", puk, P256.jwk(key.publicKey).text("x"))) {
            Check.that(!stored.contains(text), stored);
        }

        Challenge challenge = ada.challenge();
        Check.that(challenge.demandsPin(), challenge.demands.pin);
        for (long left = 2; left >= 1; left--) {
            Failure wrong = Check.refused(403, "pin_wrong", () -> phone.answer(challenge, approval("0000")));
            Check.equal(left, wrong.problem.integer("tries_left"));
        }
        Check.refused(403, "pin_locked", () -> phone.answer(challenge, approval("2222")));
        Check.refused(403, "pin_locked", () -> phone.answer(challenge, approval("258014736900")));
        Check.equal("locked", phone.pin.state().state);
        Check.equal("locked", ada.challenge().demands.pin);

        PinChange guessed = phone.pin.prepare(PinChange.Kind.RESET, "000000000000", "1357");
        Check.equal(4L, Check.refused(403, "puk_wrong", () -> phone.pin.send(guessed)).problem.integer("tries_left"));
        PinChange reset = phone.pin.prepare(PinChange.Kind.RESET, puk, "1357");
        Check.equal(5L, phone.pin.send(reset).pukTriesLeft);
        Check.that(!reset.puk.equals(puk), "the PUK is a new one");
        PinChange changed = phone.pin.prepare(PinChange.Kind.CHANGE, "1357", "8642");
        Check.equal(null, changed.puk);
        Check.equal(3L, phone.pin.send(changed).version);
        // The same change again is answered as the first time, and counts once.
        Check.equal(3L, phone.pin.send(changed).version);
        Check.that(phone.answer(ada.challenge(), approval("8642")), "approved");
        Check.equal("success null signed", bank().result(login));
    }

    @Test
    static void helpDeskUnlocksThePhone() throws Exception {
        Person bea = Person.enrolled(bank(), "bea");
        Phone phone = bea.phone;
        set(bea, "2580");
        Json login = bank().login("bea");
        for (String pin : List.of("0000", "1111", "2222")) {
            Check.equal(403, Check.fails(Failure.class, () -> phone.answer(bea.challenge(), approval(pin))).status);
        }
        PinChange early = phone.pin.prepare(PinChange.Kind.UNLOCK, "12345678", "8642");
        Check.refused(403, "unlock_void", () -> phone.pin.send(early));
        String code = Json.read(RealRelay.shared().operate("device", "unlock-code", phone.enrolment.device, "--json")).text("code");
        String other = code.equals("00000000") ? "00000001" : "00000000";
        PinChange wrong = phone.pin.prepare(PinChange.Kind.UNLOCK, other, "8642");
        Check.equal(4L, Check.refused(403, "unlock_wrong", () -> phone.pin.send(wrong)).problem.integer("tries_left"));
        String spoken = code.substring(0, 4) + " " + code.substring(4);
        PinChange unlock = phone.pin.prepare(PinChange.Kind.UNLOCK, spoken, "8642");
        Check.equal("set", phone.pin.send(unlock).state);
        Check.that(PinSecret.isPuk(unlock.puk), "a new PUK");
        Check.that(phone.answer(bea.challenge(), approval("8642")), "approved");
        Check.equal("success null signed", bank().result(login));
    }

    @Test
    static void lostAnswersOfThePinCountOnce() throws Exception {
        Person cora = Person.enrolled(bank(), "cora");
        cora.lost.add("/device/pin"); // of the state: asked for again by the person
        Check.fails(Failure.class, () -> cora.phone.pin.prepare(PinChange.Kind.SET, null, "2580"));
        PinChange set = cora.phone.pin.prepare(PinChange.Kind.SET, null, "2580");
        cora.lost.add("/device/pin");
        Check.equal(1L, cora.phone.pin.send(set).version);
        bank().login("cora");
        Challenge challenge = cora.challenge();
        cora.lost.add("/success");
        Failure wrong = Check.refused(403, "pin_wrong", () -> cora.phone.answer(challenge, approval("0000")));
        Check.equal(2L, wrong.problem.integer("tries_left"));
        Check.equal(2L, cora.phone.pin.state().triesLeft);
    }

    @Test
    static void unsuitableDigitsAreNotSent() throws Exception {
        Person dora = Person.enrolled(bank(), "dora");
        for (String pin : List.of("", "123", "1234567890123", "12a4", "１２３４", "12 34")) {
            Failure failure = Check.fails(Failure.class, () -> dora.phone.pin.prepare(PinChange.Kind.SET, null, pin));
            Check.equal(Failure.Kind.UNABLE, failure.kind);
        }
        for (PinChange.Kind kind : List.of(PinChange.Kind.CHANGE, PinChange.Kind.RESET, PinChange.Kind.UNLOCK)) {
            Check.fails(Failure.class, () -> dora.phone.pin.prepare(kind, "123", "2580"));
            Check.fails(Failure.class, () -> dora.phone.pin.prepare(kind, null, "2580"));
        }
        Check.equal("none", dora.phone.pin.state().state);
    }

    @Test
    static void codeOfThePhoneIsAccepted() throws Exception {
        Website codes = RealRelay.shared().website("codes", "--phone-codes", "again");
        Person elsa = Person.enrolled(codes, "elsa");
        Check.equal(null, elsa.phone.codes.code());
        elsa.phone.codes.fetch(null);
        elsa.phone.codes.fetch(null);
        elsa.phone.codes.correctClock();
        // After a restart, without a connection.
        String code = new Phone(elsa.app, elsa.store.only()).codes.code();
        Json checked = codes.call(200, "POST", "/verify-otp",
            new Json().put("username", "elsa").put("otp", code).toString());
        Check.that(checked.isTrue("valid") && "totp".equals(checked.text("factor")), checked);
        int left = elsa.phone.codes.secondsLeft();
        Check.that(left > 0 && left <= 30, left);
    }

    @Test
    static void secretNeedsThePinOfApprovals() throws Exception {
        Person fay = Person.enrolled(bank(), "fay");
        Check.refused(403, "pin_required", () -> fay.phone.codes.fetch(null));
        set(fay, "2580");
        Check.refused(403, "pin_wrong", () -> fay.phone.codes.fetch("0000"));
        fay.phone.codes.fetch("2580");
        Check.equal(6, fay.phone.codes.code().length());
    }

    @Test
    static void phoneWithoutASecondKeyGetsNoCodes() throws Exception {
        Person gina = new Person();
        gina.keys.hasAgreement = false;
        gina.enrol(bank().register("gina", null), null);
        Check.equal(Failure.Kind.UNABLE, Check.fails(Failure.class, () -> gina.phone.codes.fetch(null)).kind);
    }
}
