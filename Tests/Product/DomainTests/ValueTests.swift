import Bytes
import Crypto
import JSON
import Testing
import World

@testable import Domain

@Suite struct IdentifierTests {
    @Test func identifierTextAndBytesRoundTrip() throws {
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
    func malformedIdentifierIsRefused(text: String) {
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

    @Test func sameOperationDerivesTheSameIDs() {
        let first = operations("k").new(isRepeatable: true)
        let again = operations("k").again(first.id)
        #expect((first.identifier("a") as UserID) == again.identifier("a"))
    }

    @Test func derivedIDsDifferByLabelAndKey() {
        let one = operations("k").new()
        let other = operations("l").again(one.id)
        #expect((one.identifier("a") as UserID) != one.identifier("b"))
        #expect((one.identifier("a") as UserID) != other.identifier("a"))
        #expect(operations("k").fixed("a", [1]).id != operations("k").fixed("a", [2]).id)
        #expect(operations("k").fixed("a", [1]).id == operations("k").fixed("a", [1]).id)
    }

    /// The example of RFC 9562, appendix A.6.
    @Test func timedIDsAreUUIDsOfVersion7() throws {
        let example = try #require(UserID("017f22e279b07cc398c4dc0c0c07398f"))
        #expect(example.timed(Timestamp(milliseconds: 1_645_557_742_000)) == example)
        let bits = try #require(UserID("ffffffffffff0cc318c4dc0c0c07398f"))
        #expect(bits.timed(as: example) == example)
    }

    /// The rows of an operation go to the same end of their indexes.
    @Test func idsOfAnOperationBeginWithItsTime() throws {
        let (now, later) = (Clock(milliseconds: 1_800_000_000_001), Clock(milliseconds: 1_800_000_000_002))
        let operations = Operations(key: Secret(utf8: "k"), randomness: Counting(), time: now)
        let next = Operations(key: Secret(utf8: "k"), randomness: Counting(), time: later)
        let first = operations.new()
        let derived: UserID = first.identifier("a")
        let time = "01a3185c5001"
        #expect(UInt64(time, radix: 16) == 1_800_000_000_001)
        #expect([first.id.text, derived.text, first.part("b").id.text].allSatisfy { $0.hasPrefix(time + "7") })
        #expect((first.part("b").identifier("c") as UserID).text.hasPrefix(time))
        #expect(next.new().id.text > first.id.text)
        #expect((next.new().identifier("a") as UserID) != derived)
        let repeated = first.repeated
        #expect(repeated.mayHaveRun && repeated.id == first.id && repeated.identifier("a") as UserID == derived)
    }

    /// Two relays of different releases may run it, so its ids follow from its id alone.
    @Test func idsOfASharedOperationDoNotDependOnTheTime() {
        let operations = Operations(
            key: Secret(utf8: "k"), randomness: Counting(), time: Clock(milliseconds: 1_800_000_000_001))
        let first = operations.new(isRepeatable: true)
        for shared in [first, operations.fixed("a", [1]), operations.new().shared] {
            let derived: UserID = shared.identifier("a")
            #expect(derived == operations.again(shared.id).identifier("a"))
            #expect(
                derived == Identifier(leading: HMAC.sha256(key: Secret(utf8: "k"), shared.id.bytes + Array("a".utf8))))
        }
    }

    private struct Clock: TimeSource {
        let milliseconds: Int64

        func now() -> Timestamp { Timestamp(milliseconds: milliseconds) }
        func instant() -> Instant { Instant(nanoseconds: 1) }
    }

    @Test func derivedDigitsKeepLeadingZeros() {
        let all = (0..<200).map { _ in SystemRandomness().digits(2) }
        #expect(all.allSatisfy { $0.utf8.count == 2 && $0.allSatisfy(\.isNumber) })
        #expect(all.contains { $0.hasPrefix("0") })
        #expect(Set(all).count > 50)
        #expect(SystemRandomness().digits(0).isEmpty && SystemRandomness().digits(6).utf8.count == 6)
    }

    /// Only an operation that another process may repeat has to be stored with its secret.
    @Test func onlyASharedOperationIsRepeatable() {
        let operations = operations("k")
        let fresh = operations.new()
        #expect(!fresh.isRepeatable && operations.new(isRepeatable: true).isRepeatable)
        #expect(operations.again(fresh.id).isRepeatable && operations.fixed("a", [1]).isRepeatable)
        #expect(!operations.new(isRepeatable: true).mayHaveRun)
    }
}

@Suite struct OperationSecretTests {
    /// Two secrets share nothing, whatever the operations and the key of the installation.
    @Test func operationSecretsAreRandom() {
        let all = (0..<50).map { _ in OperationSecret(drawnFrom: SystemRandomness()).derive("totp secret", count: 20) }
        #expect(Set(all).count == 50)
    }

