import Bytes
import Crypto
import HTTP
import JSON
import TestSupport
import Testing
import World

@testable import Phone

/// The pins of a phone, before and after statements of the relay's authority.
struct StatedPinsTests {
    private let key: P256PrivateKey
    private let nextKey: P256PrivateKey
    private let phone: Enrolment
    private let now = Timestamp(seconds: 1_800_000_000)
    private var pin: [UInt8] { key.publicKey.spkiThumbprint }
    private var next: [UInt8] { nextKey.publicKey.spkiThumbprint }

    init() throws {
        key = try P256PrivateKey.generate(SystemRandomness())
        nextKey = try P256PrivateKey.generate(SystemRandomness())
        let pin = Base64URL.encode(key.publicKey.spkiThumbprint)
        let token = String(repeating: "6f", count: 16)
        let uri =
            "twoefay://enrol?relay=https%3A%2F%2Flogin.example.com%3A8080&website=shop&token=\(token)"
            + "&code=q3Lr8PZk0uXbT1sVw9Ya&pin=\(pin)"
        phone = try Enrolment(try ActivationURI(uri), at: Timestamp(seconds: 1_800_000_000))
    }

    private func statement(
        _ pins: [[UInt8]], _ sequence: Int64, by signer: P256PrivateKey, audience: String? = nil
    ) throws -> String {
        try PinStatement.sign(
            pins, sequence: sequence, audience: audience ?? phone.relay.text, expiresAt: now + .seconds(60), by: signer,
            at: now)
    }

    @Test func phoneMovesFromOneAuthorityToTheNext() throws {
        #expect(phone.pins == [pin])
        let both = try phone.repinned(by: statement([pin, next], 1, by: key), at: now)
        #expect(both.pins == [pin, next] && both.pinSequence == 1)
        let kept = try Enrolment(kept: JSONWriter.write(try both.json()))
        #expect(kept.pins == [pin, next] && kept.pinSequence == 1)
        let moved = try kept.repinned(by: statement([next], 2, by: nextKey), at: now)
        #expect(moved.pins == [next])
        #expect(throws: PinStatement.Malformed.self) {
            try moved.repinned(by: statement([pin, next], 3, by: key), at: now)
        }
    }

    @Test func announcementCanBeWithdrawn() throws {
        let both = try phone.repinned(by: statement([pin, next], 1, by: key), at: now)
        let one = try both.repinned(by: statement([pin], 2, by: key), at: now)
        #expect(one.pins == [pin])
        // The first statement, replayed, does not bring the next pin back.
        #expect(throws: PinStatement.Malformed.self) {
            try one.repinned(by: statement([pin, next], 1, by: key), at: now)
        }
    }

    /// Three authorities in a row: the phone never trusts more than two of them.
    @Test func phoneNeverHoldsAThirdPin() throws {
        let third = try P256PrivateKey.generate(SystemRandomness())
        let both = try phone.repinned(by: statement([pin, next], 1, by: key), at: now)
        let later = try both.repinned(
            by: statement([next, third.publicKey.spkiThumbprint], 2, by: nextKey), at: now)
        #expect(later.pins == [next, third.publicKey.spkiThumbprint])
        #expect(throws: PinStatement.Malformed.self) {
            try both.repinned(by: statement([pin, next, third.publicKey.spkiThumbprint], 2, by: key), at: now)
        }
        #expect(throws: PinStatement.Malformed.self) {
            try both.repinned(by: statement([pin, next], 2, by: key, audience: "https://other.example"), at: now)
        }
    }

    @Test func protocolPageShowsAStatement() throws {
        let page = try ProtocolPageTests()
        _ = try page.signed("pins")
        let statement = try PinStatement(try page.example("pins jws"))
        #expect(statement.signer == page.key.publicKey.spkiThumbprint)
        #expect(statement.pins.count == 2 && statement.audience == "https://login.example.com:8080")
    }
}
