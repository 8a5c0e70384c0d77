package twoefay.phone;

import java.security.GeneralSecurityException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/**
 * A bound phone: everything that it asks of its relay.
 *
 * <p>Each call blocks, and may wait for the person if the key needs a check of the owner. Call it
 * on a thread of its own. Several threads may call at once, such as one that holds {@link #pending}
 * and another one that answers.
 */
public final class Phone {
    /** The most challenges that a request may name as known. */
    static final int MOST_KNOWN = 16;
    private static final int LONGEST_WAIT = 60;

    /** The challenges that are pending now. One that is missing here has ended. */
    public static final class Pending {
        public final List<Challenge> challenges = new ArrayList<>();
        /** The challenges that must not be shown: say so, with the reason. */
        public final List<Challenge.Refused> refused = new ArrayList<>();
        /** The ids of both: the next request names them as known. */
        public final List<String> known = new ArrayList<>();
        /** Why a statement about pins was not taken; null if there was none, or it was. */
        String pinsFault;
    }

    public final Enrolment enrolment;
    public final PhonePin pin;
    public final PhoneCodes codes;
    public final PhoneNotices notices;
    private final Line line;

    public Phone(App app, Enrolment enrolment) throws Failure {
        this.enrolment = enrolment;
        line = new Line(app, enrolment);
        pin = new PhonePin(line);
        codes = new PhoneCodes(line);
        notices = new PhoneNotices(line);
    }

    /** Ends the connections and with them the requests that wait. The phone can be used again. */
    public void disconnect() {
        line.relay.disconnect();
    }

    // Challenges

    /**
     * Returns the pending challenges.
     *
     * @param seconds how long the relay holds the request while exactly {@code known} are pending
     * @param known the ids of the last answer ({@link Pending#known})
     */
    public Pending pending(int seconds, Collection<String> known) throws Failure {
        Json body = new Json()
            .put("pins", new ArrayList<Object>(enrolment.pins))
            .put("pins_seq", enrolment.pinsSequence);
        Transport.Request request = new Transport.Request("POST", "/pending", body);
        if (seconds > 0) {
            int wait = Math.min(seconds, LONGEST_WAIT);
            List<Object> named = new ArrayList<>(known);
            body.put("known", named.subList(0, Math.min(named.size(), MOST_KNOWN)));
            request.fields.put("prefer", "wait=" + wait);
            request.timeoutMillis += 1000 * wait;
        }
        Json answer = Answers.accepted(line.call(request));
        Pending pending = new Pending();
        takePins(answer.text("pins"), pending);
        try {
            Instant now = Context.time(answer, "time");
            for (Object each : Answers.entries(answer, "pending")) {
                read((Json) each, now, pending);
            }
        } catch (Json.Malformed | ClassCastException malformed) {
            throw Failure.unbelievable(malformed.getMessage());
        }
        return pending;
    }

    private void read(Json entry, Instant now, Pending pending) {
        String id = Text.isId(entry.text("challenge")) ? entry.text("challenge") : null;
        if (id != null) {
            pending.known.add(id);
        }
        try {
            pending.challenges.add(new Challenge(entry, enrolment.website, now));
        } catch (Json.Malformed refused) {
            pending.refused.add(new Challenge.Refused(id, refused.getMessage()));
        }
    }

    private synchronized void takePins(String text, Pending pending) throws Failure {
        if (text == null) {
            return;
        }
        List<String> before = enrolment.pins;
        try {
            PinStatement statement = new PinStatement(text, enrolment, line.relay.seconds());
            enrolment.pins = statement.pins;
            enrolment.pinsSequence = statement.sequence;
        } catch (Json.Malformed | GeneralSecurityException refused) {
            pending.pinsFault = refused.getMessage();
            return;
        }
        // They are stored before a connection uses them.
        line.app.save(enrolment);
        if (!enrolment.pins.containsAll(before)) {
            line.relay.disconnect();
        }
    }

