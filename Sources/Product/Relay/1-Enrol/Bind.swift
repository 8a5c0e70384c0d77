import Attestation
import Bytes
import Crypto
import Domain
import JSON
import Log
import World

/// A phone's request to be bound.
public struct BindRequest: Sendable {
    public var token: UserToken
    /// The device token; empty if the phone polls by itself.
    public var pushToken: String
    public var activationCode: String
    /// The proof of possession: a `twoefay-enrol+jwt`, signed by the new key.
    public var proof: String
    public var binding: String?
    public var name: String?
    public var platform: Platform
    public var environment: PushEnvironment
    /// The platform's statement about the key, as the phone sent it; nil if it sent none.
    public var attestation: JSONValue?
    /// The phone's certificate request (PKCS #10) for its new key, in PEM.
    public var certificateRequest: String?
    /// The languages of the messages to the user who must approve.
    public var languages = RequestedLanguages.none

    public init(
        token: UserToken, pushToken: String, activationCode: String, proof: String, binding: String?, name: String?,
        platform: Platform, environment: PushEnvironment
    ) {
        self.token = token
        self.pushToken = pushToken
        self.activationCode = activationCode
        self.proof = proof
        self.binding = binding
        self.name = name
        self.platform = platform
        self.environment = environment
    }
}

/// The progress of the binding of a phone.
public enum Binding: Sendable, Equatable {
    case bound(Bound)
    /// The phone waits for its user's approval. The user must enter the number that the new phone
    /// shows.
    case waiting(DeviceID, number: String?)
}

/// A bound phone, with a certificate and its revocation code.
public struct Bound: Sendable, Equatable {
    public let device: DeviceID
    /// The certificate in PEM; nil if the phone gets it later, from an authority outside of the
    /// installation.
    public let certificate: String?
    public let revocationCode: String
    /// The phone's attestation; nil if attestations do not count.
    public internal(set) var attestation: AttestationRow?
}

extension Relay {
    public static let certificateDays = 90
    /// The prefix of the URI in a phone's certificate; the phone's id follows.
    public static let deviceURI = "twoefay:device:"

    /// Binds a phone, or returns how far the binding has come. A phone may repeat the same request,
    /// if it never saw the answer, or to learn whether its user has approved.
    ///
    /// The answer does not reveal which element of a request was wrong. Every wrong element causes
    /// `unauthenticated`, and slows the sender down.
    public func bind(_ request: BindRequest, from sender: String = "") async throws(Refusal) -> Binding {
        try await taking(from: sender) { () async throws(Refusal) in
            // A malformed request is refused in the same way whatever the other elements are.
            let signed = try Self.signingRequest(request.certificateRequest)
            let enrolment = try await withStore("verify") { () async throws(StoreFailure) in
                try await store.enrolment(of: request.token)
            }
            guard let enrolment,
                let keys = EnrolProof.keys(
                    request, signed: signed, origin: settings.origin, website: enrolment.website.name)
            else { throw .unauthenticated }
            var candidate = try Candidate(request, keys, enrolment, sender, self)
            candidate.certificateRequest = signed
            return try await advance(candidate)
        }
    }

    /// A phone that proved its key. Its ids follow from key and code, so they are the same whenever
    /// it repeats the request.
    private struct Candidate: Sendable {
        let enrolment: Enrolment
        let token: UserToken
        let languages: RequestedLanguages
        let website: Website
        let key: P256PublicKey
        let sender: String
        let activationCode: String
        let attestation: JSONValue?
        var certificateRequest: SigningRequest?
        let digest: [UInt8]
        let binding: Operation
        /// The secret that this request drew. If another request or relay carries out the change,
        /// its secret is stored instead and used for the answer.
        let secret: OperationSecret
        let use: OperationSecret.Use
        private(set) var device: NewDevice

        init(
            _ request: BindRequest, _ keys: EnrolProof.Keys, _ enrolment: Enrolment, _ sender: String, _ relay: Relay
        ) throws(Refusal) {
            self.enrolment = enrolment
            key = keys.signing
            self.sender = sender
            token = request.token
            languages = request.languages
            website = try relay.website(enrolment.website)
            activationCode = request.activationCode
            attestation = request.attestation
            digest = ActivationCode(text: request.activationCode).digest
            binding = relay.operations.fixed("bind", digest + key.spkiThumbprint).speaking(request.languages)
            // The same key of the same user is always the same phone, however often it is bound.
            let phone = relay.operations.fixed("device", enrolment.user.bytes + key.spkiThumbprint)
            secret = relay.drawSecret()
            use = OperationSecret.Use(.binding, user: enrolment.user, website: website.id)
            device = NewDevice(
                id: phone.identifier("device"), user: enrolment.user, name: request.name, platform: request.platform,
                environment: request.environment, pushToken: request.pushToken, publicKey: key.x963,
                thumbprint: key.spkiThumbprint, revocation: RevocationCode.digest(RevocationCode.text(secret)),
                binding: request.binding, at: relay.time.now())
            device.agreementKey = keys.agreement?.x963
            device.page = keys.web.map { BoundPage(claims: $0, isApart: !$0.isServed(by: relay.ownHosts)) }
        }

