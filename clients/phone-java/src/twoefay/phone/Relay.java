package twoefay.phone;

import java.io.IOException;
import java.security.GeneralSecurityException;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.format.DateTimeFormatter;
import java.util.Collections;

/**
 * The requests of one enrolment to its relay: with a proof of the key (DPoP) where one is needed,
 * by the clock of the relay, and with answers that are read strictly.
 */
final class Relay {
    /** A difference of the clocks above which the phone asks for the relay's signed time. */
    private static final long TOLERANCE = 3_600_000;
    private static final long LONGEST_ROUND_TRIP = 10_000;

    interface Call {
        Transport.Answer send() throws Failure;
    }

    private final App app;
    private final Enrolment enrolment;
    private final Statements statements;
    private final Transport transport;
    /** The newest nonce of the relay for proofs; null before the first one. */
    private volatile String nonce;

    Relay(App app, Enrolment enrolment, Statements statements) {
        this.app = app;
        this.enrolment = enrolment;
        this.statements = statements;
        transport = transport(true);
    }

    /** Unbinds a lost phone by its revocation code. It needs no enrolment. */
    static void revoke(App app, Origin origin, String pin, String code) throws Failure {
        Pinning trust = new Pinning(origin.host, () -> Collections.singletonList(pin), app.clock::now);
        Transport transport = app.transports.make(origin, trust);
        try {
            Json body = new Json().put("revocation_code", code);
            Answers.accepted(transport.send(new Transport.Request("POST", "/revoke", body)));
        } catch (Transport.NotSent refused) {
            throw new Failure(Failure.Kind.NOT_SENT, refused.getMessage(), refused);
        } catch (IOException lost) {
            throw new Failure(Failure.Kind.NO_ANSWER, lost.getMessage(), lost);
        } finally {
            transport.disconnect();
        }
    }

    private Transport transport(boolean checksDates) {
        return app.transports.make(
            enrolment.relay, new Pinning(enrolment.relay.host, () -> enrolment.pins, checksDates ? this::now : null));
    }

    /** The time of the relay's clock in milliseconds, as far as the phone knows it. */
    long now() {
        return app.clock.now() + enrolment.clockOffset;
    }

    long seconds() {
        return now() / 1000;
    }

    void disconnect() {
        transport.disconnect();
    }

    // Requests

    /** Sends a request without a proof, and returns the answer, also a refusal. */
    Transport.Answer send(Transport.Request request) throws Failure {
        Transport.Request spoken = request.with("accept-language", app.languages);
        try {
            return transport.send(spoken);
        } catch (Transport.NotSent refused) {
            if (!refused.isTls) {
                throw new Failure(Failure.Kind.NOT_SENT, refused.getMessage(), refused);
            }
            return sendBySignedTime(spoken, refused);
        } catch (IOException lost) {
            throw new Failure(Failure.Kind.NO_ANSWER, lost.getMessage(), lost);
        }
    }

    /**
     * Sends a request with a proof, and once more if the relay wants a fresh nonce or another time.
     */
    Transport.Answer prove(Transport.Request request) throws Failure {
        boolean hasRepeated = false;
        boolean hasAskedForTime = false;
        while (true) {
            String used = nonce;
            Transport.Answer answer = send(request.with("dpop", proof(request, used)));
            String fresh = answer.field("dpop-nonce");
            nonce = fresh == null || fresh.isEmpty() ? used : fresh;
            if (answer.status != 401) {
                return answer;
            }
            if (!hasAskedForTime) {
                hasAskedForTime = true;
                if (isCorrectedBy(answer, TOLERANCE)) {
                    continue;
                }
            }
            if (hasRepeated || nonce == null || nonce.equals(used)) {
                return answer;
            }
            hasRepeated = true;
        }
    }

    private String proof(Transport.Request request, String used) throws Failure {
        try {
            return statements.dpop(request.method, request.path, app.nonce(), used, seconds());
        } catch (GeneralSecurityException noKey) {
            throw Failure.unable(noKey);
        }
    }

    // Statements that the relay signs

    /**
     * Sends a request and returns the claims of the statement in its answer; null if there is none.
     * If another certificate than that of the connection has signed it, the relay may have a new
     * one: the request is then sent once more over a new connection.
     */
    Json statement(Call call, String member, String type) throws Failure {
        Transport.Answer answer = call.send();
        String text = Answers.accepted(answer).text(member);
        if (text == null) {
            return null;
        }
        if (!Answers.isSigned(text, answer.certificate)) {
            transport.disconnect();
            answer = call.send();
            text = String.valueOf(Answers.accepted(answer).text(member));
        }
        return Answers.claims(text, answer.certificate, type, enrolment.audience());
    }

