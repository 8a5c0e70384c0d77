package twoefay.phone;

import java.nio.file.Files;
import java.util.List;
import twoefay.phone.Tests.Test;

/** The authority of a real relay is replaced, and its certificate renewed. */
final class AuthorityConversations {
    private AuthorityConversations() {}

    @Test
    static void phoneFollowsTheAuthority() throws Exception {
        RealRelay relay = new RealRelay();
        relay.start();
        Website shop = relay.website("shop");
        Person ada = Person.enrolled(shop, "ada");
        List<String> first = ada.phone.enrolment.pins;
        // A copy of the phone, which is off during the whole replacement.
        Enrolment absent = ada.store.only();

        relay.operate("server", "pins");
        String text = Files.readString(relay.directory.resolve("relay/twoefay.yaml"));
        relay.set("(?m)^tls:\n", "tls:\n  pins: \"pins.jwt\"\n");
        Check.that(!text.contains("\n  pins: \""), "the settings have pins already");
        relay.reload();
        Check.equal(0, ada.phone.pending(0, List.of()).known.size());
        List<String> both = ada.store.only().pins;
        Check.equal(2, both.size());
        Check.equal(first.get(0), both.get(0));
        // The phone says with its next request that it has the pin.
        ada.phone.pending(0, List.of());
        relay.logged("event=pins.taken");
        relay.operate("server", "switch");
        relay.reload();
        ada.phone.disconnect();
        Check.equal(0, ada.phone.pending(0, List.of()).known.size());
        relay.operate("server", "finish", "--yes");
        relay.reload();
        shop.reconnect();
        ada.phone.disconnect();
        Json login = shop.login("ada");
        Check.that(ada.approve(login), "approved");
        Check.equal("success null signed", shop.result(login));
        Check.equal(List.of(both.get(1)), ada.store.only().pins);
        Phone stranded = new Phone(ada.app, absent);
        Check.equal(Failure.Kind.NOT_SENT, Check.fails(Failure.class, () -> stranded.pending(0, List.of())).kind);
    }

    /**
     * After a reload, the relay signs with the new certificate, also for connections with the old
     * one.
     */
    @Test
    static void noticeIsReadAfterTheCertificateChanged() throws Exception {
        RealRelay relay = new RealRelay();
        relay.start();
        Website shop = relay.website("shop");
        Person ada = Person.enrolled(shop, "ada");
        String id = shop.call(201, "POST", "/user/ada/messages", "{\"title\":\"Prices\",\"text\":\"New prices.\"}").text("message");
        Check.equal(1, ada.phone.notices.list(false).size());
        relay.operate("server", "renew");
        relay.reload();
        Check.equal("Prices", ada.phone.notices.read(id).title);
    }
}