        var approvable: Approvable { .phone(device, key: key, sender: sender) }

        /// Returns the phone to be stored.
        ///
        /// - Parameter challenge: the challenge that the phone waits for; nil if it need not wait.
        func stored(_ attestation: AttestationRow?, waitingFor challenge: ChallengeID?) -> NewDevice {
            var device = device
            device.attestation = attestation
            device.approval = challenge
            return device
        }
    }

    /// Advances the binding one change at a time. Each change is decided by what the store says
    /// after the one before. It stops when there is a result, or when nothing changed.
    private func advance(_ candidate: Candidate) async throws(Refusal) -> Binding {
        let device = candidate.device
        var before: Progress?
        while true {
            let progress = try await withStore("verify") { () async throws(StoreFailure) in
                try await store.progress(
                    of: device.id, user: device.user, code: candidate.digest, binding: candidate.binding.id,
                    at: time.now())
            }
            guard progress != before, let code = progress.code else { throw .unauthenticated }
            before = progress
            if code.usedBy == nil {
                guard time.now() < code.expiresAt else { throw .unauthenticated }
                try await requireSamePage(device, as: progress.phone)
                // Checked only after the activation code, because this refusal reveals something
                // about our network.
                try requireUsable(device.pushToken, of: device.platform)
                // Otherwise the phone would be bound, and get no answer that names it. With an outside
                // authority it is bound without a certificate, whatever the reason.
                if !phones.isOutside { try await requireRoom(of: device.id, user: device.user) }
                let mustWait = progress.isProved && code.approval == nil && progress.phone?.state != .active
                try await use(
                    candidate, code, approval: mustWait ? approving(candidate, 0).challenge : nil)
                continue
            }
            guard code.usedBy == candidate.binding.id, let usedAt = code.usedAt, let phone = progress.phone else {
                throw .unauthenticated
            }
            switch (phone.state, phone.approval) {
            case (.active, _):
                // The answer holds the revocation code, so an old request must not be able to
                // obtain it.
                guard time.now() < usedAt + NewActivation.lifetime, let secret = progress.secret else {
                    throw .unauthenticated
                }
                let code = RevocationCode.text(try opened(secret, for: candidate.use, of: candidate.binding.id))
                // If the phone was bound again with another code, it has another revocation code
                // too.
                guard RevocationCode.digest(code) == phone.revocation else { throw .unauthenticated }
                return .bound(try await bound(candidate, revocationCode: code))
            case (.waiting, let challenge?):
                if let waiting = try await wait(candidate, challenge, progress, code) { return waiting }
            default: throw .unauthenticated
            }
        }
    }

    private func use(
        _ candidate: Candidate, _ code: Progress.Code, approval: ChallengeID?
    ) async throws(Refusal) {
        let attestation = try await attest(
            candidate.attestation, of: candidate.device, key: candidate.key, token: candidate.token,
            code: candidate.activationCode, activation: candidate.digest, at: candidate.website)
        var device = candidate.stored(attestation, waitingFor: approval)
        device.replacesOthers = code.approval == .recovery
        let slots = candidate.website.policy.devices
        let secret = try stored(
            candidate.secret, for: candidate.use, of: candidate.binding.id, until: device.at + NewActivation.lifetime)
        let outcome = try await withStore("verify") { () async throws(StoreFailure) in
            try await store.bind(
                device, digest: candidate.digest, slots: slots, secret: secret, as: candidate.binding)
        }
        try report(outcome, device.state == .active ? "device.bound" : "device.waiting", candidate)
        guard device.replacesOthers, outcome == .done else { return }
        await reportEndedRecoveries(by: candidate.binding, of: device.user, candidate.website.name, .phone)
    }

    private func report(_ outcome: BindOutcome, _ event: StaticString, _ candidate: Candidate) throws(Refusal) {
        switch outcome {
        // Another request was faster, or the user has got a factor by now. The caller reads the
        // state again.
        case .refused: break
        case .full:
            let most = candidate.website.policy.devices
            throw .conflict([
                FieldFault(
                    "id_token", .taken,
                    LocalizedText(
                        "already has \(most) phones, the maximum of the website's policy: unbind one first",
                        de: "hat schon \(most) Telefone, mehr erlaubt die Richtlinie der Website nicht: Entfernen Sie "
                            + "zuerst eines"))
            ])
        case .done:
            log.info(
                event,
                [
                    .website: candidate.website.name, .user: candidate.device.user.text,
                    .device: candidate.device.id.text,
                ])
            scheduleWebhooks()
        }
    }

