import Bytes
import HTTP
import JSON
import Relay
import TestSupport
import World

@testable import API

extension APIRig {
    /// A phone of a new website's new user.
    func bound(_ username: String, at website: String) async throws -> TestPhone {
        try await relay.enrolled(username, at: try await relay.website(website)).phone
    }

    /// What proofs have to hold now.
    var nonce: String { api.relay.nonces.current(at: relay.time.now()) }

    /// A right proof of that phone, with what a test changes in it.
    func proof(
        _ phone: TestPhone, path: String = "/pending", change: (inout JSONObject) -> Void = { _ in },
        header: (inout JSONObject) -> Void = { _ in }
    ) throws -> String {
        try phone.possession(
            "POST", RelayRig.origin + path, nonce: nonce, at: relay.time.now(), change: change, header: header)
    }

    /// What another relay of the installation, which has been running for a while, hands out and takes.
    func neighbour() -> Nonces {
        Nonces(
            masterKey: Secret(Array(repeating: 7, count: 32)), since: relay.time.now() - .seconds(1000),
            randomness: SystemRandomness())
    }

    /// Somebody without a certificate comes with those.
    func present(_ proofs: String..., path: String = "/pending", body: JSONObject? = nil) async -> Response {
        await stranger.send("POST", path, body, fields: proofs.map { ("dpop", $0) })
    }
}

extension Response {
    /// What is said to be wrong with a proof.
    var asks: String? {
        fields["www-authenticate"].flatMap { text in
            ["use_dpop_nonce", "invalid_dpop_proof"].first { text == "DPoP error=\"\($0)\", algs=\"ES256\"" }
        }
    }
}
