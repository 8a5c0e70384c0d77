package twoefay.phone;

import java.util.ArrayList;
import java.util.List;

/** A person with a phone at a real relay. */
final class Person implements Enroller.Screen {
    final SoftwareKeys keys = new SoftwareKeys();
    final MemoryStore store = new MemoryStore();
    final TestClock clock = new TestClock();
    final App app = new App(keys, store);
    /**
     * The answers that the phone does not get, although the relay has given them, by their path.
     */
    final List<String> lost = new ArrayList<>();
    /** Called while the phone waits for the approval of another one. */
    interface Approval {
        void approve(String number, String thumbprint) throws Exception;
    }

    Approval approval;
    String revocationCode;
    Phone phone;

    Person() {
        app.clock = clock;
        app.platform = "other";
        app.transports = (relay, trust) -> {
            SocketTransport real = new SocketTransport(relay, trust);
            return new Transport() {
                @Override
                public Answer send(Request request) throws java.io.IOException {
                    Answer answer = real.send(request);
                    if (lost.remove(request.path)) {
                        throw new java.io.IOException("the answer was lost");
                    }
                    return answer;
                }

                @Override
                public void disconnect() {
                    real.disconnect();
                }
            };
        };
    }

    @Override
    public void waits(String number, String thumbprint) {
        try {
            Check.that(approval != null, "nobody can approve");
            approval.approve(number, thumbprint);
        } catch (Exception thrown) {
            throw new AssertionError(thrown);
        }
    }

    @Override
    public void bound(String revocationCode) {
        this.revocationCode = revocationCode;
    }

    Phone enrol(Activation activation, String name) throws Exception {
        phone = Enroller.begin(app, activation, null, name).run(this);
        return phone;
    }

    static Person enrolled(Website website, String username) throws Exception {
        Person person = new Person();
        Check.that(person.enrol(website.register(username, null), null) != null, "the phone is not bound");
        return person;
    }

    /** The only pending challenge. */
    Challenge challenge() throws Exception {
        Phone.Pending pending = phone.pending(0, List.of());
        Check.equal(1, pending.challenges.size());
        Check.equal(0, pending.refused.size());
        return pending.challenges.get(0);
    }

    /** The pending challenge of this login. */
    Challenge challenge(Json login) throws Exception {
        for (Challenge each : phone.pending(0, List.of()).challenges) {
            if (each.id.equals(login.text("challenge"))) {
                return each;
            }
        }
        throw new AssertionError("the challenge is not pending");
    }

    boolean approve(Json login) throws Exception {
        return phone.answer(challenge(login), Decision.approve(login.text("number")));
    }
}
