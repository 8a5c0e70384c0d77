import Crypto
import Domain
import Log
import World

/// The certificate requests and certificates of phones.
extension Relay {
    /// Reads a certificate request (PKCS #10). Throws if it is malformed, or not signed by its key.
    static func signingRequest(_ pem: String?) throws(Refusal) -> SigningRequest? {
        guard let pem else { return nil }
        do throws(CryptoFailure) {
            return try SigningRequest(pem: Array(pem.utf8))
        } catch {
            throw .invalid([
                FieldFault(
                    "csr", .format,
                    LocalizedText(
                        "must be one PKCS #10 request in PEM, for a P-256 key, signed by it (ECDSA with SHA-256)",
                        de: "muss ein PKCS-#10-Antrag in PEM für einen P-256-Schlüssel sein, von diesem signiert "
                            + "(ECDSA mit SHA-256)"))
            ])
        }
    }

    /// Checks the certificate request for the renewal of a phone's certificate.
    static func check(_ pem: String?, of key: P256PublicKey, renews: Bool) throws(Refusal) {
        guard let request = try signingRequest(pem) else { return }
        guard renews else {
            throw .invalid([
                FieldFault(
                    "csr", .mismatch,
                    LocalizedText("needs certificate: true beside it", de: "erfordert daneben certificate: true"))
            ])
        }
        guard request.key == key else {
            throw .invalid([
                FieldFault(
                    "csr", .mismatch,
                    LocalizedText("is not for this phone's key", de: "gilt nicht für den Schlüssel dieses Telefons"))
            ])
        }
    }

    /// Records a certificate before its phone gets it. Throws if the phone is not active any more,
    /// or has too many.
    func record(_ pem: String, of device: DeviceID, user: UserID, most: Int) async throws(Refusal) {
        guard let certificate = try? Certificate(pem: Array(pem.utf8)) else {
            log.error("device.certificate", [.device: device.text, .error: "the authority made no certificate"])
            throw .broken
        }
        let new = NewCertificate(
            device: device, user: user, serial: certificate.serial, expiresAt: certificate.notAfter, most: most,
            at: time.now())
        let isRecorded = try await withStore("certificate") { () async throws(StoreFailure) in
            try await store.record(new, as: operations.new())
        }
        guard isRecorded else {
            // Requests at the same time may have taken the last places.
            try await requireRoom(of: device, user: user, most: most)
            throw .unauthenticated
        }
    }

    /// Throws if the phone has many certificates, and has got one lately, or if its user has too
    /// many.
    func requireRoom(
        of device: DeviceID, user: UserID, most: Int = NewCertificate.most
    ) async throws(Refusal) {
        let now = time.now()
        let living = try await withStore("certificate") { () async throws(StoreFailure) in
            try await store.livingCertificates(of: device, user: user, at: now)
        }
        guard let end = living.end(most: most, at: now) else { return }
        log.notice("device.certificates", [.device: device.text, .count: living.count])
        throw .limited(retryAfter: end - now)
    }
}
