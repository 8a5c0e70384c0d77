import Bytes
import Crypto
import TLS
import World

/// A developer team that exists for one run: the provider's key with its ids, and the certificates of the service. What
/// a relay has to be told about it stands in the properties.
public struct FakeTeam: Sendable {
    public let topic: String
    public let keyID = "FAKEKEY123"
    public let teamID = "FAKETEAM12"
    /// The provider's, as Apple's `.p8` file has it.
    public let key: P256PrivateKey
    /// Signed the service's certificate: extra trust for the relay.
    public let authority: CertificateAuthority
    /// Signs the certificates of providers that come without tokens.
    public let providers: CertificateAuthority
    let server: IssuedCertificate
    let names: [String]
    let made: Timestamp
    let randomness: any Randomness

    /// A new one.
    ///
    /// - Parameter names: host names and addresses under which the service is found.
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

    /// One that was there before, with a new certificate for the service.
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

    public var tokenAuthentication: ProviderAuthentication {
        .token(key: key.publicKey, keyID: keyID, teamID: teamID)
    }

    /// Tokens, and certificates from whoever brings none.
    public var anyAuthentication: ProviderAuthentication {
        .tokenOrCertificate(key: key.publicKey, keyID: keyID, teamID: teamID)
    }

    /// What the service shows, and whose certificates it takes from providers.
    public func tls() throws -> TLSServerContext {
        try TLSServerContext(
            certificateChainPEM: server.certificatePEM(), privateKeyPEM: server.keyPEM(),
            websitesCA: providers.certificatePEM())
    }

    /// For a provider that shows a certificate instead of tokens.
    public func issueProvider(days: Int = 30, at now: Timestamp) throws(CryptoFailure) -> IssuedCertificate {
        try providers.issueClient(uri: "fake-apns:\(topic)", days: days, at: now)
    }
}
