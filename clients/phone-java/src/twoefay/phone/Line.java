package twoefay.phone;

import java.security.GeneralSecurityException;

/**
 * The requests of a bound phone, with what each of them needs: a proof, a repetition, or the end.
 */
final class Line {
    private static final long[] PAUSES = {2_000, 4_000, 8_000};

    final App app;
    final Enrolment enrolment;
    final Statements statements;
    final Relay relay;
    private final Keys.SigningKey key;
    /** The number of notices that no phone of the user has fetched, as the last answer said. */
    volatile int unread;

    Line(App app, Enrolment enrolment) throws Failure {
        if (!enrolment.isBound()) {
            throw Failure.unable("the phone is not bound yet");
        }
        this.app = app;
        this.enrolment = enrolment;
        try {
            key = app.keys.signingKey(enrolment.name);
        } catch (GeneralSecurityException noKey) {
            throw Failure.unable(noKey);
        }
        statements = new Statements(enrolment, key);
        relay = new Relay(app, enrolment, statements);
    }

    /**
     * Sends the same request again after 2, 4 and 8 seconds, if no answer comes or the relay fails.
     */
    Json sendUntilAnswered(Transport.Request request, boolean[] isRepeated) throws Failure, InterruptedException {
        for (long pause : PAUSES) {
            try {
                return Answers.accepted(call(request));
            } catch (Failure failure) {
                if (failure.status == 429 || !failure.mayPass()) {
                    throw failure;
                }
            }
            isRepeated[0] = true;
            app.clock.pause(pause);
        }
        return Answers.accepted(call(request));
    }

    /**
     * Leaves, or only asks whether the phone was unbound. Returns null if it is bound. The
     * statement is checked: after it, the keys may be deleted.
     */
    Farewell goodbye(boolean leaves) throws Failure {
        String nonce = app.nonce();
        Json body;
        try {
            body = new Json().put("goodbye", statements.goodbye(leaves, nonce, relay.seconds()));
        } catch (GeneralSecurityException noKey) {
            throw Failure.unable(noKey);
        }
        Transport.Request request = new Transport.Request("POST", "/device/goodbye", body);
        Relay.Call call = () -> relay.send(request);
        Json claims;
        try {
            claims = relay.statement(call, "farewell", "twoefay-farewell+jwt");
        } catch (Failure noAnswer) {
            if (!noAnswer.mayPass() || noAnswer.status != 0) {
                throw noAnswer;
            }
            // A relay that learns late that the phone was unbound ends its connections, also this
            // one.
            claims = relay.statement(call, "farewell", "twoefay-farewell+jwt");
        }
        return claims == null ? null : new Farewell(claims, enrolment, key.publicKey(), nonce);
    }

    /**
     * Sends a request with a proof. After a 401 it asks whether the phone was unbound, and deletes
     * the keys if the relay signs this. A suspended phone keeps them: it may be resumed.
     */
    Transport.Answer call(Transport.Request request) throws Failure {
        Transport.Answer answer = relay.prove(request);
        if (answer.status != 401) {
            String count = answer.field("x-messagecount");
            unread = count != null && count.matches("[0-9]{1,9}") ? Integer.parseInt(count) : 0;
            return answer;
        }
        Farewell farewell;
        try {
            farewell = goodbye(false);
        } catch (Failure unknown) {
            return answer;
        }
        if (farewell != null) {
            app.forget(enrolment);
            throw new Failure.Unbound(farewell);
        }
        return answer;
    }
}
