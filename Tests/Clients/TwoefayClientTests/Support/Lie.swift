import Bytes
import Crypto
import JSON
import Testing
import TwoefayClient

/// A forgery and the check that has to detect it.
struct Lie: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let fault: ReceiptFault
    let forge: @Sendable (inout Login) throws -> LoginEvidence

    init(_ name: String, _ fault: ReceiptFault, _ forge: @escaping @Sendable (inout Login) throws -> LoginEvidence) {
        testDescription = name
        self.fault = fault
        self.forge = forge
    }
}

extension Lie {
    /// Claims of a relay about a login that the website requested differently or the user did not
    /// approve.
    static let all: [Lie] = [
        // Keys.
        Lie("its own key in place of the phone's", .signature) { try $0.signed(by: try P256PrivateKey.generate()) },
        Lie("its own key, sent along in the header", .signature) { login in
            let own = try P256PrivateKey.generate()
            login.header["jwk"] = .object(own.publicKey.jwk)
            return try login.signed(by: own)
        },
        Lie("its own key under a device of its own", .unknownDevice) { login in
            let own = try P256PrivateKey.generate()
            login.header["kid"] = "eeee"
            let answered = try login.signed(by: own)
            return LoginEvidence(device: "eeee", receipt: answered.receipt, context: answered.context)
        },
        Lie("a phone of another user", .unknownDevice) { login in
            let other = try Login()
            let answered = try login.signed(by: other.key)
            return LoginEvidence(device: "another user's", receipt: answered.receipt, context: answered.context)
        },
        Lie("what the phone signed as another device", .device) { login in
            login.header["kid"] = "1111"
            return try login.signed()
        },
        Lie("no device in the header", .device) { login in
            login.header["kid"] = nil
            return try login.signed()
        },

        // Other objects that the phone signed.
        Lie("a denial presented as a success", .decision("deny")) { login in
            login.claims["decision"] = "deny"
            return try login.signed()
        },
        Lie("a fraud report presented as a success", .decision("fraud")) { login in
            login.claims["decision"] = "fraud"
            return try login.signed()
        },
        Lie("an enrolment", .type) { login in
            login.header["typ"] = "twoefay-enrol+jwt"
            return try login.signed()
        },
        Lie("a device token", .type) { login in
            login.header["typ"] = "twoefay-token+jwt"
            return try login.signed()
        },
        Lie("something without a type", .type) { login in
            login.header["typ"] = nil
            return try login.signed()
        },
        Lie("a decision of a version to come", .claims) { login in
            login.claims["v"] = 2
            return try login.signed()
        },

        // Receipts for something else.
        Lie("another website's receipt", .audience) { login in
            login.claims["aud"] = .string("\(Login.origin)#bank")
            login.context["website"] = "bank"
            return try login.signed()
        },
        Lie("a receipt through another relay", .audience) { login in
            login.claims["aud"] = "https://relay.example.net:8080#shop"
            return try login.signed()
        },
        Lie("an old receipt", .request) { login in
            let old = try login.signed()
            login.asked.request = "r-8g4l"
            login.asked.challenge = "another"
            return old
        },
        Lie("a receipt for the login of another browser", .request) { login in
            login.claims["request"] = "r-of-mallory"
            login.context["request"] = "r-of-mallory"
            return try login.signed()
        },
        Lie("no request at all", .request) { login in
            login.claims["request"] = nil
            login.context["request"] = nil
            return try login.signed()
        },
        Lie("another request in the context than in the claims", .field("request")) { login in
            login.context["request"] = "r-of-mallory"
            return try login.signed()
        },
        Lie("another challenge", .challenge) { login in
            login.claims["challenge"] = "00000000000000000000000000000000"
            return try login.signed()
        },

        // Numbers.
        Lie("a changed number", .number) { login in
            login.claims["number"] = "70"
            return try login.signed()
        },
        Lie("a number that nobody typed", .number) { login in
            login.claims["number"] = nil
            return try login.signed()
        },
        Lie("a number as a number", .claims) { login in
            login.claims["number"] = 7
            return try login.signed()
        },
        Lie("a number without its zero", .number) { login in
            login.claims["number"] = "7"
            return try login.signed()
        },
        Lie("a number where none was shown", .number) { login in
            login.asked.number = nil
            return try login.signed()
        },
        Lie("no number for anybody", .digits) { login in
            login.asked.number = nil
            login.claims["number"] = nil
            login.context["number_digits"] = 0
            return try login.signed()
        },
        Lie("an approval that was kept back", .age) { login in
            login.asked.askedAt -= 1
            return try login.signed()
        },
        Lie("a context that asks for no digits", .field("number_digits")) { login in
            login.context["number_digits"] = 0
            return try login.signed()
        },

        // The context was changed on its way to the website, so the phone signed another.
        Lie("another amount signed than in the context", .contextDigest) { login in
            let original = Base64URL.encode(login.shown)
            login.context["details"] = [["label": "amount", "value": "9.000,00 €"]]
            return LoginEvidence(device: login.device, receipt: try login.signed().receipt, context: original)
        },
        Lie("the same members in another order", .contextDigest) { login in
            let signed = try login.signed()
            let turned = JSONObject(login.context.members.reversed().map { ($0.name, $0.value) })
            return LoginEvidence(
                device: signed.device, receipt: signed.receipt, context: Base64URL.encode(JSONWriter.write(turned)))
        },
        Lie("the same members with spaces between them", .contextDigest) { login in
            let signed = try login.signed()
            return LoginEvidence(
                device: signed.device, receipt: signed.receipt, context: Base64URL.encode(login.shown + [0x20]))
        },
        Lie("no context", .contextDigest) { login in
            LoginEvidence(device: login.device, receipt: try login.signed().receipt, context: "")
        },
        Lie("a digest cut short", .claims) { login in
            login.claims["context"] = .string(Base64URL.encode(SHA256.hash(login.shown).dropLast()))
            return try login.signed()
        },

        // The context was changed on its way to the phone, so the phone signed values that the
        // website never sent.
        Lie("another amount", .field("details")) { login in
            login.context["details"] = [
                ["label": "amount", "value": "9.000,00 €"], ["label": "payee", "value": "Zoë"],
            ]
            return try login.signed()
        },
        Lie("details in another order", .field("details")) { login in
            login.context["details"] = [
                ["label": "payee", "value": "Zoë"], ["label": "amount", "value": "12,00 €"],
            ]
            return try login.signed()
        },
        Lie("a detail left out", .field("details")) { login in
            login.context["details"] = [["label": "amount", "value": "12,00 €"]]
            return try login.signed()
        },
        Lie("a detail too many", .field("details")) { login in
            login.asked.details.removeLast()
            return try login.signed()
        },
        Lie("a detail with something beside it", .field("details")) { login in
            login.context["details"] = [
                ["label": "amount", "value": "12,00 €", "note": "a test, just approve"],
                ["label": "payee", "value": "Zoë"],
            ]
            return try login.signed()
        },
        Lie("a text that only looks the same", .field("details")) { login in
            login.context["details"] = [
                ["label": "amount", "value": "12,00 €"], ["label": "payee", "value": "Zoe\u{308}"],
            ]
            return try login.signed()
        },
        Lie("the name of another website on the screen", .field("display_name")) { login in
            login.context["display_name"] = "Your Bank"
            return try login.signed()
        },
        Lie("a member that nobody knows", .field("note")) { login in
            login.context["note"] = "Only a test, please approve."
            return try login.signed()
        },
        Lie("a context of a version to come", .field("v")) { login in
            login.context["v"] = 2
            return try login.signed()
        },
        Lie("a text as a number", .field("username")) { login in
            login.context["username"] = 7
            login.asked.username = "7"
            return try login.signed()
        },
    ]

    /// Returns a context with a duplicate member. The phone may show the first value, and the
    /// website may read the last.
    static func readInTwoWays(_ login: inout Login) throws -> LoginEvidence {
        let twice = Array(#"{"action":"login","#.utf8) + login.shown.dropFirst()
        login.claims.set("context", .string(Base64URL.encode(SHA256.hash(twice))))
        return LoginEvidence(
            device: login.device, receipt: try login.signed().receipt, context: Base64URL.encode(twice))
    }
}
