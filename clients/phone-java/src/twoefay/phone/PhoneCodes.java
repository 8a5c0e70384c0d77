package twoefay.phone;

import java.security.GeneralSecurityException;

/** The codes that a phone shows, for a login when it has no connection. */
public final class PhoneCodes {
    private final Line line;

    PhoneCodes(Line line) {
        this.line = line;
    }

    /**
     * Fetches the secret of codes, and stores it.
     *
     * @param pin the PIN, if approvals demand it; null otherwise
     */
    public void fetch(String pin) throws Failure {
        Enrolment enrolment = line.enrolment;
        Keys.AgreementKey agreement;
        Json body;
        try {
            agreement = line.app.keys.agreementKey(enrolment.name);
            if (agreement == null) {
                throw Failure.unable("the phone was bound without a key for secrets: bind it again");
            }
            // The relay answers no request twice, so each one is later than the one before.
            enrolment.secretRequestedAt = Math.max(line.relay.seconds(), enrolment.secretRequestedAt + 1);
            line.app.save(enrolment);
            String request = line.statements.secretRequest(agreement.publicKey(), enrolment.secretRequestedAt);
            boolean isSigned = pin != null && enrolment.pinSecret != null;
            body = new Json()
                .put("request", request)
                .put("pin_signature", isSigned ? enrolment.pinSecret.pin(pin).signature(request) : null);
        } catch (GeneralSecurityException noKey) {
            throw Failure.unable(noKey);
        }
        Json answer = Answers.accepted(line.call(new Transport.Request("POST", "/device/totp", body)));
        try {
            String factor = Answers.id(answer, "factor");
            enrolment.codes = Totp.open(String.valueOf(answer.text("secret")), factor, enrolment, agreement);
        } catch (GeneralSecurityException | Json.Malformed notForUs) {
            throw Failure.unbelievable(notForUs.getMessage());
        }
        line.app.save(enrolment);
    }

    /** Corrects the clock, by which codes count. An app that shows codes does this once a day. */
    public void correctClock() throws Failure {
        Transport.Answer answer = line.call(new Transport.Request("GET", "/recovery", null));
        Answers.accepted(answer);
        line.relay.isCorrectedBy(answer, 2_000);
    }

    /** The code that counts now by the relay's clock; null before {@link #fetch}. */
    public String code() throws Failure {
        try {
            return line.enrolment.codes == null ? null : line.enrolment.codes.code(line.relay.now());
        } catch (GeneralSecurityException missing) {
            throw Failure.unable(missing);
        }
    }

    public int secondsLeft() {
        return line.enrolment.codes == null ? 0 : line.enrolment.codes.secondsLeft(line.relay.now());
    }
}
