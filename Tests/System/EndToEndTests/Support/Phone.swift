import Bytes
import JSON
import TestSupport
import Testing
import World

/// A bound phone, with its certificate from the relay.
struct Phone: Sendable {
    var client: APIClient
    let device: String
    let certificatePath: String
    let key: TestPhone

    /// Enrols a phone with an activation code and a proof, over a connection without a certificate.
    init(
        in fixture: Fixture, token: String, code: String, website: String = "shop",
        pushToken: String = "abcdef0123456789",
        through port: UInt16? = nil
    ) async throws {
        key = try TestPhone(pushToken: pushToken)
        let proof = try key.proof(
            token: token, code: code, origin: fixture.relay.origin, website: website, at: SystemTime().now())
        var nobody = fixture.nobody
        if let port { nobody.caller.port = port }
        let answer = try await nobody.curl(
            "POST", "/verify",
            [
                "id_token": .string(token), "dev_token": .string(pushToken), "activation_code": .string(code),
                "proof": .string(proof), "name": "Bob's phone", "platform": "ios",
            ])
        #expect(answer.status == 200, "\(answer)")
        #expect(answer["login"] == "verified")
        #expect(answer.json?.object?.names == ["login", "device", "certificate", "revocation_code"])
        device = try #require(answer["device"]?.string)
        let pem = try #require(answer["certificate"]?.string)
        client = try fixture.holder("phone-\(device)", Array(pem.utf8), key.key)
        certificatePath = try #require(client.caller.certificatePath)
    }
}

/// The signed decisions of a phone.
extension Phone {
    /// Polls for the challenge, and signs a decision about it.
    func sign(_ word: String, in fixture: Fixture, number: String? = nil) async throws -> (
        challenge: String, answer: String
    ) {
        try sign(word, what: try await client.curl("POST", "/pending", [:]), in: fixture, number: number)
    }

    /// Signs a decision about the challenge in an earlier answer.
    func sign(
        _ word: String, what result: CurlCaller.Answer, in fixture: Fixture, number: String? = nil
    ) throws -> (challenge: String, answer: String) {
        let list = try #require(result["pending"]?.array, "\(result)")
        let pending = try #require(list.count == 1 ? list[0].object : nil, "\(list)")
        let challenge = try #require(pending["challenge"]?.string)
        let shown = TestPhone.Shown(
            challenge: challenge, nonce: try #require(pending["nonce"]?.string),
            context: try #require(pending["context"]?.string.flatMap { Base64URL.decode($0) }))
        let answer = try key.decision(
            word, about: shown, device: device, origin: fixture.relay.origin, number: number, at: SystemTime().now())
        fixture.record(answer)
        return (challenge, answer)
    }
}
