import Bytes
import Crypto
import Domain
import JSON
import Log
import World

/// A certificate of a website's key. TLS itself checks the certificate.
public struct WebsiteCertificate: Sendable, Equatable {
    public let notBefore: Timestamp
    public let notAfter: Timestamp
    /// SHA-256 of the public key of the authority that signed it.
    public let issuer: [UInt8]
    public let serial: String

    public init(notBefore: Timestamp, notAfter: Timestamp, issuer: [UInt8], serial: String) {
        self.notBefore = notBefore
        self.notAfter = notAfter
        self.issuer = issuer
        self.serial = serial
    }

    public init(_ certificate: Certificate, issuer: [UInt8]) {
        self.init(
            notBefore: certificate.notBefore, notAfter: certificate.notAfter, issuer: issuer,
            serial: certificate.serial)
    }

    /// The time from which on the website may renew it: a third of its validity is left.
    var renewableFrom: Timestamp { notAfter - (notAfter - notBefore) / 3 }
}

/// The port that signs the certificates that websites renew by themselves: the authority in this
/// process, or another process that holds its key.
public protocol WebsiteCertificates: Sendable {
    /// SHA-256 of the authority's public key.
    var keyThumbprint: [UInt8] { get }

    /// Issues a certificate with the name of the website, valid for `Relay.websiteCertificateDays`.
    func websiteCertificate(
        for website: String, key: P256PublicKey, at now: Timestamp
    ) async throws(CertificateFailure) -> Certificate
}

extension CertificateAuthority: WebsiteCertificates {
    /// Issues the certificate at once, because this process has the key.
    public func websiteCertificate(
        for website: String, key: P256PublicKey, at now: Timestamp
    ) throws(CertificateFailure) -> Certificate {
        do throws(CryptoFailure) {
            return try issueClient(
                uri: Relay.websiteURI + website, key: key, days: Relay.websiteCertificateDays, at: now)
        } catch {
            throw .failed(error.description)
        }
    }
}

/// The store port for the renewal of a website's certificate by the website itself.
///
/// Purpose: the key stays, and gets another certificate. So whoever has the key gets no right that
/// was not there before, and the revocation of the key ends all its certificates.
///
/// Invariants:
/// - A certificate is recorded before the website gets it, and only while the key may be used.
///   Former certificates stay recorded until they expire, for the revocation list.
/// - A key gets `WebsiteRenewal.most` certificates at any rate, and then one in each
///   `WebsiteRenewal.pause`. So lost answers can be repeated, and nobody makes the list long.
///
/// `WebsiteRenewalTests.swift` tests it.
public protocol WebsiteRenewalStore: Sendable {
    /// Returns the certificates of a key; nil if the website may not use the key.
    func certificates(
        ofKey key: [UInt8], of website: WebsiteID, at: Timestamp
    ) async throws(StoreFailure) -> WebsiteKeyCertificates?
    /// Records the new certificate. Returns false if the website may not use the key any more, or if
    /// the key has too many certificates.
    func renew(_ renewal: WebsiteRenewal, as operation: Operation) async throws(StoreFailure) -> Bool
}

/// The certificates of a website's key.
public struct WebsiteKeyCertificates: Sendable, Equatable {
    /// The newest one; nil if the store does not know it.
    public let newest: WebsiteCertificate?
    /// The number of former ones that have not expired.
    public let formerCount: Int

    public init(newest: WebsiteCertificate?, formerCount: Int) {
        self.newest = newest
        self.formerCount = formerCount
    }

    /// The time until which the key gets no other one; nil if it may now.
    func end(at now: Timestamp) -> Timestamp? {
        guard formerCount >= WebsiteRenewal.most, let newest else { return nil }
        let end = newest.notBefore + WebsiteRenewal.pause
        return end > now ? end : nil
    }
}

/// A new certificate of a website's key.
public struct WebsiteRenewal: Sendable {
    /// The former certificates that have not expired which a key may have at any rate.
    public static let most = 8
    /// The time between two certificates of a key that has as many.
    public static let pause = Duration.seconds(7 * 86_400)

    public let website: WebsiteID
    public let key: [UInt8]
    public let certificate: WebsiteCertificate
    /// The serial numbers and ends before and after, for the audit.
    public let changes: ChangedValues
    public let at: Timestamp
}

extension Relay {
    /// The beginning of the name in a website's certificate.
    public static let websiteURI = "twoefay:website:"
    /// The validity of a website's certificate, in days.
    public static let websiteCertificateDays = 825

