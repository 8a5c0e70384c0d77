import Domain
import HTTP
import JSON
import Relay
import TestSupport
import Testing

@testable import API

/// The schemas of parameters, beside the reader: both accept the same values, so that a website can
/// check its requests with the OpenAPI document.
struct RequestSchemaTests {
    private typealias P = Parameters

    private static func text(_ letter: String, _ count: Int) -> String { String(repeating: letter, count: count) }

    private func expectAgreement(
        _ parameter: Parameter, accepted: [String], refused: [String], _ place: SourceLocation = #_sourceLocation
    ) {
        for (texts, isAccepted) in [(accepted, true), (refused, false)] {
            for text in texts {
                var faults: [FieldFault] = []
                parameter.check(.string(text), parameter.name, &faults)
                #expect(faults.isEmpty == isAccepted, "the reader: \(parameter.name) \(text)", sourceLocation: place)
                let schema = JSONSchemaCheck(components: [:]).faults(.string(text), parameter.schema)
                #expect(
                    schema.isEmpty == isAccepted, "the schema: \(parameter.name) \(text)", sourceLocation: place)
            }
        }
    }

    @Test func linesAgree() {
        let hidden = [
            "\u{0}", "\u{1f}", "\u{7f}", "\u{9f}", "\u{ad}", "\u{34f}", "\u{600}", "\u{605}", "\u{61c}", "\u{6dd}",
            "\u{70f}", "\u{890}", "\u{891}", "\u{8e2}", "\u{115f}", "\u{1160}", "\u{17b4}", "\u{17b5}", "\u{180b}",
            "\u{180f}", "\u{200b}", "\u{200f}", "\u{2028}", "\u{202e}", "\u{2060}", "\u{206f}", "\u{3164}", "\u{e000}",
            "\u{f8ff}", "\u{fe00}", "\u{fe0f}", "\u{feff}", "\u{ffa0}", "\u{fff0}", "\u{fffb}",
            "\u{fffe}", "\u{ffff}",
        ]
        let shown = [
            " ", "~", "\u{a0}", "\u{ac}", "\u{ae}", "\u{350}", "\u{606}", "\u{61d}", "\u{200a}", "\u{2010}", "\u{2027}",
            "\u{202f}", "\u{205f}", "\u{3163}", "\u{f900}", "\u{fdcf}", "\u{fdf0}", "\u{fe10}", "\u{fffc}", "\u{fffd}",
            "\u{1f600}",
        ]
        expectAgreement(P.username.required, accepted: shown, refused: hidden + ["", Self.text("é", 65)])
        expectAgreement(
            P.text.required, accepted: ["a", "a\n", "\n\na\n\nb", " \n a"],
            refused: ["", "\n", "  ", " \n ", "a\rb", "a\t"])
    }

    /// All characters up to U+FFFF: where the schema differs from the reader, Unicode has not assigned
    /// the character.
    @Test func schemaOfLinesDiffersByUnassignedCharactersOnly() throws {
        let pattern = try #require(P.username.schema["pattern"]?.string)
        let regex = try Regex(pattern).matchingSemantics(.unicodeScalar)
        for value in UInt32(0)...0xffff {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let text = String(scalar)
            let isRefused = FieldRule.username(text) != nil
            let isUnassigned = scalar.properties.generalCategory == .unassigned
            guard text.contains(regex) == isRefused, !(isRefused && isUnassigned) else { continue }
            Issue.record("U+\(String(value, radix: 16)): the reader \(isRefused ? "refuses" : "accepts") it")
        }
    }

    @Test func addressesAndLanguagesAgree() {
        let local = Self.text("a", 64)
        expectAgreement(
            P.email.required, accepted: ["a@b.c", "\(local)@b.c", "a.b+c@d-e.f"],
            refused: ["a@b", "a\(local)@b.c", "a..b@c.d", ".a@b.c", "a@-b.c", "a@\(local).c", "a@b@c.d"])
        let long = "de-" + [Self.text("a", 8), Self.text("b", 8), Self.text("c", 8), "ddddd"].joined(separator: "-")
        expectAgreement(
            P.language.required,
            accepted: ["de", "de-AT, en;q=0.8", "*;q=0", " de ; Q=1.000 ,en", long, "en,\(long)"],
            refused: ["d", "de_AT", "de;q=2", "de;q=0.1234", "de;q", "de,", "\(long)d", "en,\(long)-d"])
    }

    @Test func secretsAgree() {
        let whole = Self.text("A", 24)
        expectAgreement(
            P.seed.required,
            accepted: [
                whole + "AE", whole + "aaaQ", whole + "AAAA2", whole + "AAAAAAY", whole + Self.text("A", 8),
                whole + "AE======", Self.text("AAAA-AAAA ", 4), " " + whole + "AE = -", Self.text("A", 205),
                "hex:" + Self.text("0f", 16), "HEX:" + Self.text("0F", 128),
            ],
            refused: [
                whole, whole + "A", whole + "AB", whole + "AAAB", whole + "AAAAB", whole + "AAAAAAB",
                whole + "AAA", whole + "AAAAAA", whole + "AE=A", whole + "A1", Self.text("A", 207), Self.text("A", 208),
                "hex:" + Self.text("0f", 15), "hex:" + Self.text("0f", 129), "hex:" + Self.text("0f", 16) + "0",
            ])
    }

    @Test func timesAgree() {
        expectAgreement(
            P.expiresAt.required,
            accepted: ["2026-12-31T23:00:00Z", "1970-01-01T00:00:00.000Z", "9999-12-30T23:59:59.999Z"],
            refused: [
                "1969-12-31T23:59:59Z", "9999-12-31T00:00:00Z", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z",
                "2026-12-31T24:00:00Z", "2026-12-31T23:60:00Z", "2026-12-31T23:00:00+00:00", "2026-12-31T23:00:00.Z",
            ])
    }

    /// JSON Schema has no difference between 60 and 60.0, and PHP writes a float as 60.0.
    @Test func wholeNumberMayHaveAPoint() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.enrol("bob")
        for number in ["60.0", "6e1", "60"] {
            let opened = await shop.post("/login", raw: Array(#"{"username":"bob","expires_in":\#(number)}"#.utf8))
            #expect(opened.status == 201, "\(number): \(opened.text)")
        }
        for (number, fault) in [("60.5", "type"), ("1e300", "type"), ("59.0", "format"), (#""60""#, "type")] {
            let refused = await shop.post("/login", raw: Array(#"{"username":"bob","expires_in":\#(number)}"#.utf8))
            #expect(refused.status == 400 && refused.faults == ["expires_in \(fault)"], "\(refused.text)")
        }
    }

    /// Only websites have keys, but the document has one schema for all callers of a route.
    @Test func malformedKeyIsRefusedWhoeverSendsIt() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (_, phone) = try await shop.enrol("bob")
        let (challenge, number) = try await shop.login("bob")
        let body: JSONObject = ["challenge": .string(challenge), "number": .string(number ?? "")]
        let refused = await phone.send("POST", "/success", body, fields: [("idempotency-key", "a b")])
        #expect(refused.status == 400 && refused.faults == ["Idempotency-Key format"], "\(refused.text)")
        #expect(await phone.send("POST", "/success", body, fields: [("idempotency-key", "a")]).status == 200)
    }

    /// The request has the right form, but its parts are of different users, or the policy does not
    /// allow it: no schema can say so.
    @Test func rightFormIsNeverInvalid() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (bob, _) = try await shop.enrol("bob")
        let (eve, _) = try await shop.enrol("eve")
        let (challenge, _) = try await shop.login("bob")
        let apart = await shop.send("POST", "/login", ["username": "bob", "token": .string(eve)])
        #expect(apart.status == 409 && apart.faults == ["username mismatch"], "\(apart.text)")
        for (path, code) in [("/auth", nil), ("/backup", "123456")] as [(String, JSONValue?)] {
            var body: JSONObject = ["challenge": .string(challenge), "token": .string(eve)]
            body.set("otp", code)
            let other = await shop.send("POST", path, body)
            #expect(other.status == 409 && other.faults == ["token mismatch"], "\(other.text)")
            body = ["token": .string(bob)]
            body.set("otp", code)
            let alone = await shop.send("POST", path, body)
            #expect(alone.status == 403 && alone["code"] == "forbidden", "\(alone.text)")
        }
    }
}