    @Test func storedOperationSecretDerivesTheSameValues() throws {
        let drawn = OperationSecret(drawnFrom: SystemRandomness())
        let again = try #require(OperationSecret(drawn.reveal()))
        #expect(drawn.derive("a", count: 32) == again.derive("a", count: 32))
        #expect(drawn.derive("a", count: 16) != drawn.derive("b", count: 16))
        #expect(drawn.derive("a", count: 7).count == 7)
        #expect(OperationSecret(Array(drawn.reveal().dropLast())) == nil && OperationSecret([]) == nil)
        #expect("\(drawn)".contains("[secret]"))
    }
}

@Suite struct PolicyTests {
    @Test func everyPolicyKeyRoundTrips() throws {
        var policy = Policy()
        try policy.set("answers", to: "website")
        try policy.set("lifetime", to: "60")
        try policy.set("number", to: "6")
        try policy.set("push-detail", to: "minimal")
        try policy.set("guesses", to: "3")
        try policy.set("number-below", to: "49.90 EUR")
        try policy.set("min-uv", to: "biometric")
        try policy.set("further-factors", to: "website")
        try policy.set("devices", to: "2")
        try policy.set("push-limit", to: "3")
        try policy.set("login-limit", to: "9")
        try policy.set("factors", to: "totp,push ,  mail")
        try policy.set("push-deadline", to: "5")
        try policy.set("code-deadline", to: "none")
        try policy.set("code-retries", to: "resend")
        try policy.set("min-assurance", to: "restricted")
        try policy.set("addresses", to: "confirmed")
        try policy.set("enrolment", to: "letter")
        try policy.set("phone-place", to: "refuse")
        try policy.set("phone-place-distance", to: "50")
        try policy.set("recovery-check", to: "on")
        #expect(policy.factors == [.totp, .push, .mail] && policy.codeDeadline == nil)
        #expect(try Policy().changed(by: policy.json) == policy)
        #expect(Policy.keys.allSatisfy { policy.text(of: $0) != nil })
    }

