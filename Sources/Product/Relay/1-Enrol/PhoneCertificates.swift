import Crypto
import Domain
import World

/// The port that issues certificates of phones: the authority in this process, or another process
/// that holds the authority's key. Only binding a phone and renewing a certificate wait for it; no
/// login does.
public protocol PhoneCertificates: Sendable {
    /// Whether the authority is outside of the installation. It then needs the phone's own request,
    /// which asks for the name of the certificate.
    var isOutside: Bool { get }

    /// Issues a certificate, valid for at most `Relay.certificateDays`. One with a tag does not
    /// authenticate the phone. Returns it in PEM.
    func certificate(_ order: CertificateOrder, at now: Timestamp) async throws(CertificateFailure) -> String

    /// Makes the revocation list of the authority, in DER, valid for `RevocationList.life`.
    func revocationList(
        _ revoked: [RevokedCertificate], at now: Timestamp
    ) async throws(CertificateFailure) -> [UInt8]
}

/// The reason why no certificate was issued.
public enum CertificateFailure: Error, Sendable, Equatable {
    /// The authority does not answer now, but may later.
    case unavailable(String)
    /// The authority answers, but refuses to issue the certificate.
    case failed(String)
    /// The authority wants to be asked again after this time.
    case later(String, Duration)
    /// The authority does not issue this.
    case absent
}

extension PhoneCertificates {
    public var isOutside: Bool { false }
}

extension CertificateAuthority: PhoneCertificates {
    public func certificate(
        _ order: CertificateOrder, at now: Timestamp
    ) async throws(CertificateFailure) -> String {
        guard let tag = order.tag else { return try phoneCertificate(for: order.key, of: order.device, at: now) }
        return try signerCertificate(for: order.key, tag: tag, of: order.device, at: now)
    }

    /// Issues a tagged certificate at once, because this process has the key.
    public func signerCertificate(
        for key: P256PublicKey, tag: CertificateTag, of device: DeviceID, at now: Timestamp
    ) throws(CertificateFailure) -> String {
        do throws(CryptoFailure) {
            let certificate = try issueSigner(
                uri: Relay.signerURI(of: device, tag: tag), key: key, days: Relay.certificateDays, at: now)
            return String(decoding: try certificate.pem(), as: UTF8.self)
        } catch {
            throw .failed(error.description)
        }
    }

    public func revocationList(
        _ revoked: [RevokedCertificate], at now: Timestamp
    ) async throws(CertificateFailure) -> [UInt8] {
        try phoneRevocationList(revoked, at: now)
    }

    /// Makes the revocation list at once, because this process has the key.
    public func phoneRevocationList(
        _ revoked: [RevokedCertificate], at now: Timestamp
    ) throws(CertificateFailure) -> [UInt8] {
        do throws(CryptoFailure) {
            return try revocationList(revoked, life: RevocationList.life, at: now)
        } catch {
            throw .failed(error.description)
        }
    }

    /// Issues the certificate at once, because this process has the key.
    public func phoneCertificate(
        for key: P256PublicKey, of device: DeviceID, at now: Timestamp
    ) throws(CertificateFailure) -> String {
        do throws(CryptoFailure) {
            let certificate = try issueClient(
                uri: Relay.deviceURI + device.text, key: key, days: Relay.certificateDays, at: now)
            return String(decoding: try certificate.pem(), as: UTF8.self)
        } catch {
            throw .failed(error.description)
        }
    }
}
