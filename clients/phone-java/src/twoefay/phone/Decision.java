package twoefay.phone;

import java.util.Locale;

/** The decision of the person about a challenge, and what the phone states with it. */
public final class Decision {
    /** How the phone verified its owner for this signature. */
    public enum Verification { NONE, PASSCODE, BIOMETRIC }

    final String word;
    /** What the person typed; null for none. */
    final String number;
    String verification = "none";
    Long verificationAge;
    String place;
    Json posture;
    /** The PIN that the person typed; null for none. */
    String pin;

    private Decision(String word, String number) {
        this.word = word;
        this.number = number;
    }

    /** @param number what the person typed; null if the challenge has {@code numberDigits} 0 */
    public static Decision approve(String number) {
        return new Decision("approve", number);
    }

    public static Decision deny() {
        return new Decision("deny", null);
    }

    /**
     * A report that this was somebody else. Explain its effect before: it freezes the user's
     * factors.
     */
    public static Decision fraud() {
        return new Decision("fraud", null);
    }

    /**
     * States how the owner was verified. If the platform does not say which of the two it was, it
     * is the weaker one: {@link Verification#PASSCODE}.
     *
     * @param ageSeconds the seconds since then, by the monotonic clock
     */
    public Decision verifiedBy(Verification verification, long ageSeconds) {
        this.verification = verification.name().toLowerCase(Locale.ROOT);
        verificationAge = ageSeconds;
        return this;
    }

    /** States the place, if the person agrees. It is rounded, and sent only if the website asks. */
    public Decision at(double latitude, double longitude) {
        if (!(Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180)) {
            throw new IllegalArgumentException("this place is not on the earth");
        }
        place = rounded(latitude) + "," + rounded(longitude);
        return this;
    }

    private static String rounded(double degrees) {
        long tenths = Math.round(Math.abs(degrees) * 10);
        return (degrees < 0 && tenths != 0 ? "-" : "") + tenths / 10 + "." + tenths % 10;
    }

    /** States the phone's condition. It is sent only if the website has demands. */
    public Decision withPosture(Status status) {
        posture = new Json()
            .put("os_version", status.osVersion)
            .put("app_version", status.appVersion)
            .put("screen_lock", status.screenLock)
            .put("rooted", status.rooted);
        return this;
    }

    /** Adds the PIN, for a challenge whose demands have {@code pin: sign}. */
    public Decision withPin(String pin) {
        this.pin = pin;
        return this;
    }

    boolean isApproval() {
        return word.equals("approve");
    }
}
