import Bytes
import HTTP
import JSON
import Relay
import TestSupport
import World

@testable import API

extension APIRig {
    /// Binds a phone of a new user of a new website.
    func bound(_ username: String, at website: String) async throws -> TestPhone {
        try await relay.enrolled(username, at: try await relay.website(website)).phone
    }

    /// The nonce that proofs need now.
    var nonce: String { api.relay.nonces.current(at: relay.time.now()) }

    /// Returns a valid proof of that phone, with the test's changes.
    func proof(
        _ phone: TestPhone, path: String = "/pending", change: (inout JSONObject) -> Void = { _ in },
        header: (inout JSONObject) -> Void = { _ in }
    ) throws -> String {
        try phone.possession(
            "POST", RelayRig.origin + path, nonce: nonce, at: relay.time.now(), change: change, header: header)
    }

    /// Returns the nonces of another relay of the installation, which has been running for a while.
    func neighbour() -> Nonces {
        Nonces(
            masterKey: Secret(Array(repeating: 7, count: 32)), since: relay.time.now() - .seconds(1000),
            randomness: SystemRandomness())
    }

    /// Sends proofs without a certificate.
    func present(_ proofs: String..., path: String = "/pending", body: JSONObject? = nil) async -> Response {
        await stranger.send("POST", path, body, fields: proofs.map { ("dpop", $0) })
    }
}

extension Response {
    /// The error that the answer reports for a proof.
    var asks: String? {
        fields["www-authenticate"].flatMap { text in
            ["use_dpop_nonce", "invalid_dpop_proof"].first { text == "DPoP error=\"\($0)\", algs=\"ES256\"" }
        }
    }
}
