package twoefay.phone;

/** The state of the PIN at the relay. */
public final class PinState {
    /** {@code none}, {@code set} or {@code locked}. */
    public final String state;
    /** How often the PIN was set or changed. */
    final long version;
    public final long triesLeft;
    public final long pukTriesLeft;

    PinState(Json answer) throws Failure {
        Json pin = answer.object("pin");
        if (pin == null || pin.text("state") == null || pin.integer("version") == null
            || pin.integer("tries_left") == null || pin.integer("puk_tries_left") == null) {
            throw Failure.unbelievable("it has no state of the PIN");
        }
        state = Text.visible(pin.text("state"), 32);
        version = pin.integer("version");
        triesLeft = pin.integer("tries_left");
        pukTriesLeft = pin.integer("puk_tries_left");
    }
}
