package twoefay.phone;

import java.util.ArrayList;
import java.util.List;

/** The notices for a user, and the replacements of factors that a user can stop. */
public final class PhoneNotices {
    private final Line line;

    PhoneNotices(Line line) {
        this.line = line;
    }

    /** The number of notices that no phone of the user has fetched, as the last answer said. */
    public int unread() {
        return line.unread;
    }

    /** Lists the notices that no phone has fetched, or the others. The list is not signed. */
    public List<Notice> list(boolean inArchive) throws Failure {
        String path = inArchive ? "/messages/archive" : "/messages";
        List<Notice> found = new ArrayList<>();
        for (Object each : entries(path, "messages")) {
            found.add(new Notice(each instanceof Json ? (Json) each : new Json(), false));
        }
        return found;
    }

    /** Fetches a notice, checks the relay's signature, and so moves it to the archive. */
    public Notice read(String id) throws Failure {
        if (!Text.isId(id)) {
            throw Failure.unable("this is no id of a notice");
        }
        Transport.Request request = new Transport.Request("GET", "/messages/" + id, null);
        Json claims = line.relay.statement(() -> line.call(request), "statement", "twoefay-message+jwt");
        if (claims == null || !id.equals(claims.text("message"))
            || !line.enrolment.token.equals(claims.text("id_token"))) {
            throw Failure.unbelievable("the notice is for another user or request");
        }
        return new Notice(claims, true);
    }

    private List<Object> entries(String path, String name) throws Failure {
        return Answers.entries(Answers.accepted(line.call(new Transport.Request("GET", path, null))), name);
    }

    public List<Recovery> recoveries() throws Failure {
        List<Recovery> found = new ArrayList<>();
        for (Object each : entries("/recovery", "recoveries")) {
            found.add(new Recovery(each instanceof Json ? (Json) each : new Json()));
        }
        return found;
    }

    /** Stops the replacement of a factor. It is no error if it has ended. */
    public void stop(Recovery recovery) throws Failure {
        Answers.accepted(line.call(new Transport.Request("DELETE", "/recovery/" + recovery.id, null)));
    }
}
