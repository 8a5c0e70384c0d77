import Bytes
import Crypto
import JSON
import TLS
import World

/// A Firebase project for one run: its service account, and the certificates of the service.
public struct FakeProject: Sendable {
    public let project = "fake-project"
    public let email = "relay@fake-project.iam.gserviceaccount.com"
    public let keyID = "fakekey0123456789"
    /// The private key of the account, in PEM.
    public let keyPEM: Secret
    let key: CertificateKey
    /// The certificates of the service. The relay must trust `team.authority`.
    public let team: FakeTeam

    /// Creates a new project.
    ///
    /// - Parameter names: the host names and addresses of the service, for its certificate.
    public init(names: [String] = ["localhost", "127.0.0.1"], at now: Timestamp) throws(CryptoFailure) {
        try self.init(team: FakeTeam(names: names, at: now), keyPEM: CertificateKey.generateRSA())
    }

    /// Restores a project that was stored.
    public init(team: FakeTeam, keyPEM: Secret) throws(CryptoFailure) {
        self.team = team
        self.keyPEM = keyPEM
        key = try CertificateKey(pem: keyPEM)
    }

    public func tls() throws -> TLSServerContext { try team.tls() }

    /// The path of the service that issues access tokens.
    static let tokenPath = "/token"

    /// Returns the JSON file of the service account, as Google's console writes it.
    ///
    /// - Parameter origin: the URL of the running service, without a path.
    public func account(origin: String) -> Secret {
        let account: JSONObject = [
            "type": "service_account", "project_id": .string(project), "private_key_id": .string(keyID),
            "private_key": .string(String(decoding: keyPEM.reveal(), as: UTF8.self)), "client_email": .string(email),
            "token_uri": .string(origin + Self.tokenPath),
        ]
        return Secret(JSONWriter.write(account))
    }
}
