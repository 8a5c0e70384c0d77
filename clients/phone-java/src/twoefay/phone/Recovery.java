package twoefay.phone;

/**
 * The replacement of a factor that the user may have lost. A person who has lost nothing stops it.
 */
public final class Recovery {
    public final String id;
    /** {@code totp}, {@code hotp}, or {@code push} for all phones. */
    public final String factor;
    /** {@code sent}, {@code opened}, {@code waiting} or {@code ready}; ignore others. */
    public final String state;
    /**
     * The time from which the factor can be replaced, as the relay writes it; null before that is
     * known.
     */
    public final String readyAt;

    Recovery(Json entry) throws Failure {
        id = Answers.id(entry, "recovery");
        factor = Text.visible(String.valueOf(entry.text("factor")), 32);
        state = Text.visible(String.valueOf(entry.text("state")), 32);
        readyAt = entry.text("ready_at") == null ? null : Text.visible(entry.text("ready_at"), 32);
    }
}
