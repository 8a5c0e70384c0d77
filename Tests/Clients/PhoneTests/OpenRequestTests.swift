import Bytes
import Crypto
import EventLoop
import HTTP
import JSON
import Synchronization
import TestSupport
import Testing
import World

@testable import Phone

/// Requests for certificates whose answers are lost, late or refusals.
@Suite(.timeLimit(.minutes(15))) struct OpenRequestTests {
    /// Returns an enrolment with a key for documents whose certificate ends soon.
    private static func bound(_ relay: FakeRelay, _ address: WebAddress) throws -> Enrolment {
        var enrolment = try relay.bound(address, days: 29)
        let key = try P256PrivateKey.generate()
        let certificate = try relay.phones.issueSigner(
            uri: "twoefay:signer:d1:sign", key: key.publicKey, days: 29, at: SystemTime().now())
        enrolment.documentKeys = [DocumentKey(tag: "sign", isRaw: false, key: key, certificate: certificate)]
        return enrolment
    }

    /// Answers a request for the certificate of a tag.
    private static func issue(_ relay: FakeRelay) {
        relay.answer { asked in
            let request = try SigningRequest(pem: Array((asked.body["csr"]?.string ?? "").utf8))
            let issued = try relay.phones.issueSigner(
                uri: "twoefay:signer:d1:sign", key: request.key, days: 90, at: SystemTime().now())
            return [
                "tag": asked.body["tag"] ?? .null, "raw": false,
                "certificate": .string(String(decoding: try issued.pem(), as: UTF8.self)),
            ]
        }
    }

    /// Answers a request for the phone's own certificate.
    private static func renew(_ relay: FakeRelay, _ key: P256PublicKey) throws {
        relay.answer(200, ["certificate": try relay.certificate("d1", key)])
    }

    private static func kept(_ enrolment: Enrolment) throws -> Enrolment {
        try Enrolment(kept: JSONWriter.write(try enrolment.json()))
    }

    /// The relay has stored the change, so the phone must not lose it with the certificate of a tag.
    @Test(arguments: [503, 500, 429, 400]) func changeSurvivesATagThatIsNotRenewed(status: Int) async throws {
        let relay = try FakeRelay()
        let (before, after) = try await relay.run { loop, address in
            let enrolment = try Self.bound(relay, address)
            try Self.renew(relay, enrolment.key.publicKey)
            relay.answer(status, ["code": "unavailable"])
            let phone = try Responder(enrolment, loop: loop)
            defer { phone.close() }
            return (enrolment, try await phone.change(pushToken: "efgh", name: "New", renews: true))
        }
        #expect(after.name == "New" && after.pushToken == "efgh")
        #expect(after.certificate != nil && after.certificate != before.certificate)
        #expect(after.documentKey("sign")?.certificate == before.documentKey("sign")?.certificate)
        // A refusal for good is not repeated.
        #expect(after.openRequests.tags == (status == 400 ? [] : ["sign"]))
    }

    /// Otherwise each lost answer would use up one of the certificates that a tag may have.
    @Test func lostAnswerOfATagIsAskedForWithTheSameBody() async throws {
        let relay = try FakeRelay()
        let stored = Mutex<[Enrolment]>([])
        let certified = try await relay.run { loop, address in
            relay.answer(503, ["code": "unavailable"])
            relay.answer(500, ["code": "internal"])
            Self.issue(relay)
            let first = try Responder(try Self.bound(relay, address), loop: loop)
            defer { first.close() }
            for _ in 0..<2 {
                await #expect(throws: CallFailure.self) {
                    try await first.certify(tag: "sign") { enrolment in stored.withLock { $0.append(enrolment) } }
                }
            }
            // Another run of the program, with what was stored before the request was sent.
            let kept = try Self.kept(try #require(stored.withLock { $0.first }))
            let second = try Responder(kept, loop: loop)
            defer { second.close() }
            return try await second.certify(tag: "sign")
        }
        #expect(relay.asked.count == 3 && Set(relay.asked.map { JSONWriter.text(.object($0.body)) }).count == 1)
        #expect(certified.openRequests.isEmpty)
        let until = try #require(certified.documentKey("sign")).certificate.notAfter
        #expect(until > SystemTime().now() + .seconds(86_400 * 60))
    }

    /// RFC 7030, 4.2.3: the same certificate request, also when the proof about it is too old.
    @Test func laterRequestHasTheSameCertificateRequest() throws {
        let enrolment = try Self.bound(try FakeRelay(), WebAddress(secure: true, host: "127.0.0.1", port: 1))
        let (key, now) = (try P256PrivateKey.generate(), SystemTime().now())
        var open = OpenRequests()
        func ask(_ seconds: Int64) throws -> OpenRequests.Tagged {
            try open.request(
                "sign", isRaw: false, key: key, of: enrolment, device: "d1", at: now + .seconds(seconds))
        }
        let first = try ask(0)
        #expect(try ask(239) == first)
        for seconds in [240, 3600, -1] as [Int64] {
            let later = try ask(seconds)
            #expect(later.request == first.request && later.proof != first.proof)
            let claims = try JSONReader.read(try JWS.parse(later.proof).payload).object
            #expect(claims?["iat"]?.integer == (now + .seconds(seconds)).seconds)
        }
    }

    @Test func refusedProofIsNotRepeated() async throws {
        let relay = try FakeRelay()
        try await relay.run { loop, address in
            relay.answer(409, ["code": "conflict"])
            Self.issue(relay)
            let phone = try Responder(try Self.bound(relay, address), loop: loop)
            defer { phone.close() }
            await #expect(throws: CallFailure.self) { try await phone.certify(tag: "sign") }
            _ = try await phone.certify(tag: "sign")
        }
        let asked = relay.asked.map(\.body)
        try #require(asked.count == 2)
        #expect(asked[0]["csr"] != asked[1]["csr"])
    }

    /// A new key has another request, and so has another mark of the tag.
    @Test func otherKeyHasAnotherRequest() throws {
        let relay = try FakeRelay()
        let enrolment = try Self.bound(relay, WebAddress(secure: true, host: "127.0.0.1", port: 1))
        let (key, now) = (try P256PrivateKey.generate(), SystemTime().now())
        var open = OpenRequests()
        let first = try open.request("sign", isRaw: false, key: key, of: enrolment, device: "d1", at: now)
        #expect(try open.request("sign", isRaw: false, key: key, of: enrolment, device: "d1", at: now) == first)
        let raw = try open.request("sign", isRaw: true, key: key, of: enrolment, device: "d1", at: now)
        #expect(raw.request != first.request && raw.name == "twoefay:raw-signer:d1:sign")
        let other = try P256PrivateKey.generate()
        let replaced = try open.request("sign", isRaw: true, key: other, of: enrolment, device: "d1", at: now)
        #expect(try SigningRequest(pem: Array(replaced.request.utf8)).key == other.publicKey)
    }

    /// An outside authority may decide later; the phone's own request is kept until then.
    @Test func ownRequestIsKeptUntilItsCertificateArrives() async throws {
        let relay = try FakeRelay((503, ["code": "unavailable"]), (200, [:]))
        let stored = Mutex<Enrolment?>(nil)
        try await relay.run { loop, address in
            let enrolment = try relay.bound(address, days: 29)
            try Self.renew(relay, enrolment.key.publicKey)
            try Self.renew(relay, enrolment.key.publicKey)
            let phone = try Responder(enrolment, loop: loop)
            defer { phone.close() }
            await #expect(throws: CallFailure.self) {
                try await phone.change(renews: true) { enrolment in stored.withLock { $0 = enrolment } }
            }
            let kept = try Self.kept(try #require(stored.withLock { $0 }))
            let second = try Responder(kept, loop: loop)
            defer { second.close() }
            // The change counts, and the certificate comes later.
            #expect(try await second.change(name: "Blue", renews: true).openRequests == kept.openRequests)
            #expect(try await second.change(renews: true).openRequests.isEmpty)
            _ = try await second.change(renews: true)
        }
        let requests = relay.asked.compactMap { $0.body["csr"]?.string }
        try #require(requests.count == 4)
        #expect(requests[0] == requests[1] && requests[1] == requests[2] && requests[2] != requests[3])
    }
}
