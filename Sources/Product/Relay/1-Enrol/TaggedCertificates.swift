import Crypto
import Domain
import Log
import World

/// The store port for the further certificates of phones (verb Enrol).
public protocol TaggedCertificateStore: Sendable {
    /// Returns what `record` would return now. The certificate need not be issued yet: its serial
    /// number, its text and its end do not count.
    func check(_ certificate: NewTaggedCertificate) async throws(StoreFailure) -> TaggedCertificateOutcome
    /// Records a certificate, in the place of the earlier one of its phone and tag.
    func record(_ certificate: NewTaggedCertificate, as operation: Operation)
        async throws(StoreFailure) -> TaggedCertificateOutcome
    /// Returns the tagged certificates of all phones of a user.
    func taggedCertificates(of user: UserID) async throws(StoreFailure) -> [TaggedCertificate]
    /// Returns the signer with a tagged certificate; nil if this website has no such active phone,
    /// or the phone no such certificate.
    func signer(
        _ device: DeviceID, tag: String, of website: WebsiteID, at: Timestamp
    ) async throws(StoreFailure) -> DocumentSigner?
}

/// A further certificate of a phone, for a key that is not its enrolment key.
public struct TaggedCertificate: Sendable, Equatable {
    public let device: DeviceID
    public let tag: String
    /// Whether the tag was marked raw when the certificate was issued.
    public let isRaw: Bool
    /// The serial number in hexadecimal.
    public let serial: String
    /// The certificate in PEM.
    public let pem: String
    /// The time of the request by the phone's clock.
    public let askedAt: Timestamp
    public let createdAt: Timestamp
    public let expiresAt: Timestamp

    public init(
        device: DeviceID, tag: String, isRaw: Bool, serial: String, pem: String, askedAt: Timestamp,
        createdAt: Timestamp, expiresAt: Timestamp
    ) {
        self.device = device
        self.tag = tag
        self.isRaw = isRaw
        self.serial = serial
        self.pem = pem
        self.askedAt = askedAt
        self.createdAt = createdAt
        self.expiresAt = expiresAt
    }
}

/// A tagged certificate to be recorded.
public struct NewTaggedCertificate: Sendable {
    /// The certificates of one phone and tag that have not expired which it may have at any rate. A
    /// phone that renews its certificate in time has two, and it may have replaced the key. Then it
    /// gets the next one after `NewCertificate.pause`.
    public static let most = 4

    public let certificate: TaggedCertificate
    public let phone: PhoneCredential
    public let key: P256PublicKey

    public init(_ certificate: TaggedCertificate, of phone: PhoneCredential, key: P256PublicKey) {
        self.certificate = certificate
        self.phone = phone
        self.key = key
    }
}

public enum TaggedCertificateOutcome: Sendable, Equatable {
    case done
    /// The phone is no longer active.
    case gone
    /// The user is locked, frozen, disabled or expired.
    case barred(UserState)
    /// The request is not later than the one before for this tag.
    case replayed
    /// The phone has too many certificates of this tag until then.
    case full(until: Timestamp)
    /// The key has or had another use: it belongs to an enrolment, to another phone, to another tag
    /// or to one with another mark.
    case usedKey
}

/// A phone and its tagged certificate, to check what it has signed.
public struct DocumentSigner: Sendable, Equatable {
    public let username: String
    /// The state of the user now.
    public let state: UserState
    public let certificate: TaggedCertificate
    /// Whether the certificate is on the revocation list.
    public let isRevoked: Bool
    /// Whether the key of the certificate is the enrolment key of a phone.
    public let isEnrolmentKey: Bool

    public init(
        username: String, state: UserState, certificate: TaggedCertificate, isRevoked: Bool, isEnrolmentKey: Bool
    ) {
        self.username = username
        self.state = state
        self.certificate = certificate
        self.isRevoked = isRevoked
        self.isEnrolmentKey = isEnrolmentKey
    }
}

