package twoefay.phone;

import java.util.List;
import twoefay.phone.Tests.Test;

/** JSON, base64url, activations and texts, with the forms that are refused. */
final class FormatTests {
    private static final String PIN = "Y8jqGfueMSwWvPxgmFM0uwl05lG6yTFSKTpJib3w0OI";
    private static final String GOOD =
        "twoefay://enrol?relay=https%3A%2F%2Flogin.example.com&website=shop&token=t1&code=c1&pin=" + PIN;

    private FormatTests() {}

    @Test
    static void jsonKeepsOrderAndBytes() throws Exception {
        String text = "{\"b\":[1,-2,true,null,\"\\\"\\\\ä😀\\u0001\\n\"],\"a\":{},\"c\":[],\"n\":9223372036854775807}";
        Check.equal(text, Json.read(text).toString());
        Check.equal("/é", Json.read(" { \"a\" : \"\\/\\u00e9\" } ").text("a"));
        Check.equal(null, Json.read("{\"a\":1.5}").integer("a"));
        Check.equal(null, Json.read("{\"a\":null}").text("a"));
        Check.equal("{\"b\":1}", new Json().put("a", null).put("b", 1).toString());
    }

    @Test
    static void jsonThatIsReadDifferentlyIsRefused() {
        for (String text : List.of(
            "", "[]", "1", "{", "{}{}", "{} x", "{\"a\":1,}", "{\"a\":1,\"a\":2}", "{\"a\":1,\"\\u0061\":2}", "{a:1}",
            "{'a':1}", "{\"a\":01}", "{\"a\":+1}", "{\"a\":.5}", "{\"a\":1.}", "{\"a\":NaN}", "{\"a\":tru}", "{\"a\":\"\t\"}",
            "{\"a\":\"\\x\"}", "{\"a\":\"\\ud800\"}", "{\"a\":\"\\udc00\\ud800\"}", "{\"a\":\"\\u0000\"}", "{\"a\":\"\\uffff\"}",
            "{\"a\":\"\\ufdd0\"}", "{\"a\":9223372036854775808}", "{\"a\" 1}", "{\"a\":[1 2]}", "{\"a\":[1,]}", "\ufeff{}",
            "{\"a\":\"\\u00g0\"}", "{/**/}", "{\"a\":" + "[".repeat(16) + "]".repeat(16) + "}")) {
            Check.fails(Json.Malformed.class, () -> Json.read(text));
        }
        Check.fails(Json.Malformed.class, () -> Json.read(new byte[] {'{', '"', (byte) 0xC0, (byte) 0xAF, '"', ':', '1', '}'}));
    }

    @Test
    static void base64urlHasOneForm() {
        Check.equal("_-8", Base64Url.encode(Check.hex("ffef")));
        for (String text : List.of("_-8=", "_-9", "/+8", "_-8\n", " _-8", "A")) {
            Check.equal(null, Base64Url.decode(text));
        }
        Check.equal(null, Base64Url.decode(null));
    }

    @Test
    static void originIsHostAndPort() {
        Check.equal(443, Origin.read("https://login.example.com").port);
        Check.equal("::1", Origin.read("https://[::1]:8080").host);
        for (String text : List.of(
            "http://a", "https://", "https://a/", "https://a:0", "https://a:080", "https://a:65536", "https://u@a",
            "https://a?b", "https://a#b", "https://a b", "HTTPS://a", "https://a:", "https://[::1")) {
            Check.equal(null, Origin.read(text));
        }
    }

    @Test
    static void activationIgnoresUnknownParameters() throws Exception {
        Activation activation = new Activation(GOOD + "&new=1%2B1");
        Check.equal("https://login.example.com", activation.relay.text);
        Check.equal(null, activation.websiteKey);
        Check.equal("a+b", new Activation(GOOD.replace("t1", "a+b")).token);
    }

    @Test
    static void activationThatIsAmbiguousIsRefused() {
        for (String[] change : new String[][] {
            {"twoefay://enrol?", "twoefay://enroll?"}, {"twoefay://enrol?", "https://enrol?"}, {"&website=shop", ""},
            {"&code=c1", "&code="}, {"&code=c1", "&code"}, {"&code=c1", "&code=c1&code=c1"},
            {"&code=c1", "&code=c1&%63ode=c2"}, {"website=shop", "website=Shop"}, {"website=shop", "website=-shop"},
            {"website=shop", "website=" + "a".repeat(65)}, {PIN, PIN.substring(1)}, {PIN, PIN + "="},
            {"https%3A", "http%3A"}, {"example.com", "example.com%2Fa"}, {"t1", "%"}, {"t1", "%4"}, {"t1", "%zz"},
            {"t1", "%ff"}, {"t1", "a%E2%80%AEb"}, {"&code=c1", "&code=c1&k=AAECAw"},
        }) {
            Check.that(GOOD.contains(change[0]), change[0]);
            Check.fails(Activation.Malformed.class, () -> new Activation(GOOD.replace(change[0], change[1])));
        }
    }

    @Test
    static void linksToTheWebAppHaveTheWebsitesSecretOnlyElsewhere() throws Exception {
        String parameters = GOOD.substring("twoefay://enrol?".length()) + "&at=https%3A%2F%2Fphone.example.com";
        for (String place : List.of("https://phone.example.com", "https://PHONE.example.com:8443", "https://login.example.com")) {
            Check.equal("t1", new Activation(place + "/phone/#" + parameters).token);
            Check.fails(Activation.Malformed.class, () -> new Activation(place + "/phone/#" + parameters + "&k=" + PIN));
        }
        Check.that(new Activation("https://app.example.org/phone/#" + parameters + "&k=" + PIN).websiteKey != null, "k");
        for (String place : List.of("http://a.example/phone/#", "https://a.example/#", "https://a.example/x/phone/#", "/phone/#")) {
            Check.fails(Activation.Malformed.class, () -> new Activation(place + parameters));
        }
    }

    @Test
    static void enrolmentIsReadAsItWasStored() throws Exception {
        Enrolment enrolment = new Enrolment("e", new Activation(GOOD + "&k=" + PIN), "push", "Ada's phone");
        enrolment.clockOffset = -5;
        enrolment.pinsSequence = 7;
        enrolment.secretRequestedAt = 9;
        enrolment.pinSecret = new PinSecret(new byte[32]);
        enrolment.codes = new Totp(Json.read(
            "{\"v\":1,\"secret\":\"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ\",\"algorithm\":\"sha1\",\"digits\":6,\"period\":30,"
                + "\"factor\":\"f\"}"));
        String stored = enrolment.json().toString();
        Check.equal(stored, new Enrolment(Json.read(stored)).json().toString());
        Check.fails(Json.Malformed.class, () -> new Enrolment(new Json()));
    }

    @Test
    static void hiddenCharactersAreFound() {
        Check.that(Text.isShowable("Zoë Müller 12.00 € 😀 मुंबई"), "shown");
        for (int point : new int[] {0, 9, 0x7F, 0xAD, 0x200B, 0x202E, 0x2066, 0x3164, 0xFE0F, 0xFEFF, 0xE0041}) {
            Check.that(!Text.isShowable("a" + new String(Character.toChars(point))), Integer.toHexString(point));
        }
        Check.equal("a\uFFFDb", Text.visible("a\u202Eb", 10));
        Check.equal("ab", Text.visible("abc", 2));
    }
}
