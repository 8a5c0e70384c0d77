import Bytes
import Crypto
import Daemon
import EventLoop
import HTTP
import JSON
import Testing
import World

@testable import Demo

@Suite(.timeLimit(.minutes(15))) struct PhoneTests {
    private func activation(_ relay: WebAddress, pin: [UInt8]) throws(CallFailure) -> ActivationURI {
        do {
            return try ActivationURI(
                "twoefay://enrol?relay=\(relay.settingsText)&website=shop&token=ab12&code=f91r8F9C"
                    + "&pin=\(Base64URL.encode(pin))")
        } catch {
            throw .unable(error.description)
        }
    }

    /// Nothing may be said to a relay that has not shown the pinned key.
    @Test func tellsNothingToAnotherRelay() async throws {
        let relay = try FakeRelay()
        let other = try CertificateAuthority.create(commonName: "relay", days: 1, at: SystemTime().now())
        let refused = try await relay.run { loop, address in
            await Result { () async throws -> Void in
                let phone = try Phone(loop: loop, time: loop.time, randomness: SystemRandomness())
                try await phone.enrol(try activation(address, pin: other.keyThumbprint), name: "phone")
            }
        }
        let failure = #expect(throws: CallFailure.self) { try refused.get() }
        guard case .notSent(let reason) = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(reason.contains("certificate verify failed"))
        #expect(relay.asked.isEmpty)
    }

    @Test func provesItsKeyAndAnswersWithItsCertificate() async throws {
        let relay = try FakeRelay()
        let (origin, result) = try await relay.run { loop, address in
            (
                address.settingsText,
                await Result { () async throws -> Phone in
                    let phone = try Phone(loop: loop, time: loop.time, randomness: SystemRandomness())
                    let certificate = try relay.phones.issueClient(
                        uri: "twoefay:device:1", key: phone.publicKey, days: 1, at: loop.time.now())
                    let pem = String(decoding: try certificate.pem(), as: UTF8.self)
                    relay.answer(200, ["login": "verified", "certificate": .string(pem)])
                    relay.answer(200, ["login": "success"])
                    relay.answer(200, ["login": "failure"])
                    try await phone.enrol(try activation(address, pin: relay.authority.keyThumbprint), name: "phone")
                    #expect(try await phone.answer(.approve(number: "47"), to: "c1") == "success")
                    #expect(try await phone.answer(.deny, to: "c2") == "failure")
                    phone.close()
                    return phone
                }
            )
        }
        let phone = try result.get()
        let asked = relay.asked
        try #require(asked.map(\.path) == ["/verify", "/success", "/failure"])

        #expect(asked[0].certificate == nil)
        let proof = try JWS.parse(try #require(asked[0].body["proof"]?.string))
        #expect(proof.type == "twoefay-enrol+jwt")
        #expect(proof.verify(phone.publicKey))
        #expect(proof.header["jwk"]?.object == phone.publicKey.jwk)
        let claims = try #require(try JSONReader.read(proof.payload).object)
        #expect(claims["v"]?.integer == 1)
        #expect(claims["aud"]?.string == "\(origin)#shop")
        for name in ["id_token", "activation_code", "dev_token"] {
            #expect(claims[name] != nil && claims[name] == asked[0].body[name], "\(name)")
        }

        #expect(asked[1].certificate?.uris == ["twoefay:device:1"])
        #expect(asked[1].body == ["challenge": "c1", "number": "47"])
        #expect(asked[2].body == ["challenge": "c2"])
    }
}

extension Result where Failure == any Error {
    /// What comes of some work.
    init(_ work: () async throws -> Success) async {
        do {
            self = .success(try await work())
        } catch {
            self = .failure(error)
        }
    }
}
