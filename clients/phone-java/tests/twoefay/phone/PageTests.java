package twoefay.phone;

import java.nio.charset.StandardCharsets;
import java.security.interfaces.ECPublicKey;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import twoefay.phone.Tests.Test;

/**
 * The examples of the page of the protocol. ECDSA is random, so a signature is verified, not
 * compared.
 */
final class PageTests {
    private static final long ENROLLED = 1_795_251_887L;
    private static final long ANSWERED = 1_795_255_487L;
    private static final long CHANGED = 1_795_341_887L;
    private static final String DEVICE = "d0b1f3a57c9e4d2f8a6b4c2e0d1f3a57";

    private PageTests() {}

    private static String activationUri() {
        Matcher found = Pattern.compile("(?m)^twoefay://enrol\\?.*$").matcher(Page.text());
        Check.that(found.find(), "the page has no activation");
        return found.group();
    }

    private static Enrolment enrolment() throws Exception {
        Enrolment enrolment = new Enrolment("e", new Activation(activationUri()), "0f1e2d3c4b5a69788796a5b4c3d2e1f0", null);
        enrolment.device = DEVICE;
        return enrolment;
    }

    private static ECPublicKey pageKey() throws Exception {
        return P256.publicKey(Json.read(Page.block("json jwk")));
    }

    private static Statements statements(Enrolment enrolment) throws Exception {
        Matcher found = Pattern.compile("`d` is\n`([^`]+)`").matcher(Page.text());
        Check.that(found.find(), "the page has no private key");
        return new Statements(
            enrolment, SoftwareKeys.signing(pageKey(), SoftwareKeys.privateKey(found.group(1)), new ArrayList<>()));
    }

    /** Header and claims are those of the page, byte for byte; both signatures are right. */
    private static void compare(String name, String made) throws Exception {
        String[] parts = made.split("\\.");
        Check.equal(Page.block("json " + name + " header"), new String(Base64Url.decode(parts[0]), StandardCharsets.UTF_8));
        Check.equal(Page.block("json " + name + " claims"), new String(Base64Url.decode(parts[1]), StandardCharsets.UTF_8));
        String shown = Page.block("text " + name + " jws");
        Check.equal(shown.substring(0, shown.lastIndexOf('.')), parts[0] + "." + parts[1]);
        Check.that(new Jws(shown).isSignedBy(pageKey()), name + " of the page is not signed");
        Check.that(new Jws(made).isSignedBy(pageKey()), name + " is not signed");
    }

    @Test
    static void thumbprintIsThatOfThePage() throws Exception {
        Check.equal(Page.block("json jwk"), P256.jwk(pageKey()).toString());
        Check.equal(Page.block("text thumbprint"), P256.thumbprint(pageKey()));
    }

    @Test
    static void activationIsRead() throws Exception {
        Activation activation = new Activation(activationUri());
        Check.equal("https://login.example.com:8080", activation.relay.text);
        Check.equal(8080, activation.relay.port);
        Check.equal("shop", activation.website);
        Check.equal("Y8jqGfueMSwWvPxgmFM0uwl05lG6yTFSKTpJib3w0OI", Base64Url.encode(activation.pin));
        Check.equal(32, activation.websiteKey.length);
    }

    @Test
    static void statementsAreThoseOfThePage() throws Exception {
        Enrolment enrolment = enrolment();
        Statements statements = statements(enrolment);
        compare("enrol", statements.proof(null, ENROLLED));
        compare("token", statements.pushToken("a9b8c7d6e5f40312a9b8c7d6e5f40312", CHANGED));
        compare("dpop", statements.dpop("POST", "/pending", "WxKIvbhszzPMAVjaGh9AXA", "eyJ0IjoxNzk1MjU1NDg3fQ", ANSWERED));
        Json agreement = Json.read(Page.block("json secret claims")).object("agreement");
        compare("secret", statements.secretRequest(P256.publicKey(agreement), CHANGED));
        Status status = new Status();
        status.os = "Android";
        status.osVersion = "16";
        status.patchLevel = 202610L;
        status.appVersion = "3.2.1";
        status.model = "Pixel 10";
        status.battery = 81L;
        status.screenLock = true;
        status.rooted = false;
        compare("status", statements.status(status, CHANGED));
    }

    @Test
    static void bindingIsThatOfThePage() throws Exception {
        Check.equal(Page.block("text binding jws"), statements(enrolment()).binding(null));
    }

    @Test
    static void decisionIsThatOfThePage() throws Exception {
        String context = Page.block("text context base64url");
        Check.equal(Page.block("json context"), new String(Base64Url.decode(context), StandardCharsets.UTF_8));
        Json entry = new Json()
            .put("challenge", "9a41d7c05b3e4f6a8c1d2e3f4a5b6c7d")
            .put("nonce", "eDd7UldXtJRCf4kBT5fXmQ")
            .put("context", context)
            .put("expires_at", "2026-11-21T10:09:30.120Z");
        Challenge challenge = new Challenge(entry, "shop", java.time.Instant.parse("2026-11-21T10:04:31.002Z"));
        Check.equal(299_118L, challenge.timeLeft.toMillis());
        Check.equal("Zoë Müller", challenge.context.details.get(1).value);
        Decision decision = Decision.approve("47").verifiedBy(Decision.Verification.BIOMETRIC, 3);
        compare("decision", statements(enrolment()).decision(challenge, decision.at(52.52, 13.41), ANSWERED));
    }

