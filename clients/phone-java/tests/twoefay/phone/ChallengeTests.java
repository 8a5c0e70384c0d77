package twoefay.phone;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import twoefay.phone.Tests.Test;

/** Contexts that are shown, and those that are refused. */
final class ChallengeTests {
    static final Instant NOW = Instant.parse("2026-11-21T10:04:31.002Z");

    private ChallengeTests() {}

    static Json context() {
        try {
            return Json.read(Page.block("json context"));
        } catch (Json.Malformed malformed) {
            throw new AssertionError(malformed);
        }
    }

    static Json entry(String id, String context) {
        return new Json().put("challenge", id).put("nonce", "eDd7UldXtJRCf4kBT5fXmQ")
            .put("context", Base64Url.encode(context.getBytes(java.nio.charset.StandardCharsets.UTF_8)))
            .put("expires_at", "2026-11-21T10:09:30.120Z");
    }

    private static Challenge read(Json context) throws Json.Malformed {
        return new Challenge(entry("c1", context.toString()), "shop", NOW);
    }

    @Test
    static void everyMemberIsShown() throws Exception {
        Context shown = read(context().put("device", "Ada's phone").put("new", "ignored")).context;
        Check.equal("The Shop alice members pay 192.0.2.7 Berlin, DE Firefox on Debian Ada's phone",
            String.join(" ", shown.displayName, shown.username, shown.service, shown.action, shown.ip, shown.place,
                shown.userAgent, shown.device));
        Check.equal("amount", shown.details.get(0).label);
        Check.equal(2, shown.numberDigits);
        Check.equal(Instant.parse("2026-11-21T10:04:30.120Z"), shown.createdAt);
    }

    @Test
    static void optionalMembersMayBeMissing() throws Exception {
        Json context = context();
        for (String name : List.of("service", "action", "details", "ip", "place", "user_agent", "request")) {
            context.put(name, null);
        }
        Check.equal(null, read(context).context.service);
        Check.equal(0, read(context).context.details.size());
    }

    @Test
    static void contextThatCannotBeShownIsRefused() {
        List<Object[]> changes = new ArrayList<>(List.of(new Object[][] {
            {"v", 2}, {"v", "1"}, {"website", "bank"}, {"display_name", 7}, {"number_digits", -1}, {"number_digits", 10},
            {"number_digits", "2"}, {"service", 1}, {"details", "text"}, {"details", List.of("text")},
            {"details", List.of(new Json().put("label", "amount"))}, {"created_at", "yesterday"},
            {"created_at", "2026-11-21T10:04:30+01:00"}, {"expires_at", "2026-13-21T10:04:30Z"},
            {"display_name", "The\u200BShop"}, {"username", "al\u0000ice"}, {"action", "12.00\u202E EUR"},
            {"user_agent", "a\nb"}, {"request", "\u00AD"},
            {"details", List.of(new Json().put("label", "to").put("value", "Zo\uFEFFë"))},
        }));
        for (String name : List.of("v", "website", "display_name", "username", "number_digits", "created_at", "expires_at")) {
            changes.add(new Object[] {name, null});
        }
        for (Object[] change : changes) {
            Check.fails(Json.Malformed.class, () -> read(context().put((String) change[0], change[1])));
        }
        String text = context().toString();
        for (String other : List.of("", "[]", text + " {}", text.replace("{\"v\":1", "{\"v\":1,\"username\":\"bob\""))) {
            Check.fails(Json.Malformed.class, () -> new Challenge(entry("c1", other), "shop", NOW));
        }
        Check.fails(Json.Malformed.class, () -> new Challenge(entry("c/1", text), "shop", NOW));
        Check.fails(Json.Malformed.class, () -> new Challenge(entry("c1", text).put("nonce", null), "shop", NOW));
        Check.fails(Json.Malformed.class, () -> new Challenge(entry("c1", text).put("context", "e30="), "shop", NOW));
    }

    @Test
    static void demandsAreRead() throws Exception {
        Json demands = Json.read("{" + Page.text().split("\"demands\": \\{")[1].split("\n")[0]);
        Challenge challenge = new Challenge(entry("c1", context().toString()).put("demands", demands), "shop", NOW);
        Challenge.Demands read = challenge.demands;
        Check.equal("required 17.4 42 202607 300 sign [attestation]", String.join(" ", read.attestation, read.osVersion,
            read.appVersion, read.patchLevel + "", read.mostVerificationAge + "", read.pin, read.unmet + ""));
        Check.that(read.verifiedBoot && read.screenLock && read.asksPosture && challenge.demandsPin(), "demands");
        Json pin = entry("c1", context().toString()).put("demands", new Json().put("pin", "sign"));
        Check.that(!new Challenge(pin, "shop", NOW).demands.asksPosture, "a PIN asks for no report");
    }

    @Test
    static void placeIsRounded() {
        Check.equal("52.5,13.4", Decision.approve(null).at(52.5163, 13.3777).place);
        Check.equal("0.0,-0.3", Decision.approve(null).at(-0.04, -0.31).place);
        Check.equal("-90.0,180.0", Decision.approve(null).at(-90, 179.96).place);
        Check.fails(IllegalArgumentException.class, () -> Decision.approve(null).at(Double.NaN, 0));
        Check.fails(IllegalArgumentException.class, () -> Decision.approve(null).at(0, 180.1));
    }
}