    /**
     * Signs and sends the person's decision. If no answer comes, it sends the same bytes again.
     *
     * @return whether the challenge is approved. After {@code approve}, false means that the number
     *     was wrong or that the website refuses the place; after the others it is as intended.
     */
    public boolean answer(Challenge challenge, Decision decision) throws Failure, InterruptedException {
        int digits = challenge.context.numberDigits;
        // A wrong number counts, so a text that cannot be the number is not sent.
        if (decision.isApproval() && digits > 0 && !String.valueOf(decision.number).matches("[0-9]{" + digits + "}")) {
            throw Failure.unable("the number has " + digits + " digits");
        }
        Json body = new Json().put("challenge", challenge.id);
        try {
            String statement = line.statements.decision(challenge, decision, line.relay.seconds());
            body.put("answer", statement);
            boolean hasPin = decision.pin != null && enrolment.pinSecret != null;
            if (decision.isApproval() && challenge.demandsPin() && hasPin) {
                body.put("pin_signature", enrolment.pinSecret.pin(decision.pin).signature(statement));
            }
        } catch (GeneralSecurityException noKey) {
            throw Failure.unable(noKey);
        }
        String login = String.valueOf(decide(decision.isApproval() ? "/success" : "/failure", body).text("login"));
        if (!login.equals("success") && !login.equals("failure")) {
            throw Failure.unbelievable("login is unknown");
        }
        return login.equals("success");
    }

    private Json decide(String path, Json body) throws Failure, InterruptedException {
        boolean[] isRepeated = {false};
        try {
            return line.sendUntilAnswered(new Transport.Request("POST", path, body), isRepeated);
        } catch (Failure failure) {
            // An earlier attempt has arrived: this is its result.
            if (isRepeated[0] && failure.is(409, "already_decided")) {
                return failure.problem;
            }
            throw failure;
        }
    }

    // The phone itself

    /**
     * Reports the state of the phone: after it was bound, at each start of the app, and when a
     * value changes. Of two reports the relay keeps the later one; if that is another one, because
     * this clock was ahead or both are of one second, it reports once more.
     */
    public void report(Status status) throws Failure {
        long now = line.relay.seconds();
        Json stored = report(status, now);
        try {
            long at = Context.time(stored, "reported_at").getEpochSecond();
            if (at > now || at == now && !status.isSame(Status.of(stored))) {
                report(status, at + 1);
            }
        } catch (Json.Malformed noTime) {
            throw Failure.unbelievable(noTime.getMessage());
        }
    }

    private Json report(Status status, long now) throws Failure {
        try {
            Json body = new Json().put("status", line.statements.status(status, now));
            Transport.Answer answer = line.call(new Transport.Request("POST", "/device/status", body));
            Json report = Answers.accepted(answer).object("report");
            return report == null ? new Json() : report;
        } catch (GeneralSecurityException noKey) {
            throw Failure.unable(noKey);
        }
    }

    /**
     * Sets the address at the push service. Empty: the relay no longer pushes, and the phone polls.
     */
    public void setPushToken(String pushToken) throws Failure {
        try {
            String statement = line.statements.pushToken(pushToken, line.relay.seconds());
            change(new Json().put("dev_token", statement));
        } catch (GeneralSecurityException noKey) {
            throw Failure.unable(noKey);
        }
        enrolment.pushToken = pushToken.isEmpty() ? null : pushToken;
        line.app.save(enrolment);
    }

    public void rename(String phoneName) throws Failure {
        change(new Json().put("name", phoneName));
        enrolment.phoneName = phoneName;
        line.app.save(enrolment);
    }

    private void change(Json body) throws Failure {
        Answers.accepted(line.call(new Transport.Request("POST", "/device", body)));
    }

    /**
     * Corrects the clock for this relay by its signed time, also to an earlier time. Only the
     * person may request this; say by how much it was wrong ({@link Enrolment#clockOffset}, in
     * milliseconds).
     */
    public void synchronise() throws Failure {
        line.relay.synchronise();
    }

    /** Leaves: the relay signs that the phone is unbound, and the keys are deleted. */
    public Farewell leave() throws Failure {
        Farewell farewell = line.goodbye(true);
        if (farewell == null) {
            throw Failure.unbelievable("the phone is still bound");
        }
        line.app.forget(enrolment);
        return farewell;
    }

    /** Unbinds a lost phone with the code that its person wrote down, from any phone. */
    public static void revoke(App app, Origin origin, String pin, String revocationCode) throws Failure {
        Relay.revoke(app, origin, pin, revocationCode);
    }
}