    @Test
    static void pinIsThatOfThePage() throws Exception {
        Matcher found = Pattern.compile("With the secret\n`([^`]+)`").matcher(Page.text());
        Check.that(found.find(), "the page has no secret");
        PinSecret secret = new PinSecret(Base64Url.decode(found.group(1)));
        PinSecret.Key old = secret.pin("2580");
        Check.equal(Page.block("json pin jwk"), P256.jwk(old.publicKey).toString());
        Check.equal(Page.block("json puk jwk"), P256.jwk(secret.puk("314159265358").publicKey).toString());
        // The page does not tell the new PIN: its public key stands in the claims.
        String shown = Page.block("text pin jws");
        Check.equal(Page.block("json pin header") + Page.block("json pin claims"),
            new Jws(shown).header.toString() + new Jws(shown).claims);
        Check.that(new Jws(shown).isSignedBy(pageKey()), "the change is not signed");
        String both = shown.substring(0, shown.lastIndexOf('.') + 1);
        Check.that(new Jws(both + Page.block("text pin signature")).isSignedBy(old.publicKey), "by the old PIN");
        Check.that(new Jws(both + old.signature(shown)).isSignedBy(old.publicKey), "by this program");
    }

    @Test
    static void statementsOfTheRelayAreRead() throws Exception {
        for (String name : new String[] {"message", "time"}) {
            Jws jws = new Jws(Page.block("text " + name + " jws"));
            Check.equal(Page.block("json " + name + " header"), jws.header.toString());
            Check.equal(Page.block("json " + name + " claims"), jws.claims.toString());
            Check.that(jws.isSignedBy((java.security.PublicKey) pageKey()), name + " is not signed");
        }
    }

    @Test
    static void pinsOfThePageAreTaken() throws Exception {
        Enrolment enrolment = enrolment();
        String statement = Page.block("text pins jws");
        Check.equal("another authority has signed it",
            Check.fails(Json.Malformed.class, () -> new PinStatement(statement, enrolment, CHANGED)).getMessage());
        Json claims = Json.read(Page.block("json pins claims"));
        List<Object> pins = claims.list("pins");
        enrolment.pins = List.of((String) pins.get(0));
        PinStatement taken = new PinStatement(statement, enrolment, CHANGED);
        Check.equal(pins, taken.pins);
        Check.equal(claims.integer("seq"), taken.sequence);
        Check.fails(Json.Malformed.class, () -> new PinStatement(statement, enrolment, claims.integer("exp")));
        enrolment.pinsSequence = taken.sequence;
        Check.fails(Json.Malformed.class, () -> new PinStatement(statement, enrolment, CHANGED));
    }

    @Test
    static void pushesHaveTexts() throws Exception {
        Json push = Json.read(Page.block("json web push payload"));
        Check.equal("The Shop", Strings.title(push, "en"));
        Check.equal("Is this you, at members, from Berlin, DE (192.0.2.7)?", Strings.text(push, "en"));
        Check.equal("Sind Sie das, bei members, aus Berlin, DE (192.0.2.7)?", Strings.text(push, "de"));
        Json minimal = Json.read(Page.block("json minimal web push payload"));
        Check.equal("Login request", Strings.title(minimal, "en"));
        Check.equal("Sind Sie das?", Strings.text(minimal, "de"));
    }

    /** A key that this program does not know is shown as the general text. */
    @Test
    static void textsAreThoseOfThePage() throws Exception {
        Matcher row = Pattern.compile("(?m)^\\| `(TWOEFAY_[A-Z_]+)` \\| ([^|]+) \\| ([^|]+) \\|$").matcher(Page.text());
        int count = 0;
        while (row.find()) {
            count += 1;
            if (row.group(1).equals("TWOEFAY_TITLE")) {
                Check.equal(row.group(2) + row.group(3), Strings.title(new Json(), "en") + Strings.title(new Json(), "de"));
                continue;
            }
            // Each argument is its own place.
            List<Object> places = new ArrayList<>();
            for (int place = 1; row.group(2).contains("%" + place + "$s"); place++) {
                places.add("%" + place + "$s");
            }
            Json push = new Json().put("loc-key", row.group(1)).put("loc-args", places);
            Check.equal(row.group(2), Strings.text(push, "en"));
            Check.equal(row.group(3), Strings.text(push, "de"));
            // Firebase carries texts only, so the list is the text of a list.
            String list = new Json().put("l", places).toString();
            Json data = new Json().put("loc-key", row.group(1)).put("loc-args", list.substring(5, list.length() - 1));
            Check.equal(row.group(2), Strings.text(data, "en"));
        }
        Check.equal(9, count);
        for (Json odd : List.of(
            new Json().put("loc-key", "TWOEFAY_NEW").put("loc-args", List.of("a")),
            new Json().put("loc-key", "TWOEFAY_LOGIN_IP"), new Json().put("loc-key", "TWOEFAY_LOGIN_IP").put("loc-args", "["),
            new Json().put("loc-key", "TWOEFAY_LOGIN_IP").put("loc-args", List.of("a\u202Eb")),
            new Json().put("loc-key", "TWOEFAY_LOGIN_IP").put("loc-args", List.of(1L)))) {
            Check.equal("Is this you?", Strings.text(odd, "fr"));
        }
    }

    @Test
    static void attestationChallengeIsThatOfThePage() throws Exception {
        String page = java.nio.file.Files.readString(
            java.nio.file.Path.of(System.getProperty("twoefay.docs"), "phones", "attestation.md"));
        Matcher found = Pattern.compile("(?m)^android (\\S+)$").matcher(page);
        Check.that(found.find(), "the page has no challenge");
        Check.equal(found.group(1), Base64Url.encode(Enroller.attestationChallenge(enrolment())));
    }
}
