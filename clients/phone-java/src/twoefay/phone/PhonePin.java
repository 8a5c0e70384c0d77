package twoefay.phone;

import java.security.GeneralSecurityException;

/** The PIN of a phone. The relay alone notices a wrong one. */
public final class PhonePin {
    private final Line line;

    PhonePin(Line line) {
        this.line = line;
    }

    public PinState state() throws Failure {
        return new PinState(Answers.accepted(line.call(new Transport.Request("GET", "/device/pin", null))));
    }

    /**
     * Prepares a change of the PIN. The secret of the first one is stored before anything is sent.
     *
     * @param proof the present PIN, the PUK or the code of the help desk, as {@code kind} needs it
     */
    public PinChange prepare(PinChange.Kind kind, String proof, String newPin) throws Failure {
        long version = state().version + 1;
        if (line.enrolment.pinSecret == null) {
            line.enrolment.pinSecret = PinSecret.random(line.app.random);
            line.app.save(line.enrolment);
        }
        try {
            String puk = kind == PinChange.Kind.CHANGE ? null : PinSecret.newPuk(line.app.random);
            return new PinChange(
                kind, proof, newPin, puk, version, line.enrolment.pinSecret, line.statements, line.relay.seconds());
        } catch (GeneralSecurityException noKey) {
            throw Failure.unable(noKey);
        }
    }

    /**
     * Sends a change. After a failure that may pass, send the same object again: it counts once.
     */
    public PinState send(PinChange change) throws Failure, InterruptedException {
        Transport.Request request = new Transport.Request("POST", "/device/pin", change.body);
        return new PinState(line.sendUntilAnswered(request, new boolean[1]));
    }
}
