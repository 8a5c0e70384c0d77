import Bytes
import Crypto
import Domain
import EventLoop
import JSON
import Log
import Synchronization
import TestSupport
import Testing
import World

@testable import Relay

/// A phone that repeats its request for a tagged certificate while the first one is answered.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CrossingCertificateTests {
    /// An authority that holds up the first request between the two reads of the store.
    private final class HoldingAuthority: PhoneCertificates {
        let reached = WakeSemaphore()
        let mayGoOn = WakeSemaphore()
        private let hasHeld = Mutex(false)
        private let authority: CertificateAuthority

        init(_ authority: CertificateAuthority) { self.authority = authority }

        var isOutside: Bool {
            let isFirst = hasHeld.withLock { hasHeld in
                defer { hasHeld = true }
                return !hasHeld
            }
            if isFirst {
                reached.signal()
                mayGoOn.wait()
            }
            return false
        }

        func certificate(_ order: CertificateOrder, at now: Timestamp) async throws(CertificateFailure) -> String {
            try await authority.certificate(order, at: now)
        }

        func revocationList(
            _ revoked: [RevokedCertificate], at now: Timestamp
        ) async throws(CertificateFailure) -> [UInt8] { try await authority.revocationList(revoked, at: now) }
    }

    @Test(arguments: StoreKind.all) func repetitionThatCrossesGetsTheSameCertificate(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop", policies: ["certificate-tags": "sign"])
        let (_, phone, credential) = try await rig.enrolled("ada", at: shop)
        let authority = HoldingAuthority(rig.phones)
        let other = try RelayRig.relay(
            over: rig.store, push: nil, phones: authority, time: rig.time, randomness: SystemRandomness(),
            log: Log(minimum: .debug, time: rig.time, sink: rig.sink), isAlone: false
        ) { _ in }
        let loops = try LoopGroup.start(count: 1, time: SystemTime())
        defer { loops.stopAndJoin() }

        // The phone may ask for any name, because the authority is in the installation.
        let key = try P256PrivateKey.generate()
        let request = String(decoding: try SigningRequest(commonName: "any", key: key).pem(), as: UTF8.self)
        let claims: JSONObject = [
            "v": 1, "aud": .string("\(RelayRig.origin)#shop"), "tag": "sign",
            "csr": .string(Base64URL.encode(SHA256.hash(Array(request.utf8)))),
            "iat": .integer(rig.time.now().seconds),
        ]
        let proof = try JWS.sign(
            header: ["typ": "twoefay-certificate+jwt", "kid": .string(credential.id.text)],
            payload: JSONWriter.write(.object(claims)), key: phone.key)

        async let repetition = loops.loops[0].perform { () async -> Result<TaggedCertificate, Refusal> in
            do throws(Refusal) {
                return .success(try await other.certify(tag: "sign", request: request, proof: proof, by: credential))
            } catch {
                return .failure(error)
            }
        }
        await blocking { authority.reached.wait() }
        let first = try await rig.on { relay in
            try await relay.certify(tag: "sign", request: request, proof: proof, by: credential)
        }
        authority.mayGoOn.signal()
        #expect(try await repetition.get() == first)
        #expect(try rig.count("SELECT count(*) FROM certificate WHERE tag = 'sign'") == 1)
    }
}
