import Bytes
import Crypto
import JSON
import Testing
import World

@testable import Domain

@Suite struct IdentifierTests {
    @Test func textAndBytesAreOneAnother() throws {
        let bytes = (0..<16).map { UInt8($0 * 17) }
        let id = try #require(ChallengeID(bytes))
        #expect(id.bytes == bytes)
        #expect(id.text == "00112233445566778899aabbccddeeff")
        #expect(ChallengeID(id.text) == id)
    }

    @Test(arguments: [
        "", "00", "00112233445566778899AABBCCDDEEFF", "00112233445566778899aabbccddeeff0",
        "g0112233445566778899aabbccddeeff",
    ])
    func otherTextsNameNothing(text: String) {
        #expect(ChallengeID(text) == nil)
    }
}

@Suite struct OperationTests {
    private struct Counting: Randomness {
        func fill(_ bytes: UnsafeMutableRawBufferPointer) {
            for index in bytes.indices { bytes[index] = UInt8(truncatingIfNeeded: index) }
        }
    }

    private func operations(_ key: String) -> Operations {
        Operations(masterKey: Secret(utf8: key), randomness: Counting())
    }

    @Test func theSameOperationMakesUpTheSameValues() {
        let first = operations("k").new()
        let again = operations("k").again(first.id)
        #expect((first.identifier("a") as UserID) == again.identifier("a"))
        #expect(first.digits("number", count: 6) == again.digits("number", count: 6))
    }

    @Test func labelsAndKeysKeepValuesApart() {
        let one = operations("k").new()
        let other = operations("l").again(one.id)
        #expect((one.identifier("a") as UserID) != one.identifier("b"))
        #expect((one.identifier("a") as UserID) != other.identifier("a"))
        #expect(operations("k").fixed("a", [1]).id != operations("k").fixed("a", [2]).id)
        #expect(operations("k").fixed("a", [1]).id == operations("k").fixed("a", [1]).id)
    }

    @Test func digitsAreDigitsWithTheirZeros() {
        let all = (0..<200).map { operations("k").fixed("n", [UInt8($0)]).digits("number", count: 2) }
        #expect(all.allSatisfy { $0.utf8.count == 2 && $0.allSatisfy(\.isNumber) })
        #expect(all.contains { $0.hasPrefix("0") })
        #expect(Set(all).count > 50)
    }
}

@Suite struct PolicyTests {
    @Test func everyKeyCanBeReadBackAsItWasWritten() throws {
        var policy = Policy()
        try policy.set("answers", to: "website")
        try policy.set("lifetime", to: "60")
        try policy.set("number", to: "6")
        try policy.set("push-detail", to: "minimal")
        try policy.set("guesses", to: "3")
        #expect(try Policy().changed(by: policy.json) == policy)
        #expect(Policy.keys.allSatisfy { policy.text(of: $0) != nil })
    }

    @Test(arguments: [
        ("answers", "signed"), ("answers", ""), ("lifetime", "59"), ("lifetime", "601"), ("lifetime", "x"),
        ("number", "3"),
        ("guesses", "0"), ("push-detail", "FULL"), ("colour", "red"),
    ])
    func whatIsNotAPolicyIsRefused(key: String, text: String) {
        var policy = Policy()
        #expect(throws: Policy.Fault.self) { try policy.set(key, to: text) }
        #expect(policy == Policy())
    }

    @Test func aWebsiteChangesOnlyWhatItNames() throws {
        var defaults = Policy()
        try defaults.set("lifetime", to: "120")
        let policy = try defaults.changed(by: #"{"number":"0","written-by-a-newer-relay":"yes"}"#)
        #expect(policy.number == 0 && policy.lifetime == 120)
        #expect(throws: Policy.Fault.self) { try defaults.changed(by: "[]") }
    }
}

@Suite struct ContextTests {
    @Test func theBytesSayEverythingAndNothingThatWasNotSaid() throws {
        let at = try #require(Timestamp(rfc3339: "2026-11-21T08:22:34.123Z"))
        var context = Context(
            website: "shop", displayName: "The Shop", username: "ada", service: nil, action: nil, details: [], ip: nil,
            userAgent: nil, request: nil, numberDigits: 0, createdAt: at, expiresAt: at + .seconds(60))
        #expect(
            String(decoding: context.bytes, as: UTF8.self)
                == #"{"v":1,"website":"shop","display_name":"The Shop","username":"ada","number_digits":0,"#
                + #""created_at":"2026-11-21T08:22:34.123Z","expires_at":"2026-11-21T08:23:34.123Z"}"#)
        context.service = "pay"
        context.details = [Context.Detail(label: "amount", value: "12 €")]
        context.ip = "203.0.113.7"
        let object = try #require(try JSONReader.read(context.bytes).object)
        #expect(object["details"]?.array?.first?.object?["value"]?.string == "12 €")
        #expect(Context.shownInPush(context.bytes) == (service: "pay", ip: "203.0.113.7"))
    }
}
