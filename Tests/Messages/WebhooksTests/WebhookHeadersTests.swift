import TestSupport
import Testing
import Webhooks
import World

@Suite("The header fields of a webhook") struct WebhookHeadersTests {
    @Test(
        "Malformed timestamps",
        arguments: [
            "", " ", "+1614265330", "-1", "01614265330", "1614265330.0", "1.6e9", " 1614265330", "1614265330 ",
            "1614265330\n", "0x60", "１６１４２６５３３０", "9223372036854775807", "9223372036854775808", "1000000000000",
        ])
    func malformedTimestampIsRefused(text: String) {
        #expect(Published.fault(of: Published.fields(timestamp: text)) == .malformed(.timestamp))
    }

    @Test func extremeTimestampsAreTooOldOrTooNew() {
        #expect(Published.fault(of: Published.fields(timestamp: "0")) == .tooOld)
        #expect(Published.fault(of: Published.fields(timestamp: "999999999999")) == .tooNew)
    }

    @Test(
        "Malformed ids",
        arguments: [
            "", " ", "a b", "a.b", "msg.1614265330", "a\n", "a\u{7f}", "é", String(repeating: "a", count: 257),
        ])
    func malformedIDIsRefused(text: String) {
        #expect(Published.fault(of: Published.fields(id: text)) == .malformed(.id))
        #expect(WebhookID(text) == nil)
    }

    @Test func longestIDIsAccepted() { #expect(WebhookID(String(repeating: "a", count: 256)) != nil) }

    @Test(arguments: ["", String(repeating: "v2,a ", count: 820) + Published.signature])
    func emptyOrLongListOfSignaturesIsRefused(text: String) {
        #expect(Published.fault(of: Published.fields(signature: text)) == .malformed(.signature))
    }

    @Test(arguments: [
        " ", "v1", "," + Published.signature, Published.signature + "," + Published.signature, "v1,g0hM9SsE",
        String(Published.signature.dropLast()), Published.signature + "=",
        "v1, " + Published.signature.dropFirst(3), Published.signature + "\n",
        "v1,g0hM9SsE-OTPJTGt_tmIKtSyZlE3uFJELVlNIOLJ1OE=", "v1,é", "v1\u{0}",
    ])
    func malformedSignatureProvesNothingAndDoesNoHarm(text: String) {
        #expect(Published.fault(of: Published.fields(signature: text)) == .signature)
        let both = "\(text)  \(Published.signature) "
        #expect(Published.fault(of: Published.fields(signature: both)) == nil)
    }

    @Test(
        "Signatures of other versions prove nothing, and do no harm",
        arguments: ["v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw==", "v2,a,b,c", "V1,x", "v10,", "hello,world"])
    func otherSignatureVersionsAreIgnored(text: String) {
        #expect(Published.fault(of: Published.fields(signature: text)) == .signature)
        let both = "\(text) \(Published.signature)"
        #expect(Published.fault(of: Published.fields(signature: both)) == nil)
    }

    @Test func signatureVersionIsNotInterchangeable() {
        let text = "v2" + Published.signature.dropFirst(2)
        #expect(Published.fault(of: Published.fields(signature: text)) == .signature)
    }

    @Test func fieldNamesAreCaseInsensitive() {
        let fields =
            [("Content-Type", "application/json"), ("webhook-ids", "x")]
            + Published.fields().map { ($0.name == "webhook-id" ? "Webhook-ID" : $0.name.uppercased(), $0.value) }
        #expect(Published.fault(of: fields) == nil)
    }

    @Test("Each field may occur once", arguments: WebhookHeaders.Field.allCases) func repeatedFieldIsRefused(
        field: WebhookHeaders.Field
    ) {
        let again = Published.fields().first { $0.name == field.rawValue }.map { [$0] } ?? []
        #expect(Published.fault(of: Published.fields() + again) == .repeated(field))
    }

    @Test func everyPartIsSigned() {
        #expect(Published.fault(of: Published.fields(id: Published.id + "x")) == .signature)
        #expect(Published.fault(of: Published.fields(timestamp: "\(Published.seconds + 1)")) == .signature)
        #expect(Published.fault(of: Published.fields(), body: []) == .signature)
        for at in Published.body.indices {
            var body = Published.body
            body[at] ^= 1
            #expect(Published.fault(of: Published.fields(), body: body) == .signature)
        }
    }

    /// Id, time and body are separated by full stops, so no part of one can move into another.
    @Test func partsCannotShiftBetweenFields() throws {
        let secret = try #require(WebhookSecret(Published.secret))
        let head = WebhookHeaders(
            id: try #require(WebhookID("a")), body: Array("1614265330.x".utf8), at: Published.now, secrets: [secret])
        let moved = Published.fields(id: "a.1614265330", signature: head.fields[2].value)
        #expect(Published.fault(of: moved, body: Array("x".utf8)) == .malformed(.id))
    }

    @Test(arguments: [[], Array("{}".utf8), [0, 0xff, 0x2e, 0x0a]] as [[UInt8]]) func anyBodyIsSigned(body: [UInt8])
        throws
    {
        let secret = try #require(WebhookSecret(Published.secret))
        let now = Timestamp(milliseconds: 1_800_000_000_999)
        let head = WebhookHeaders(id: try #require(WebhookID("a")), body: body, at: now, secrets: [secret])
        #expect(head.sentAt == Timestamp(seconds: 1_800_000_000))
        let read = try WebhookCheck(secrets: [secret]).verify(head.fields, body: body, at: now)
        #expect(read == head)
    }

    @Test func randomHeadersAreRefused() {
        let jitter = SeededRandomness(seed: 6)
        let letters = Array("v1v2,. =+/aZ09-_\t\n\u{0}é".unicodeScalars)
        for _ in 0..<3000 {
            let right = Published.fields()
            var fields = right
            let field = Int(jitter.number(below: 3))
            var scalars = Array(fields[field].value.unicodeScalars)
            for _ in 0...Int(jitter.number(below: 3)) {
                let at = Int(jitter.number(below: UInt64(scalars.count + 1)))
                let letter = letters[Int(jitter.number(below: UInt64(letters.count)))]
                switch jitter.number(below: 3) {
                case 0: scalars.insert(letter, at: at)
                case 1 where at < scalars.count: scalars[at] = letter
                case _ where at < scalars.count: scalars.remove(at: at)
                default: break
                }
            }
            fields[field].value = String(String.UnicodeScalarView(scalars))
            // An additional entry of another version, beside the right one, changes nothing.
            let isHarmless =
                fields[field].value == right[field].value
                || field == 2 && fields[2].value.split(separator: " ").contains { $0 == Published.signature }
            guard !isHarmless else { continue }
            #expect(Published.fault(of: fields) != nil, "\(fields)")
        }
    }
}