    /// Issues another certificate for the key of the connection's own certificate.
    ///
    /// A repetition is a further renewal, because the store does not keep certificates.
    ///
    /// - Parameters:
    ///   - key: the thumbprint of the connection's key.
    ///   - shown: the certificate of the connection.
    ///   - pem: the certificate request. Only its key and its signature count.
    public func renewCertificate(
        of website: Website, key: [UInt8], _ shown: WebsiteCertificate, request pem: String
    ) async throws(Refusal) -> (pem: String, expiresAt: Timestamp) {
        guard let authority = websiteAuthority else { throw Self.noWebsiteRenewal }
        guard let request = try Self.signingRequest(pem), request.key.spkiThumbprint == key else {
            throw Self.otherWebsiteKey
        }
        let now = time.now()
        // TLS has checked the certificate when the connection began, and the connection may be old.
        guard shown.notAfter > now else { throw .unauthenticated }
        guard shown.issuer != authority.keyThumbprint || now >= shown.renewableFrom else {
            throw Self.tooEarly(shown)
        }
        let present = try await certificates(ofKey: key, of: website)
        let issued = try await issue(for: website, request.key, by: authority)
        guard let text = try? issued.pem() else { throw .broken }
        let new = WebsiteCertificate(issued, issuer: authority.keyThumbprint)
        var changes = ChangedValues()
        changes.note("serial", .text(present.newest?.serial), .string(new.serial))
        changes.note("expires_at", .text(present.newest?.notAfter.rfc3339), .string(new.notAfter.rfc3339))
        let renewal = WebsiteRenewal(website: website.id, key: key, certificate: new, changes: changes, at: now)
        let isDone = try await withStore("website renewal") { () async throws(StoreFailure) in
            try await store.renew(renewal, as: operations.new())
        }
        guard isDone else {
            // Requests at the same time may have taken the last place.
            _ = try await certificates(ofKey: key, of: website)
            throw .unauthenticated
        }
        log.notice(
            "website.renewed",
            [.website: website.name, .serial: new.serial, .expiresAt: new.notAfter.rfc3339])
        return (String(decoding: text, as: UTF8.self), issued.notAfter)
    }

    /// Returns the certificates of a key. Throws if it has too many.
    private func certificates(
        ofKey key: [UInt8], of website: Website
    ) async throws(Refusal) -> WebsiteKeyCertificates {
        let now = time.now()
        let found = try await withStore("website renewal") { () async throws(StoreFailure) in
            try await store.certificates(ofKey: key, of: website.id, at: now)
        }
        guard let found else { throw .unauthenticated }
        guard let end = found.end(at: now) else { return found }
        log.notice("website.certificates", [.website: website.name, .count: found.formerCount])
        throw .limited(retryAfter: end - now)
    }

    private func issue(
        for website: Website, _ key: P256PublicKey, by authority: any WebsiteCertificates
    ) async throws(Refusal) -> Certificate {
        do throws(CertificateFailure) {
            return try await authority.websiteCertificate(for: website.name, key: key, at: time.now())
        } catch {
            switch error {
            case .unavailable(let reason), .later(let reason, _):
                log.warning("website.renewal", [.website: website.name, .reason: reason])
                throw .unavailable
            case .failed(let reason):
                log.error("website.renewal", [.website: website.name, .error: reason])
                throw .broken
            case .absent: throw Self.noWebsiteRenewal
            }
        }
    }

    private static let noWebsiteRenewal = Refusal.forbidden(
        LocalizedText(
            "The operator has not turned on that websites renew their certificates (tls.websites_renewal). Ask the "
                + "operator for another certificate: twoefay website renew",
            de: "Der Betreiber hat nicht eingeschaltet, dass Websites ihre Zertifikate selbst erneuern "
                + "(tls.websites_renewal). Bitten Sie ihn um ein neues Zertifikat: twoefay website renew"))

    private static let otherWebsiteKey = Refusal.invalid([
        FieldFault(
            "csr", .mismatch,
            LocalizedText(
                "is not for the key of this connection's certificate. Only the operator gives out a new key: twoefay "
                    + "website renew",
                de:
                    "gilt nicht für den Schlüssel des Zertifikats dieser Verbindung. Einen neuen Schlüssel gibt nur der "
                    + "Betreiber aus: twoefay website renew"))
    ])

    private static func tooEarly(_ shown: WebsiteCertificate) -> Refusal {
        let start = shown.renewableFrom.rfc3339
        return .conflict([
            FieldFault(
                "csr", .state,
                LocalizedText(
                    "comes too early: this certificate can be renewed from \(start) on",
                    de: "kommt zu früh: Dieses Zertifikat kann ab \(start) erneuert werden"))
        ])
    }
}
