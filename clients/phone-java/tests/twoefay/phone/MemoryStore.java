package twoefay.phone;

import java.util.LinkedHashMap;
import java.util.Map;

/** A store that keeps the text of each enrolment, as an app would. */
final class MemoryStore implements Enrolment.Store {
    final Map<String, String> stored = new LinkedHashMap<>();

    @Override
    public synchronized void save(Enrolment enrolment) {
        stored.put(enrolment.name, enrolment.json().toString());
    }

    @Override
    public synchronized void remove(Enrolment enrolment) {
        stored.remove(enrolment.name);
    }

    /** Reads the only enrolment again, as after a restart of the app. */
    synchronized Enrolment only() throws Json.Malformed {
        Check.equal(1, stored.size());
        return new Enrolment(Json.read(stored.values().iterator().next()));
    }
}