/// A phone gets further certificates, each for a purpose (tag) that the website's policy names.
/// Their keys sign documents; the enrolment key never does.
///
/// Invariants: a key has one purpose, so the key of a tagged certificate is neither the enrolment
/// key of a phone nor the key of another tag. The certificate does not authenticate in TLS, because
/// it lacks the usage for that. It ends with its phone: an unbound phone has none, and a suspended
/// one signs nothing.
///
/// Tests: `APITests/TaggedCertificateTests.swift`.
extension Relay {
    /// Returns the URI in a tagged certificate. It shows everybody whether the key signs bare hashes:
    /// a statement that such a key has signed says nothing about what its owner saw.
    public static func signerURI(of device: DeviceID, tag: CertificateTag) -> String {
        "twoefay:\(tag.isRaw ? "raw-signer" : "signer"):\(device.text):\(tag.name)"
    }

    /// Issues a tagged certificate for the key of a certificate request.
    ///
    /// - Parameters:
    ///   - request: the certificate request (PKCS #10), in PEM.
    ///   - proof: a `twoefay-certificate+jwt` about the tag and the request.
    public func certify(
        tag name: String, request: String, proof: String, by phone: PhoneCredential
    ) async throws(Refusal) -> TaggedCertificate {
        if let wait = certificateBudget.wait(phone.id, at: time.instant()) {
            metrics.reached(.report)
            throw .limited(retryAfter: wait)
        }
        let website = try website(phone.website)
        guard let tag = website.policy.certificateTag(name) else { throw Self.unknownTag }
        guard let key = try? P256PublicKey(x963: phone.publicKey) else {
            log.error("device.key", [.device: phone.id.text])
            throw .broken
        }
        guard let signed = try Self.signingRequest(request) else { throw .broken }
        let (now, asked) = (time.now(), try asked(proof, about: request, tag, by: phone, key: key, website))
        guard signed.key != key else { throw Self.usedKey }
        // The phone did not get the answer, and repeats the request.
        if let stored = try await stored(tag, key: signed.key, asked: asked, of: phone, website) { return stored }
        let order = CertificateOrder(of: phone.id, tag: tag, key: signed.key, request: signed)
        guard order.isNamed || !phones.isOutside else { throw Self.unnamed(order) }
        if try await mayBeRecorded(order, asked: asked, by: phone, at: now) {
            let pem = try await issue(order)
            guard let issued = try? Certificate(pem: Array(pem.utf8)) else {
                log.error("device.certificate", [.device: phone.id.text, .error: "the authority made no certificate"])
                throw .broken
            }
            let certificate = TaggedCertificate(
                device: phone.id, tag: tag.name, isRaw: tag.isRaw, serial: issued.serial, pem: pem, askedAt: asked,
                createdAt: now, expiresAt: issued.notAfter)
            if try await record(NewTaggedCertificate(certificate, of: phone, key: signed.key), website) {
                return certificate
            }
        }
        // The same request at the same time was faster, or another one later.
        guard let stored = try await stored(tag, key: signed.key, asked: asked, of: phone, website) else {
            throw Self.replayed
        }
        return stored
    }

    /// Checks the phone's proof. Returns its time.
    private func asked(
        _ proof: String, about request: String, _ tag: CertificateTag, by phone: PhoneCredential,
        key: P256PublicKey, _ website: Website
    ) throws(Refusal) -> Timestamp {
        do throws(CertificateProof.Fault) {
            return try CertificateProof.check(
                proof, of: phone.id, key: key,
                audience: SignedDecision.audience(origin: settings.origin, website: website.name), tag: tag.name,
                request: request, at: time.now())
        } catch {
            throw .invalid([FieldFault("proof", error.code, error.message)])
        }
    }

    /// Returns the certificate that exactly this request has got; nil if it has got none.
    private func stored(
        _ tag: CertificateTag, key: P256PublicKey, asked: Timestamp, of phone: PhoneCredential, _ website: Website
    ) async throws(Refusal) -> TaggedCertificate? {
        let signer = try await withStore("tag") { () async throws(StoreFailure) in
            try await store.signer(phone.id, tag: tag.name, of: website.id, at: time.now())
        }
        guard let signer, signer.state == .active, signer.certificate.isRaw == tag.isRaw,
            signer.certificate.askedAt == asked,
            let issued = try? Certificate(pem: Array(signer.certificate.pem.utf8)),
            issued.spkiThumbprint == key.spkiThumbprint
        else { return nil }
        return signer.certificate
    }