    /// An earlier version stored the bound without its currency. No other value is read leniently.
    @Test func storedBoundWithoutACurrencyBoundsNothing() throws {
        var settings = Policy()
        try settings.set("number-below", to: "30 EUR")
        var faults: [String] = []
        let read = try settings.changed(by: #"{"lifetime":"90","number-below":"30"}"#) { faults.append($0.message) }
        #expect(read.numberBelow == nil && read.lifetime == 90)
        #expect(faults.count == 1 && faults[0].hasPrefix("number-below must be"))
        #expect(throws: Policy.Fault.self) { try settings.changed(by: #"{"lifetime":"9","number-below":"30"}"#) }
        _ = try settings.changed(by: #"{"number-below":"49.90 CHF"}"#) { _ in Issue.record("a readable value is noted")
        }
    }

    @Test(arguments: [
        ("answers", "trusted"), ("answers", ""), ("lifetime", "59"), ("lifetime", "601"), ("lifetime", "x"),
        ("number", "3"), ("phone-place", "no"), ("phone-place-distance", "49"), ("phone-place-distance", "20001"),
        ("guesses", "0"), ("push-detail", "FULL"), ("number-below", "1,000 EUR"), ("number-below", "30"),
        ("number-below", ""), ("min-uv", "face"),
        ("devices", "0"), ("push-limit", "-1"), ("login-limit", "1001"), ("further-factors", "anything"),
        ("colour", "red"), ("factors", ""), ("factors", "push,"), ("factors", "push,,totp"), ("factors", "push totp"),
        ("factors", "push, totp, push"), ("factors", "pull"), ("factors", "Push"), ("push-deadline", "4"),
        ("push-deadline", "none"), ("code-deadline", "9"), ("code-deadline", "601"), ("code-deadline", ""),
        ("code-retries", "3"),
        ("min-assurance", "some"), ("addresses", "all"),
        ("enrolment", "mail"), ("recovery-check", "yes"),
    ])
    func malformedPolicyIsRefused(key: String, text: String) {
        var policy = Policy()
        #expect(throws: Policy.Fault.self) { try policy.set(key, to: text) }
        #expect(policy == Policy())
    }

    @Test func defaultPolicyTriesFactorsStrongestFirst() {
        #expect(Policy().factors == [.push, .totp, .hotp, .sms, .mail, .recovery])
        #expect(Policy().pushDeadline == 30 && Policy().codeDeadline == 90 && Policy().minAssurance == .low)
        #expect(Policy().addresses == .vouched && Policy().codeRetries == .keep && Policy().enrolment == .open)
        #expect(Policy().recoveryCheck == .off)
        #expect(Assurance.low < .restricted && Assurance.restricted < .substantial && Assurance.substantial < .high)
    }

    /// A website that wants less than signatures has to say so.
    @Test func signedAnswersAreTheDefault() throws {
        #expect(Policy().answers == .signed)
        #expect(try Policy().changed(by: "{}").answers == .signed)
        #expect(try Policy().changed(by: #"{"answers":"certificate"}"#).answers == .certificate)
    }

    @Test func websitePolicyChangesOnlyNamedKeys() throws {
        var defaults = Policy()
        try defaults.set("lifetime", to: "120")
        let policy = try defaults.changed(by: #"{"number":"0","written-by-a-newer-relay":"yes"}"#)
        #expect(policy.number == 0 && policy.lifetime == 120)
        #expect(throws: Policy.Fault.self) { try defaults.changed(by: "[]") }
    }
}

@Suite struct AmountTests {
    @Test(arguments: [
        ("29.99", "30", true), ("30.00", "30", false), ("30.000001", "30", false), ("9", "10", true),
        ("12.50", "12.5", false), ("12.5", "12.50", false),
    ])
    func amountsAreComparedAsNumbers(one: String, other: String, isLess: Bool) throws {
        let (one, other) = try (#require(Amount("\(one) EUR")), #require(Amount("EUR \(other)")))
        #expect(one.isBelow(other) == isLess)
    }

    @Test(arguments: ["", "1,5", "1.", ".5", "-1", "1e3", "١", " 1", "1.2.3", "1.0000001", "1234567890123456"])
    func ambiguousNumberIsNoAmount(text: String) {
        #expect(Amount("\(text) EUR") == nil)
    }

    /// In some countries a point separates thousands.
    @Test func threeDecimalsAreAnAmountOnlyInCurrenciesThatHaveThem() throws {
        #expect(Amount("1.500 EUR") == nil)
        #expect(Amount("€ 29.990") == nil)
        let bound = try #require(Amount("30 KWD"))
        #expect(try #require(Amount("1.500 KWD")).isBelow(bound))
    }

    /// 20 of one currency are less than 30 of another only by their digits.
    @Test func onlyAmountsInOneCurrencyAreCompared() throws {
        let bound = try #require(Amount("30 EUR"))
        for (text, isBelow) in [("20 EUR", true), ("€ 20", true), ("20 USD", false), ("JPY 20", false)] {
            #expect(try #require(Amount(text)).isBelow(bound) == isBelow, "\(text)")
        }
    }

    /// Several countries have dollars, pounds and yen, so their signs name no currency.
    @Test(arguments: [
        "12.50", "$ 12.50", "12.50 £", "12.50 eur", "12.50 EURO", "12.50  EUR", "12.50 or so", "1 000", "EUR",
        "EUR USD",
        "1 2 EUR",
    ])
    func amountMustNameItsCurrency(text: String) {
        #expect(Amount(text) == nil)
    }
}

@Suite struct ContextTests {
    @Test func contextBytesContainExactlyTheGivenFields() throws {
        let at = try #require(Timestamp(rfc3339: "2026-11-21T08:22:34.123Z"))
        var context = Context(
            website: "shop", displayName: "The Shop", username: "ada", service: nil, action: nil, details: [], ip: nil,
            place: nil, userAgent: nil, request: nil, numberDigits: 0, device: nil, createdAt: at,
            expiresAt: at + .seconds(60))
        #expect(
            String(decoding: context.bytes, as: UTF8.self)
                == #"{"v":1,"website":"shop","display_name":"The Shop","username":"ada","number_digits":0,"#
                + #""created_at":"2026-11-21T08:22:34.123Z","expires_at":"2026-11-21T08:23:34.123Z"}"#)
        context.service = "pay"
        context.details = [Context.Detail(label: "amount", value: "12 €")]
        context.ip = "203.0.113.7"
        let object = try #require(try JSONReader.read(context.bytes).object)
        #expect(object["details"]?.array?.first?.object?["value"]?.string == "12 €")
        context.place = "Vienna, Austria"
        let shown = Context.shownInPush(context.bytes)
        #expect(shown.service == "pay" && shown.ip == "203.0.113.7" && shown.place == "Vienna, Austria")
    }
}