    // The relay's time

    /**
     * Corrects the clock by the signed time, also to an earlier time: only the person may request
     * it.
     */
    void synchronise() throws Failure {
        adopt(signedOffset());
    }

    /**
     * Returns the relay's clock minus the phone's clock in milliseconds, by the relay's signed
     * time. The connection is for this request alone, and the dates of its certificates are not
     * checked.
     */
    private long signedOffset() throws Failure {
        Transport undated = transport(false);
        try {
            Transport.Request request = timeRequest();
            long sent = app.clock.now();
            long start = app.clock.monotonicNanos();
            Transport.Answer answer = undated.send(request);
            long roundTrip = (app.clock.monotonicNanos() - start) / 1_000_000;
            String text = String.valueOf(Answers.accepted(answer).text("time"));
            Json claims = Answers.claims(text, answer.certificate, "twoefay-time+jwt", enrolment.relay.text);
            if (!request.fields.get("nonce").equals(claims.text("nonce")) || roundTrip > LONGEST_ROUND_TRIP) {
                throw Failure.unbelievable("the time is for another request, or came too late");
            }
            long time = Context.time(claims, "time").toEpochMilli();
            return time - (sent + roundTrip / 2);
        } catch (Transport.NotSent refused) {
            throw new Failure(Failure.Kind.NOT_SENT, refused.getMessage(), refused);
        } catch (IOException lost) {
            throw new Failure(Failure.Kind.NO_ANSWER, lost.getMessage(), lost);
        } catch (Json.Malformed malformed) {
            throw Failure.unbelievable(malformed.getMessage());
        } finally {
            undated.disconnect();
        }
    }

    private Transport.Request timeRequest() {
        return new Transport.Request("GET", "/time", null).with("nonce", app.nonce());
    }

    /**
     * Sends a request again after the relay's certificate was refused, at the signed time. That
     * time must be later than the clock: the key of an expired certificate could otherwise receive
     * the requests of this phone, by stating a time at which it was valid.
     */
    private Transport.Answer sendBySignedTime(Transport.Request request, Transport.NotSent refused) throws Failure {
        long offset;
        try {
            offset = signedOffset();
        } catch (Failure noTime) {
            throw new Failure(Failure.Kind.NOT_SENT, refused.getMessage(), refused);
        }
        if (offset <= enrolment.clockOffset) {
            boolean isAhead = enrolment.clockOffset - offset > TOLERANCE;
            String advice = isAhead ? "; the clock of the phone is ahead: set it" : "";
            throw new Failure(Failure.Kind.NOT_SENT, refused.getMessage() + advice, refused);
        }
        return sendAt(offset, request);
    }

    /** Stores an offset if the certificate is valid at the time that it gives. */
    private void adopt(long offset) throws Failure {
        transport.disconnect();
        sendAt(offset, timeRequest());
    }

    private Transport.Answer sendAt(long offset, Transport.Request request) throws Failure {
        long before = enrolment.clockOffset;
        enrolment.clockOffset = offset;
        try {
            Transport.Answer answer = transport.send(request);
            app.save(enrolment);
            return answer;
        } catch (Transport.NotSent refused) {
            enrolment.clockOffset = before;
            throw new Failure(Failure.Kind.NOT_SENT, "at the relay's own time: " + refused.getMessage(), refused);
        } catch (IOException lost) {
            enrolment.clockOffset = before;
            throw new Failure(Failure.Kind.NO_ANSWER, lost.getMessage(), lost);
        }
    }

    /**
     * Corrects the clock if the {@code date} of an answer differs from it by more than the
     * tolerance. The dates of this connection were checked, so the time may be earlier than the
     * clock. But the signed time comes over another connection, so it must not be much earlier than
     * the date.
     */
    boolean isCorrectedBy(Transport.Answer answer, long tolerance) {
        try {
            String stated = String.valueOf(answer.field("date"));
            Instant date = DateTimeFormatter.RFC_1123_DATE_TIME.parse(stated, Instant::from);
            long difference = date.toEpochMilli() - now();
            if (Math.abs(difference) <= tolerance) {
                return false;
            }
            long offset = signedOffset();
            if (offset < enrolment.clockOffset + difference - TOLERANCE) {
                return false;
            }
            adopt(offset);
            return true;
        } catch (DateTimeException | Failure noTime) {
            return false;
        }
    }
}