    private func bound(_ candidate: Candidate, revocationCode: String) async throws(Refusal) -> Bound {
        phoneKeys.forget(candidate.key.spkiThumbprint)
        let device = candidate.device.id
        var bound = Bound(
            device: device,
            certificate: try await certificateIfPossible(
                for: candidate.key, candidate.certificateRequest, of: device, user: candidate.device.user,
                most: NewCertificate.mostEnrolled),
            revocationCode: revocationCode)
        bound.attestation = try await attestation(of: device, at: candidate.website)
        return bound
    }
}

/// The wait for the user's approval.
extension Relay {
    /// The most challenges about one phone with one code.
    static let mostApprovals = 5

    /// Returns the operation and id of the nth challenge about this phone with this code.
    private func approving(_ candidate: Candidate, _ number: Int) -> (operation: Operation, challenge: ChallengeID) {
        let operation = operations.fixed("approval", candidate.binding.id.bytes + [UInt8(number)])
            .speaking(candidate.languages)
        return (operation, operation.identifier("challenge"))
    }

    /// Returns the answer to the phone; nil if this call has changed something, so that the state
    /// must be read again.
    private func wait(
        _ candidate: Candidate, _ challenge: ChallengeID, _ progress: Progress, _ code: Progress.Code
    ) async throws(Refusal) -> Binding? {
        let device = candidate.device
        let numbers = 0..<Self.mostApprovals
        guard let number = numbers.first(where: { approving(candidate, $0).challenge == challenge }) else {
            throw .unauthenticated
        }
        let row = try await asked(candidate, challenge, as: approving(candidate, number).operation)
        let now = time.now()
        let life = row.life.seen(at: now)
        switch (life.result, life.reason) {
        case (.wait, _): return .waiting(device.id, number: try shownNumber(row))
        case (.success, _):
            guard now < (row.decidedAt ?? now) + Self.resultLifetime else { throw .unauthenticated }
            try await admit(candidate, by: challenge)
            return nil
        case (.failure, .expired?), (.failure, .superseded?):
            // The user did not refuse. While the code is valid, the relay opens another challenge
            // as soon as no other challenge is open for the user.
            guard now < code.expiresAt, number + 1 < Self.mostApprovals else { throw .unauthenticated }
            guard !progress.isAsked else { return .waiting(device.id, number: nil) }
            let next = approving(candidate, number + 1).challenge
            _ = try await withStore("verify") { () async throws(StoreFailure) in
                try await store.await(next, insteadOf: challenge, device: device.id)
            }
            return nil
        case (.failure, _): throw .unauthenticated
        }
    }

    /// Returns the challenge, and opens it first if needed. The phone is stored before its
    /// challenge, so this opens the challenge once, however often it is called.
    private func asked(
        _ candidate: Candidate, _ challenge: ChallengeID, as operation: Operation
    ) async throws(Refusal) -> ChallengeRow {
        let read = { () async throws(Refusal) in
            try await self.withStore("verify") { () async throws(StoreFailure) in
                try await self.store.challenge(challenge, of: candidate.device.user)
            }
        }
        if let row = try await read() { return row }
        _ = try await askApproval(candidate.approvable, of: candidate.token, by: candidate.website, as: operation)
        guard let row = try await read() else { throw .unauthenticated }
        return row
    }

    /// Makes the waiting phone active, by the approval that the challenge gave.
    private func admit(_ candidate: Candidate, by challenge: ChallengeID) async throws(Refusal) {
        let now = time.now()
        let admission = DeviceApproval(
            device: candidate.device.id, user: candidate.device.user, challenge: challenge,
            approves: candidate.approvable.digest, code: candidate.digest,
            revocation: RevocationCode.digest(RevocationCode.text(candidate.secret)), at: now)
        let secret = try stored(
            candidate.secret, for: candidate.use, of: candidate.binding.id, until: now + NewActivation.lifetime)
        let slots = candidate.website.policy.devices
        let operation = operations.fixed("admit", challenge.bytes + admission.device.bytes)
            .speaking(candidate.languages)
        let outcome = try await withStore("verify") { () async throws(StoreFailure) in
            try await store.admit(admission, slots: slots, secret: secret, as: operation)
        }
        try report(outcome, "device.bound", candidate)
    }
}
