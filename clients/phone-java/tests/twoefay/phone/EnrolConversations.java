package twoefay.phone;

import java.util.List;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import twoefay.phone.Tests.Test;

/** Binding and unbinding with a real relay. */
final class EnrolConversations {
    private static Website shop;

    private EnrolConversations() {}

    private static synchronized Website shop() throws Exception {
        if (shop == null) {
            shop = RealRelay.shared().website("shop", "--display-name", "The Shop");
        }
        return shop;
    }

    @Test
    static void websitePinsTheKeyByTheBinding() throws Exception {
        byte[] k = new byte[32];
        k[0] = 7;
        Person ada = new Person();
        Phone phone = ada.enrol(shop().register("ada", Base64Url.encode(k)), "Ada's phone");
        Check.that(ada.revocationCode != null, "no revocation code");
        Json device = shop().device("ada", 0);
        Check.equal(phone.enrolment.device, device.text("device"));
        Check.equal("Ada's phone", device.text("name"));
        String binding = device.text("binding");
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(k, "HmacSHA256"));
        Check.equal(binding.substring(binding.lastIndexOf('.') + 1),
            Base64Url.encode(mac.doFinal(Jws.signedPart(binding))));
        Check.equal(device.object("jwk").toString(), new Jws(binding).claims.object("jwk").toString());
        Check.equal(P256.thumbprint(ada.keys.signingKey(phone.enrolment.name).publicKey()), device.text("thumbprint"));
    }

    @Test
    static void firstPhoneApprovesTheSecond() throws Exception {
        // Both codes were issued while no phone was bound that could approve.
        Activation early = shop().register("bea", null);
        Activation late = shop().further("bea");
        Person first = new Person();
        first.enrol(early, null);
        Person second = new Person();
        second.approval = (number, thumbprint) -> {
            Challenge challenge = first.challenge();
            Check.equal("enrol", challenge.context.action);
            Check.that(challenge.context.details.stream().anyMatch(
                detail -> detail.label.equals("key") && detail.value.equals(thumbprint)), "the key is not shown");
            Check.that(first.phone.answer(challenge, Decision.approve(number)), "not approved");
        };
        Phone phone = second.enrol(late, null);
        Check.that(phone != null && second.revocationCode != null, "not bound");
        Check.equal(2, shop().call(200, "GET", "/user/bea", null).list("devices").size());
        // Both see the same challenge, and the faster one decides.
        Json login = shop().login("bea");
        Challenge slow = first.challenge(login);
        Check.that(second.approve(login), "approved");
        Failure failure = Check.refused(409, "already_decided", () -> first.phone.answer(slow, Decision.deny()));
        Check.equal("success", failure.problem.text("login"));
    }

    @Test
    static void deniedPhoneIsNotBound() throws Exception {
        Activation early = shop().register("cora", null);
        Activation late = shop().further("cora");
        Person first = new Person();
        first.enrol(early, null);
        Person second = new Person();
        second.approval = (number, thumbprint) -> first.phone.answer(first.challenge(), Decision.deny());
        Check.equal(null, second.enrol(late, null));
        Check.equal(0, second.keys.count());
        Check.equal(0, second.store.stored.size());
    }

    @Test
    static void firstPhoneApprovesTheCodeForTheSecond() throws Exception {
        Person first = Person.enrolled(shop(), "cleo");
        Person second = new Person();
        Check.that(second.enrol(shop().further("cleo", first), null) != null, "not bound");
        Check.equal(2, shop().call(200, "GET", "/user/cleo", null).list("devices").size());
    }

    @Test
    static void lostAnswerIsAskedForAgain() throws Exception {
        Person dora = new Person();
        dora.lost.add("/verify");
        dora.lost.add("/verify");
        dora.enrol(shop().register("dora", null), null);
        Check.that(dora.revocationCode != null, "no revocation code");
        Check.equal(1, shop().call(200, "GET", "/user/dora", null).list("devices").size());
    }

    /** The app was killed, and its code is used up: only the key itself proves that it is bound. */
    @Test
    static void boundKeyIsFoundWithoutItsAnswer() throws Exception {
        Person elsa = new Person();
        elsa.lost.add("/verify");
        Enroller enroller = Enroller.begin(elsa.app, shop().register("elsa", null), null, null);
        Check.fails(Failure.class, () -> enroller.attempt(elsa));
        Phone phone = new Enroller(elsa.app, elsa.store.only()).boundBefore();
        Check.equal(shop().device("elsa", 0).text("device"), phone.enrolment.device);
        Check.equal(0, phone.pending(0, List.of()).known.size());
        // A key that was never sent is bound to nothing.
        Person never = new Person();
        Enroller unsent = Enroller.begin(never.app, shop().register("nora", null), null, null);
        Check.equal(null, unsent.boundBefore());
        Check.equal(0, never.keys.count());
    }

    @Test
    static void usedOrWrongCodeBindsNothing() throws Exception {
        Activation activation = shop().register("fay", null);
        new Person().enrol(activation, null);
        Person thief = new Person();
        Check.equal(null, thief.enrol(activation, null));
        Check.equal(0, thief.keys.count());
    }

    @Test
    static void relayWithAnotherAuthorityIsNotAsked() throws Exception {
        Activation activation = shop().register("gina", null);
        Activation other = new Activation("twoefay://enrol?relay=" + activation.relay.text + "&website=shop&token="
            + activation.token + "&code=" + activation.code + "&pin=" + Base64Url.encode(new byte[32]));
        Person gina = new Person();
        Enroller enroller = Enroller.begin(gina.app, other, null, null);
        Failure failure = Check.fails(Failure.class, () -> enroller.attempt(gina));
        Check.equal(Failure.Kind.NOT_SENT, failure.kind);
        Check.that(failure.getMessage().contains("pinned authority"), failure.getMessage());
        // Nothing was sent: the code still counts.
        Check.that(new Person().enrol(activation, null) != null, "not bound");
    }

    @Test
    static void websiteLimitsThePhones() throws Exception {
        Website single = RealRelay.shared().website("single", "--devices", "1", "--further-factors", "website");
        Person.enrolled(single, "hana");
        Person second = new Person();
        Enroller enroller = Enroller.begin(second.app, single.further("hana"), null, null);
        Check.refused(409, "conflict", () -> enroller.run(second));
        Check.equal(2, second.keys.count());
        enroller.discard();
        Check.equal(0, second.keys.count());
    }

    @Test
    static void phoneLeaves() throws Exception {
        Person iris = Person.enrolled(shop(), "iris");
        Check.equal("phone", iris.phone.leave().by);
        Check.equal(0, iris.keys.count());
        Check.equal(0, iris.store.stored.size());
        Check.equal("revoked", shop().device("iris", 0).text("state"));
    }

    /** The relay may end the connections of a phone that was unbound, and so the answer is lost. */
    @Test
    static void lostFarewellIsAskedForAgain() throws Exception {
        Person iris = Person.enrolled(shop(), "iris-2");
        iris.lost.add("/device/goodbye");
        Check.equal("phone", iris.phone.leave().by);
    }

    @Test
    static void phoneLearnsWhoUnboundIt() throws Exception {
        Person jane = Person.enrolled(shop(), "jane");
        RealRelay.shared().operate("device", "revoke", jane.phone.enrolment.device, "--yes");
        Failure.Unbound byOperator = Check.fails(Failure.Unbound.class, () -> jane.phone.pending(0, List.of()));
        Check.equal("operator", byOperator.farewell.by);
        Check.equal(0, jane.keys.count());

        Person kate = Person.enrolled(shop(), "kate");
        shop().call(204, "DELETE", "/user/kate/devices/" + kate.phone.enrolment.device, null);
        Check.equal("website",
            Check.fails(Failure.Unbound.class, () -> kate.phone.pending(0, List.of())).farewell.by);

        Person lena = Person.enrolled(shop(), "lena");
        Phone.revoke(lena.app, lena.phone.enrolment.relay, lena.phone.enrolment.pins.get(0), lena.revocationCode);
        Check.equal("code", Check.fails(Failure.Unbound.class, () -> lena.phone.pending(0, List.of())).farewell.by);
    }

    @Test
    static void suspendedPhoneKeepsItsKeyAndWorksAgain() throws Exception {
        Person mia = Person.enrolled(shop(), "mia");
        RealRelay.shared().operate("device", "suspend", mia.phone.enrolment.device);
        Failure failure = Check.fails(Failure.class, () -> mia.phone.pending(0, List.of()));
        Check.that(failure.status == 401 && !(failure instanceof Failure.Unbound), failure);
        Check.equal(401, Check.fails(Failure.class, mia.phone::leave).status);
        Check.equal(2, mia.keys.count());
        RealRelay.shared().operate("device", "resume", mia.phone.enrolment.device);
        // The relay remembers for two seconds that the key was none of an active phone.
        Relay relay = new Relay(mia.app, mia.phone.enrolment,
            new Statements(mia.phone.enrolment, mia.keys.signingKey(mia.phone.enrolment.name)));
        while (relay.prove(new Transport.Request("GET", "/recovery", null)).status == 401) {
            Thread.onSpinWait();
        }
        Check.equal(0, mia.phone.pending(0, List.of()).known.size());
    }

    @Test
    static void phoneOfADeletedUserKeepsItsKey() throws Exception {
        Person nina = Person.enrolled(shop(), "nina");
        shop().call(204, "DELETE", "/user/nina", null);
        Check.equal(401, Check.fails(Failure.class, () -> nina.phone.pending(0, List.of())).status);
        Check.equal(2, nina.keys.count());
    }

    @Test
    static void tooManyRevocationCodesAreLimited() throws Exception {
        RealRelay relay = new RealRelay();
        relay.start();
        Website limited = relay.website("limited");
        Person oda = Person.enrolled(limited, "oda");
        Failure failure = null;
        for (int count = 0; count < 1000 && failure == null; count++) {
            try {
                Phone.revoke(oda.app, oda.phone.enrolment.relay, oda.phone.enrolment.pins.get(0), "A".repeat(20));
            } catch (Failure refused) {
                failure = refused;
            }
        }
        Check.that(failure != null && failure.is(429, "limited") && failure.retryAfter > 0, failure);
        Check.refused(400, "invalid", () -> {
            Person other = Person.enrolled(RealRelay.shared().website("other"), "pia");
            Phone.revoke(other.app, other.phone.enrolment.relay, other.phone.enrolment.pins.get(0), "no code");
        });
    }
}
