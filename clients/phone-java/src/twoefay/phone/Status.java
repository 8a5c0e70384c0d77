package twoefay.phone;

/** What the phone reports about itself. A member that is null is not reported. */
public final class Status {
    public String os;
    public String osVersion;
    /** Year and month of Android's security patches, such as 202610. */
    public Long patchLevel;
    /** In the report of an answer on Android: the version code. */
    public String appVersion;
    public String model;
    /** The charge in percent. */
    public Long battery;
    public Boolean screenLock;
    public Boolean rooted;

    Json claims(Json claims) {
        return claims
            .put("os", os)
            .put("os_version", osVersion)
            .put("patch_level", patchLevel)
            .put("app_version", appVersion)
            .put("model", model)
            .put("battery", battery)
            .put("screen_lock", screenLock)
            .put("rooted", rooted);
    }

    /** Reads a report that the relay has stored. */
    static Status of(Json report) {
        Status status = new Status();
        status.os = report.text("os");
        status.osVersion = report.text("os_version");
        status.patchLevel = report.integer("patch_level");
        status.appVersion = report.text("app_version");
        status.model = report.text("model");
        status.battery = report.integer("battery");
        status.screenLock = report.flag("screen_lock");
        status.rooted = report.flag("rooted");
        return status;
    }

    boolean isSame(Status other) {
        return claims(new Json()).toString().equals(other.claims(new Json()).toString());
    }
}
