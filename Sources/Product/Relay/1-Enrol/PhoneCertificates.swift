import Crypto
import Domain
import World

/// The port that issues certificates of phones: the authority in this process, or another process
/// that holds the authority's key. Only binding a phone and renewing a certificate wait for it; no
/// login does.
public protocol PhoneCertificates: Sendable {
    /// Issues a certificate for the key of a phone, valid for `Relay.certificateDays`. Returns it
    /// in PEM.
    func certificate(
        for key: P256PublicKey, of device: DeviceID, at now: Timestamp
    ) async throws(CertificateFailure) -> String

    /// Issues a certificate for another key of a phone, whose purpose the tag names. It does not
    /// authenticate the phone. Returns it in PEM.
    func certificate(
        for key: P256PublicKey, tag: CertificateTag, of device: DeviceID, at now: Timestamp
    ) async throws(CertificateFailure) -> String

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
}

extension CertificateAuthority: PhoneCertificates {
    public func certificate(
        for key: P256PublicKey, of device: DeviceID, at now: Timestamp
    ) async throws(CertificateFailure) -> String {
        try phoneCertificate(for: key, of: device, at: now)
    }

    public func certificate(
        for key: P256PublicKey, tag: CertificateTag, of device: DeviceID, at now: Timestamp
    ) async throws(CertificateFailure) -> String {
        try signerCertificate(for: key, tag: tag, of: device, at: now)
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