    /// Returns what the record of the certificate would return, and throws what it would throw. A
    /// certificate that the authority has issued is valid, also if the relay discards it, so that is
    /// found out before.
    private func mayBeRecorded(
        _ order: CertificateOrder, asked: Timestamp, by phone: PhoneCredential, at now: Timestamp
    ) async throws(Refusal) -> Bool {
        guard let tag = order.tag else { return true }
        let planned = TaggedCertificate(
            device: phone.id, tag: tag.name, isRaw: tag.isRaw, serial: "", pem: "", askedAt: asked, createdAt: now,
            expiresAt: now)
        let new = NewTaggedCertificate(planned, of: phone, key: order.key)
        let outcome = try await withStore("tag") { () async throws(StoreFailure) in try await store.check(new) }
        return try isPermitted(outcome, new)
    }

    /// Records the certificate before its phone gets it, so that the revocation list can name it.
    /// Returns false if the request is not later than the one before.
    private func record(_ new: NewTaggedCertificate, _ website: Website) async throws(Refusal) -> Bool {
        let outcome = try await withStore("tag") { () async throws(StoreFailure) in
            try await store.record(new, as: operations.new())
        }
        guard try isPermitted(outcome, new) else { return false }
        log.info(
            "device.certified",
            [
                .website: website.name, .user: new.phone.user.text, .device: new.phone.id.text,
                .outcome: new.certificate.tag,
            ])
        scheduleWebhooks()
        return true
    }

    /// Returns false if the request is not later than the one before, and throws for other refusals.
    private func isPermitted(
        _ outcome: TaggedCertificateOutcome, _ new: NewTaggedCertificate
    ) throws(Refusal) -> Bool {
        switch outcome {
        case .done: return true
        case .replayed: return false
        case .gone: throw .unauthenticated
        case .barred(let state): throw Self.barred(state)
        case .full(let end):
            log.notice("device.certificates", [.device: new.phone.id.text, .count: NewTaggedCertificate.most])
            throw .limited(retryAfter: end - new.certificate.createdAt)
        case .usedKey: throw Self.usedKey
        }
    }

    /// Returns the tagged certificates of a user's phones. If the website has no tags, they do not
    /// count, and none are read.
    public func taggedCertificates(
        of user: UserID, at website: Website
    ) async throws(Refusal) -> [DeviceID: [TaggedCertificate]] {
        guard !website.policy.certificateTags.isEmpty else { return [:] }
        let all = try await withStore("certificates") { () async throws(StoreFailure) in
            try await store.taggedCertificates(of: user)
        }
        return Dictionary(grouping: all, by: \.device)
    }

    private static let unknownTag = Refusal.invalid([
        FieldFault(
            "tag", .unknown,
            LocalizedText(
                "is not in the website's policy certificate-tags",
                de: "steht nicht in der Richtlinie certificate-tags der Website"))
    ])

    private static func unnamed(_ order: CertificateOrder) -> Refusal {
        .invalid([
            FieldFault(
                "csr", .mismatch,
                LocalizedText(
                    "must ask for \(order.name.uri) as its only name",
                    de: "muss nur den Namen \(order.name.uri) verlangen"))
        ])
    }

    private static let replayed = Refusal.conflict([
        FieldFault(
            "proof", .mismatch,
            LocalizedText(
                "is not later than the last request of this phone for this tag: sign a new one",
                de: "ist nicht später als die letzte Anfrage dieses Telefons für dieses Tag: Signieren Sie eine neue"))
    ])

    private static let usedKey = Refusal.conflict([
        FieldFault(
            "csr", .taken,
            LocalizedText(
                "is for a key with another use: make a new key for each tag",
                de: "gilt für einen Schlüssel mit einem anderen Zweck: Erzeugen Sie für jedes Tag einen neuen"))
    ])
}

extension CertificateProof.Fault {
    fileprivate var code: FieldFault.Code {
        switch self {
        case .statement: .format
        case .clock: .mismatch
        }
    }

    fileprivate var message: LocalizedText {
        switch self {
        case .statement:
            LocalizedText(
                "must be a twoefay-certificate+jwt about tag and csr that this phone has signed",
                de: "muss ein twoefay-certificate+jwt über tag und csr sein, das dieses Telefon signiert hat")
        case .clock:
            LocalizedText(
                "has an iat that differs from the relay's clock by more than five minutes: see GET /time",
                de: "hat ein iat, das um mehr als fünf Minuten von der Uhr des Relays abweicht: siehe GET /time")
        }
    }
}
