package twoefay.phone;

import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import twoefay.phone.Tests.Test;

/** Notices, recoveries, reports and changes of the phone with a real relay. */
final class OtherConversations {
    private static Website site;

    private OtherConversations() {}

    private static synchronized Website site() throws Exception {
        if (site == null) {
            site = RealRelay.shared().website("site", "--recovery-url", "https://shop.example.com/recover",
                "--further-factors", "website");
        }
        return site;
    }

    @Test
    static void noticesOfWebsiteAndOperatorAreRead() throws Exception {
        Person ada = Person.enrolled(site(), "ada");
        Check.equal(0, ada.phone.notices.list(false).size());
        Check.equal(0, ada.phone.notices.unread());
        String first = site().call(201, "POST", "/user/ada/messages",
            "{\"title\":\"Prices\",\"text\":\"New prices.\\nThe Shop\"}").text("message");
        String second = Json.read(RealRelay.shared().operate("notice", "leave", "ada", "No logins on Sunday.", "--title",
            "Maintenance", "--website", "site", "--json")).text("notice");
        ada.phone.pending(0, List.of());
        Check.equal(2, ada.phone.notices.unread());
        Set<String> listed = ada.phone.notices.list(false).stream().map(each -> each.id).collect(Collectors.toSet());
        Check.equal(Set.of(first, second), listed);
        Notice notice = ada.phone.notices.read(first);
        Check.equal("website Prices New prices.\nThe Shop", notice.from + " " + notice.title + " " + notice.text);
        Check.equal("operator", ada.phone.notices.read(second).from);
        Check.equal(0, ada.phone.notices.unread());
        Check.equal(0, ada.phone.notices.list(false).size());
        Check.equal(2, ada.phone.notices.list(true).size());
        // A lost answer: the archive still has it.
        ada.lost.add("/messages/" + first);
        Check.fails(Failure.class, () -> ada.phone.notices.read(first));
        Check.equal("Prices", ada.phone.notices.read(first).title);
        RealRelay.shared().operate("notice", "withdraw", "ada", first, "--website", "site");
        Check.refused(404, "not_found", () -> ada.phone.notices.read(first));
    }

    @Test
    static void personStopsARecovery() throws Exception {
        RealRelay relay = new RealRelay();
        relay.set("(?m)^mail:\n", "mail:\n  url: \"smtp://127.0.0.1:1\"\n  from: \"login@shop.example.com\"\n");
        relay.start();
        Website shop = relay.website("shop", "--recovery-url", "https://shop.example.com/recover", "--further-factors", "website");
        Person bea = Person.enrolled(shop, "bea");
        shop.call(201, "POST", "/user/bea/hotp", "{\"secret\":\"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ\"}");
        Check.equal(0, bea.phone.notices.recoveries().size());
        String id = Json.read(relay.operate("user", "recover", "bea", "--website", "shop", "--factor", "hotp", "--json"))
            .text("recovery");
        Recovery recovery = bea.phone.notices.recoveries().get(0);
        Check.equal(id + " hotp sent", recovery.id + " " + recovery.factor + " " + recovery.state);
        bea.phone.notices.stop(recovery);
        bea.phone.notices.stop(recovery);
        Check.equal(0, bea.phone.notices.recoveries().size());
    }

    @Test
    static void reportIsSeenByTheWebsite() throws Exception {
        Person cora = Person.enrolled(site(), "cora");
        Status status = new Status();
        status.os = "Android";
        status.osVersion = "16";
        status.patchLevel = 202610L;
        status.model = "Pixel 10";
        status.battery = 81L;
        status.screenLock = true;
        cora.phone.report(status);
        Json report = site().device("cora", 0).object("report");
        Check.equal("Android 16 202610 Pixel 10 81 true", String.join(" ", report.text("os"), report.text("os_version"),
            report.integer("patch_level") + "", report.text("model"), report.integer("battery") + "", report.flag("screen_lock") + ""));
        Check.equal(null, report.flag("rooted"));
        // A second report, perhaps of the same second, takes its place.
        status.battery = 80L;
        status.rooted = false;
        cora.phone.report(status);
        Json later = site().device("cora", 0).object("report");
        Check.equal("80 false", later.integer("battery") + " " + later.flag("rooted"));
        status.os = "";
        Check.refused(400, "invalid", () -> cora.phone.report(status));
    }

    @Test
    static void nameAndTokenAreChanged() throws Exception {
        Person dora = Person.enrolled(site(), "dora");
        dora.phone.rename("Dora's other phone");
        Check.equal("Dora's other phone", site().device("dora", 0).text("name"));
        dora.phone.setPushToken("0f1e2d3c4b5a69788796a5b4c3d2e1f0");
        Check.equal("0f1e2d3c4b5a69788796a5b4c3d2e1f0", dora.store.only().pushToken);
        dora.phone.setPushToken("");
        Check.equal(null, dora.store.only().pushToken);
        Check.refused(400, "invalid", () -> dora.phone.rename("a\u202Eb"));
        Check.equal("Dora's other phone", dora.store.only().phoneName);
    }

    /** A proof counts once, and a request without a fresh nonce is sent again. */
    @Test
    static void proofIsRenewedAfterTheRelayHasForgottenTheNonce() throws Exception {
        Person elsa = Person.enrolled(site(), "elsa");
        for (int count = 0; count < 3; count++) {
            Check.equal(0, elsa.phone.pending(0, List.of()).known.size());
        }
        // A new object knows no nonce, as after a restart of the app.
        Check.equal(0, new Phone(elsa.app, elsa.store.only()).pending(0, List.of()).known.size());
    }
}
