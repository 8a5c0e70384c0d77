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

    /// Reads and checks the certificate request for the renewal of a phone's certificate.
    static func renewalRequest(
        _ pem: String?, of key: P256PublicKey, renews: Bool
    ) throws(Refusal) -> SigningRequest? {
        guard let request = try signingRequest(pem) else { return nil }
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
        return request
    }

    /// Issues a certificate for the phone's key and records it for the revocation list. Returns nil
    /// if the authority is outside of the installation and the phone's request does not name the
    /// phone: the phone learns its id with this answer, and then asks again.
    ///
    /// If the authority does not answer, the refusal is `unavailable`, so that the phone tries
    /// again. A phone that has many certificates waits for some days.
    func certificate(
        for key: P256PublicKey, _ request: SigningRequest?, of device: DeviceID, user: UserID,
        most: Int = NewCertificate.most
    ) async throws(Refusal) -> String? {
        let isRenewal = try await requireRoom(of: device, user: user, most: most)
        let order = CertificateOrder(of: device, key: key, request: request, isRenewal: isRenewal)
        guard order.isNamed || !phones.isOutside else { return nil }
        let pem = try await issue(order)
        try await record(pem, of: device, user: user, most: most)
        return pem
    }

    /// Does the same at the binding of a phone, or beside another change. That must not be lost when
    /// an authority outside of the installation is away or refuses: the phone answers with DPoP, and
    /// asks again.
    func certificateIfPossible(
        for key: P256PublicKey, _ request: SigningRequest?, of device: DeviceID, user: UserID,
        most: Int = NewCertificate.most
    ) async throws(Refusal) -> String? {
        guard phones.isOutside else {
            return try await certificate(for: key, request, of: device, user: user, most: most)
        }
        do throws(Refusal) {
            return try await certificate(for: key, request, of: device, user: user, most: most)
        } catch {
            switch error {
            case .unavailable, .pending, .broken, .limited: return nil
            default: throw error
            }
        }
    }

    /// Asks the authority. A fault of the authority changes nothing, so the phone asks again, after a
    /// pause if the authority is outside of the installation.
    func issue(_ order: CertificateOrder) async throws(Refusal) -> String {
        let device = order.device.text
        if phones.isOutside, let wait = outsidePauses.begin(order, at: time.instant()) {
            throw .pending(retryAfter: wait)
        }
        do throws(CertificateFailure) {
            let pem = try await phones.certificate(order, at: time.now())
            if phones.isOutside { outsidePauses.end(order, nil, at: time.instant()) }
            metrics.certificate(.issued)
            return pem
        } catch {
            if phones.isOutside { outsidePauses.end(order, error, at: time.instant()) }
            switch error {
            case .unavailable(let reason):
                metrics.certificate(.later)
                log.warning("device.certificate", [.device: device, .reason: reason])
                throw .unavailable
            case .later(let reason, let pause):
                metrics.certificate(.later)
                log.notice("device.certificate", [.device: device, .reason: reason])
                throw .pending(retryAfter: pause)
            case .failed(let reason):
                metrics.certificate(.failed)
                log.error("device.certificate", [.device: device, .error: reason])
                throw .broken
            case .absent: throw Self.noTaggedCertificates
            }
        }
    }

    private static let noTaggedCertificates = Refusal.forbidden(
        LocalizedText(
            "The authority of the phones issues no certificates for documents",
            de: "Die Zertifizierungsstelle der Telefone stellt keine Zertifikate für Dokumente aus"))

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
    /// many. Returns whether the phone has one.
    @discardableResult
    func requireRoom(
        of device: DeviceID, user: UserID, most: Int = NewCertificate.most
    ) async throws(Refusal) -> Bool {
        let now = time.now()
        let living = try await withStore("certificate") { () async throws(StoreFailure) in
            try await store.livingCertificates(of: device, user: user, at: now)
        }
        guard let end = living.end(most: most, at: now) else { return living.count > 0 }
        log.notice("device.certificates", [.device: device.text, .count: living.count])
        throw .limited(retryAfter: end - now)
    }
}
