package twoefay.phone;

/** The reason why a call of the phone failed. */
public class Failure extends Exception {
    public enum Kind {
        /** The relay was not reached, so it has certainly done nothing. */
        NOT_SENT,
        /** There is no answer: the relay may or may not have done the work. Try again later. */
        NO_ANSWER,
        /** The relay refused: see {@link #status}, {@link #code} and {@link #problem}. */
        REFUSED,
        /** The answer does not follow the protocol: the phone does not believe it. */
        UNBELIEVABLE,
        /** The phone itself cannot do it. Nothing was sent. */
        UNABLE,
        /** The relay has signed that this phone is unbound: see {@link Unbound}. */
        UNBOUND
    }

    /** The end of the enrolment, as the relay has signed it. The keys were deleted. */
    public static final class Unbound extends Failure {
        public final Farewell farewell;

        Unbound(Farewell farewell) {
            super(Kind.UNBOUND, "this phone was unbound by: " + farewell.by, null);
            this.farewell = farewell;
        }
    }

    public final Kind kind;
    /** The status of a refusal; 0 otherwise. */
    public final int status;
    /** The code of a refusal, such as {@code limited}; empty without one. */
    public final String code;
    /** The seconds after which the request may be sent again; null if the relay names none. */
    public final Long retryAfter;
    /** The body of a refusal, such as with {@code tries_left} and {@code errors}. */
    public final Json problem;

    Failure(Kind kind, String message, Throwable cause) {
        super(Text.visible(String.valueOf(message), 1000), cause);
        this.kind = kind;
        status = 0;
        code = "";
        retryAfter = null;
        problem = new Json();
    }

    /** A refusal of the relay. Its message is in the language of the request. */
    Failure(Transport.Answer answer, Json problem) {
        super(Text.visible(problem.text("detail") == null ? "status " + answer.status : problem.text("detail"), 1000));
        kind = Kind.REFUSED;
        status = answer.status;
        code = problem.text("code") == null ? "" : Text.visible(problem.text("code"), 100);
        String seconds = answer.field("retry-after");
        retryAfter = seconds != null && seconds.matches("[0-9]{1,9}") ? Long.valueOf(seconds) : null;
        this.problem = problem;
    }

    static Failure unable(Throwable cause) {
        return new Failure(Kind.UNABLE, cause.getMessage(), cause);
    }

    static Failure unable(String reason) {
        return new Failure(Kind.UNABLE, reason, null);
    }

    static Failure unbelievable(String reason) {
        return new Failure(Kind.UNBELIEVABLE, "the relay's answer is not believed: " + reason, null);
    }

    boolean is(int status, String code) {
        return this.status == status && this.code.equals(code);
    }

    /** Whether the same request may succeed later. */
    public boolean mayPass() {
        return kind == Kind.NOT_SENT || kind == Kind.NO_ANSWER || status == 429 || status >= 500;
    }
}
