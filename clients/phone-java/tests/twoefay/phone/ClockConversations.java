package twoefay.phone;

import java.util.List;
import twoefay.phone.Tests.Test;

/** Phones with a wrong clock at a real relay. */
final class ClockConversations {
    private static final long DAY = 86_400_000;

    private ClockConversations() {}

    /**
     * The certificate does not fit the clock, or the clock is wrong by more than a proof may be.
     */
    @Test
    static void phoneWithAWrongClockEnrolsAndAnswers() throws Exception {
        Website website = RealRelay.shared().website("clocks", "--phone-codes", "again");
        for (long days : new long[] {-1095, 2, 0}) {
            Person person = new Person();
            person.clock.error = days * DAY;
            String name = "user-" + days + "d";
            person.enrol(website.register(name.replace("--", "-"), null), null);
            Json login = website.login(name.replace("--", "-"));
            Check.that(person.approve(login), "approved");
            Check.equal("success null signed", website.result(login));
            // A phone that has forgotten its offset measures it again.
            person.phone.enrolment.clockOffset = 0;
            Phone forgetful = new Phone(person.app, person.phone.enrolment);
            Check.equal(0, forgetful.pending(0, List.of()).known.size());
            forgetful.synchronise();
            long wrong = forgetful.enrolment.clockOffset + days * DAY + person.clock.paused.get();
            Check.that(Math.abs(wrong) < 30_000, wrong);
            Check.equal(forgetful.enrolment.clockOffset, person.store.only().clockOffset);
            Status status = new Status();
            status.os = "Android";
            forgetful.report(status);
            forgetful.codes.fetch(null);
            Json checked = website.call(200, "POST", "/verify-otp",
                new Json().put("username", name.replace("--", "-")).put("otp", forgetful.codes.code()).toString());
            Check.that(checked.isTrue("valid"), checked);
        }
    }

    /** A clock that is ahead of the certificate's end is set back by the person only. */
    @Test
    static void clockThatIsYearsAheadIsSetBackOnRequest() throws Exception {
        Website website = RealRelay.shared().website("ahead");
        Person person = Person.enrolled(website, "ada");
        person.clock.error = 3650 * DAY;
        Phone fresh = new Phone(person.app, person.store.only());
        Failure failure = Check.fails(Failure.class, () -> fresh.pending(0, List.of()));
        Check.that(failure.kind == Failure.Kind.NOT_SENT && failure.getMessage().contains("ahead"), failure.getMessage());
        fresh.synchronise();
        Check.equal(0, fresh.pending(0, List.of()).known.size());
    }
}
