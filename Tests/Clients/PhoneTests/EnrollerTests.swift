import Bytes
import Crypto
import EventLoop
import HTTP
import JSON
import TestSupport
import Testing
import World

@testable import Phone

@Suite(.timeLimit(.minutes(15))) struct EnrollerTests {
    /// The phone must not send anything to a relay that has not proven the pinned key.
    @Test func enrollerSendsNothingToAnUnpinnedRelay() async throws {
        let relay = try FakeRelay()
        let other = try CertificateAuthority.create(commonName: "relay", days: 1, at: SystemTime().now())
        let failure = await #expect(throws: CallFailure.self) {
            try await relay.run { loop, address in
                let activation = try relay.activation(address, pin: other.keyThumbprint)
                let enroller = try Enroller(try Enrolment(activation, at: loop.time.now()), loop: loop)
                _ = try await enroller.attempt()
            }
        }
        guard case .notSent(let reason) = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(reason.contains("certificate verify failed"))
        #expect(relay.asked.isEmpty)
    }

    @Test func enrollerRepeatsTheProofUntilBound() async throws {
        let relay = try FakeRelay((200, ["login": "wait", "device": "d1", "number": "47"]))
        let websiteKey = [UInt8](repeating: 7, count: 32)
        let (origin, begun, outcomes) = try await relay.run { loop, address in
            let begun = try Enrolment(
                try relay.activation(address, websiteKey: websiteKey), pushToken: "abcd", name: "Alice's",
                platform: .android, environment: .sandbox, at: loop.time.now())
            relay.answer(
                200,
                [
                    "login": "verified", "device": "d1",
                    "certificate": try relay.certificate("d1", begun.key.publicKey), "revocation_code": "r-c",
                ])
            let enroller = try Enroller(begun, loop: loop)
            defer { enroller.close() }
            return (address.text, begun, [try await enroller.attempt(), try await enroller.attempt()])
        }
        guard case .wait("d1", "47"?) = outcomes[0], case .verified(let bound, "r-c") = outcomes[1] else {
            Issue.record("\(outcomes)")
            return
        }
        #expect(bound.device == "d1")
        #expect(bound.certificate?.uris == ["twoefay:device:d1"])

        let asked = relay.asked
        try #require(asked.map(\.path) == ["/verify", "/verify"])
        #expect(asked.allSatisfy { $0.certificate == nil })
        #expect(asked[0].body == asked[1].body, "the same again, so that it is done once")
        let body = asked[0].body
        #expect(body["name"] == "Alice's" && body["platform"] == "android" && body["environment"] == "sandbox")
        let proof = try JWS.parse(try #require(body["proof"]?.string))
        #expect(proof.header.names == ["alg", "typ", "jwk"])
        #expect(proof.type == "twoefay-enrol+jwt")
        #expect(proof.header["jwk"]?.object == begun.key.publicKey.jwk)
        #expect(proof.verify(begun.key.publicKey))
        let request = try SigningRequest(pem: Array(try #require(body["csr"]?.string).utf8))
        #expect(request.key == begun.key.publicKey)
        let claims = try #require(try JSONReader.read(proof.payload).object)
        #expect(claims.names == ["v", "aud", "id_token", "activation_code", "dev_token", "agreement", "iat"])
        #expect(claims["v"] == 1)
        let agreement = try #require(begun.agreementKey).publicKey.jwk
        #expect(claims["agreement"]?.object == agreement)
        #expect(claims["aud"]?.string == "\(origin)#shop")
        for name in ["id_token", "activation_code", "dev_token"] {
            #expect(claims[name] != nil && claims[name] == body[name], "\(name)")
        }

        // The binding is signed with the website's secret, for the website only.
        let binding = try JWS.parse(try #require(body["binding"]?.string), algorithm: .hs256)
        #expect(binding.type == "twoefay-binding+jwt")
        #expect(binding.verify(Secret(websiteKey)))
        #expect(
            try JSONReader.read(binding.payload).object
                == [
                    "v": 1, "aud": .string("\(origin)#shop"), "id_token": "ab12",
                    "jwk": .object(begun.key.publicKey.jwk), "agreement": .object(agreement),
                ])
    }

    /// The push token is missing in both the body and the signed claims.
    @Test func missingPushTokenIsOmitted() async throws {
        let relay = try FakeRelay((200, ["login": "wait", "device": "d1"]))
        try await relay.run { loop, address in
            let begun = try Enrolment(try relay.activation(address), at: loop.time.now())
            #expect(try Enrolment(begun.json()).pushToken == nil)
            let enroller = try Enroller(begun, loop: loop)
            defer { enroller.close() }
            _ = try await enroller.attempt()
        }
        let body = relay.asked[0].body
        #expect(body["dev_token"] == nil && body["activation_code"] != nil)
        let claims = try JSONReader.read(try JWS.parse(body["proof"]?.string ?? "").payload).object
        #expect(claims?.names == ["v", "aud", "id_token", "activation_code", "agreement", "iat"])
    }

    @Test func certificateForAnotherKeyIsRefused() async throws {
        let relay = try FakeRelay()
        let failure = await #expect(throws: CallFailure.self) {
            try await relay.run { loop, address in
                let stranger = try P256PrivateKey.generate().publicKey
                relay.answer(
                    200,
                    [
                        "login": "verified", "device": "d1", "certificate": try relay.certificate("d1", stranger),
                        "revocation_code": "r-c",
                    ])
                let begun = try Enrolment(try relay.activation(address), at: loop.time.now())
                let enroller = try Enroller(begun, loop: loop)
                defer { enroller.close() }
                _ = try await enroller.attempt()
            }
        }
        #expect(failure?.description.contains("another key") == true)
        #expect(relay.asked[0].body["binding"] == nil)
    }
}
