import Bytes
import Crypto
import TLS
import World

/// A developer team for one run: the provider's key with its ids, and the certificates of the
/// service. Its properties are the values that a relay must be configured with.
public struct FakeTeam: Sendable {
    public let topic: String
    public let keyID = "FAKEKEY123"
    public let teamID = "FAKETEAM12"
    /// The provider's key, which Apple delivers as a `.p8` file.
    public let key: P256PrivateKey
    /// The authority that signed the service's certificate. The relay must trust it.
    public let authority: CertificateAuthority
    /// The authority for the certificates of providers that use no tokens.
    public let providers: CertificateAuthority
    let server: IssuedCertificate
    let names: [String]
    let made: Timestamp
    let randomness: any Randomness

    /// Creates a new team.
    ///
    /// - Parameters:
    ///   - names: the host names and addresses of the service, for its certificate.
    ///   - days: the validity of the certificates.
    public init(
        topic: String = "com.example.twoefay", names: [String] = ["localhost", "127.0.0.1"], days: Int = 90,
        at now: Timestamp, randomness: any Randomness = SystemRandomness()
    ) throws(CryptoFailure) {
        try self.init(
            topic: topic, names: names, key: P256PrivateKey.generate(randomness),
            authority: CertificateAuthority.create(
                commonName: "Fake APNs", days: days, at: now, randomness: randomness),
            providers: CertificateAuthority.create(
                commonName: "Fake APNs providers", days: days, at: now, randomness: randomness),
            days: days, at: now, randomness: randomness)
    }

    /// Restores a team that was stored, with a new certificate for the service.
    public init(
        topic: String, names: [String], key: P256PrivateKey, authority: CertificateAuthority,
        providers: CertificateAuthority, days: Int, at now: Timestamp, randomness: any Randomness = SystemRandomness()
    ) throws(CryptoFailure) {
        self.topic = topic
        self.names = names
        self.key = key
        self.authority = authority
        self.providers = providers
        self.randomness = randomness
        made = now
        server = try authority.issueServer(names: names, days: days, at: now)
    }

    /// Accepts only provider tokens of this team.
    public var tokenAuthentication: ProviderAuthentication {
        .token(key: key.publicKey, keyID: keyID, teamID: teamID)
    }

    /// Accepts provider tokens of this team, and client certificates from providers that send no
    /// token.
    public var anyAuthentication: ProviderAuthentication {
        .tokenOrCertificate(key: key.publicKey, keyID: keyID, teamID: teamID)
    }

    /// Returns a TLS context with the service's certificate, which accepts certificates of
    /// `providers`.
    public func tls() throws -> TLSServerContext {
        try TLSServerContext(
            certificateChainPEM: server.certificatePEM(), privateKeyPEM: server.keyPEM(),
            websitesCA: providers.certificatePEM())
    }

    /// Issues a client certificate for a provider that uses no tokens.
    public func issueProvider(days: Int = 30, at now: Timestamp) throws(CryptoFailure) -> IssuedCertificate {
        try providers.issueClient(uri: "fake-apns:\(topic)", days: days, at: now)
    }
}
