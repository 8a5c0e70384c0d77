import Crypto
import Domain
import World

/// A way to ask an authority outside of the installation for a certificate. Its answer is not
/// trusted: `OutsideAuthority` checks it.
public protocol CertificateIssuer: Sendable {
    /// Whether the authority issues certificates with tags.
    var issuesTagged: Bool { get }
    /// Asks for a certificate. The order has the phone's request, with the right name.
    func issue(_ order: CertificateOrder, _ request: SigningRequest) async throws(CertificateFailure) -> Certificate
}

/// The reason why a certificate of an outside authority is refused.
public enum CertificateFault: String, Error, CaseIterable, Sendable {
    /// It is for another key than that of the request.
    case key
    /// The authority of the settings has not signed it.
    case path
    /// It has another name, or further names.
    case name
    /// It has not exactly the purpose of the order, or is an authority.
    case purpose
    /// It is not valid now, ends within the hour, or is valid for too long.
    case validity
    /// Its serial number is longer than RFC 5280 allows.
    case serial
}

extension CertificateFault {
    /// The fault in words, for the operator of the authority. It names the serial number: the
    /// certificate exists at the authority, and is recorded nowhere here.
    func explanation(of certificate: Certificate, for order: CertificateOrder) -> String {
        let reason: String =
            switch self {
            case .key: "it is for another key than that of the request"
            case .path: "tls.phones has not signed it, or not with these constraints"
            case .name:
                "its names are \(Self.shortened(certificate.uris + certificate.dnsNames)), and must be \(order.name.uri) "
                    + "alone, also as its common name"
            case .purpose:
                certificate.isAuthority
                    ? "it is the certificate of an authority"
                    : "its extended key usage must be \(order.tag == nil ? "clientAuth" : "documentSigning") alone"
            case .validity:
                "it is valid from \(certificate.notBefore.rfc3339) to \(certificate.notAfter.rfc3339), and must be valid "
                    + "now, for an hour at least and for \(Relay.certificateDays) days at most"
            case .serial: "its serial number has \(certificate.serial.utf8.count / 2) bytes"
            }
        return "\(rawValue): \(reason); serial number \(certificate.serial.prefix(40))"
    }

    private static func shortened(_ names: [String]) -> String {
        let text = names.joined(separator: ", ")
        return names.isEmpty ? "none" : text.count > 200 ? "\(text.prefix(200))…" : text
    }
}

/// The authority of phones, if it is outside of the installation, such as behind an EST server.
///
/// Purpose: the key of the authority is nowhere in the installation. The relay passes on the request
/// that the phone has signed, so the authority sees that the phone has the key.
///
/// Invariant: a certificate is used only after it was checked: its key is that of the request, the
/// authority in the settings has signed it, its name is the phone's, it has the one purpose of the
/// order, and it is valid for at most `Relay.certificateDays`. So an authority that errs or lies can
/// refuse certificates, but gives no phone the name of another one.
///
/// Tests: `RelayTests/OutsideAuthorityTests.swift`.
public final class OutsideAuthority: PhoneCertificates {
    private let issuer: any CertificateIssuer
    private let root: Certificate
    private let time: any TimeSource

    /// The difference between the clocks of the authority and the relay that is accepted.
    static let leeway = Duration.seconds(300)

    public init(_ issuer: any CertificateIssuer, root: Certificate, time: any TimeSource) {
        self.issuer = issuer
        self.root = root
        self.time = time
    }

    public var isOutside: Bool { true }

    public func certificate(
        _ order: CertificateOrder, at now: Timestamp
    ) async throws(CertificateFailure) -> String {
        guard order.tag == nil || issuer.issuesTagged else { throw .absent }
        guard let request = order.request, order.isNamed else {
            throw .failed("the request does not name the phone")
        }
        let certificate = try await issuer.issue(order, request)
        do throws(CertificateFault) {
            try Self.check(certificate, for: order, root: root, at: time.now())
        } catch {
            throw .failed(
                "the authority issued another certificate than it was asked for: "
                    + error.explanation(of: certificate, for: order))
        }
        guard let pem = try? certificate.pem() else { throw .failed("the certificate cannot be written") }
        return String(decoding: pem, as: UTF8.self)
    }

    public func revocationList(
        _ revoked: [RevokedCertificate], at now: Timestamp
    ) async throws(CertificateFailure) -> [UInt8] {
        throw .absent
    }

    /// Checks what an authority has issued.
    static func check(
        _ certificate: Certificate, for order: CertificateOrder, root: Certificate, at now: Timestamp
    ) throws(CertificateFault) {
        guard certificate.spkiThumbprint == order.key.spkiThumbprint else { throw .key }
        guard order.name.isName(of: certificate) else { throw .name }
        guard (1...20).contains(certificate.serial.utf8.count / 2) else { throw .serial }
        let longest = now + .seconds(86_400 * Relay.certificateDays) + leeway
        guard certificate.notBefore <= now + leeway, certificate.notAfter > now + .seconds(3600),
            certificate.notAfter <= longest
        else { throw .validity }
        let usage = order.tag == nil ? clientAuth : documentSigning
        guard (try? certificate.extensions("2.5.29.37")) == [usage], !certificate.isAuthority else { throw .purpose }
        do throws(CertificatePath.Fault) {
            _ = try CertificatePath.verify([certificate], roots: [root], at: max(now, certificate.notBefore))
        } catch {
            throw .path
        }
    }

    /// The extended key usages of a certificate with exactly one: id-kp-clientAuth (RFC 5280) and
    /// id-kp-documentSigning (RFC 9336).
    private static let clientAuth: [UInt8] = [0x30, 0x0a, 0x06, 0x08, 0x2b, 6, 1, 5, 5, 7, 3, 2]
    private static let documentSigning: [UInt8] = [0x30, 0x0a, 0x06, 0x08, 0x2b, 6, 1, 5, 5, 7, 3, 36]
}
