import Attestation
import Bytes
import Crypto
import Domain
import JSON
import Log
import World

/// The store port for the attestations of phones. An attestation is written together with its phone
/// (`BindStore.bind`).
public protocol AttestationStore: Sendable {
    /// Returns the attestation of a phone; nil if none was recorded.
    func attestation(of device: DeviceID) async throws(StoreFailure) -> AttestationRow?
    /// Returns the attestations of all phones of a user.
    func attestations(of user: UserID) async throws(StoreFailure) -> [AttestationRow]
    /// Returns the last report of a phone about itself; nil if it sent none.
    func report(of device: DeviceID) async throws(StoreFailure) -> DeviceReport?
    /// Records that a phone was not bound because of its attestation, at most once for the same
    /// operation.
    func recordNotAttested(_ refused: NotAttested, as operation: Operation) async throws(StoreFailure)
}

/// The attestation of a phone as it is stored, with the relay's verdict at the enrolment. The relay
/// adds the fault `revoked` when it reads the row (`asOfNow`).
public struct AttestationRow: Sendable, Equatable {
    public let device: DeviceID
    public private(set) var verdict: AttestationVerdict
    /// The faults, as `AttestationFault` names them.
    public private(set) var faults: [String]
    /// The attested facts, as JSON; nil if the attestation is not genuine.
    public let facts: String?
    /// The attestation as the phone sent it, as JSON; nil if it is not genuine.
    public let statement: String?
    /// The used activation code, which is a part of the attestation's challenge.
    public let activationCode: String
    /// The key of App Attest in the uncompressed form of X9.63; nil on Android.
    public let appKey: [UInt8]?
    /// The counter of the last accepted assertion.
    public let counter: UInt32
    public let judgedAt: Timestamp
    /// The operation that bound the phone with this attestation; nil until it is stored.
    public let binding: OperationID?

    public init(
        device: DeviceID, verdict: AttestationVerdict, faults: [String], facts: String?, statement: String?,
        activationCode: String, appKey: [UInt8]?, counter: UInt32, judgedAt: Timestamp, binding: OperationID?
    ) {
        self.device = device
        self.verdict = verdict
        self.faults = faults
        self.facts = facts
        self.statement = statement
        self.activationCode = activationCode
        self.appKey = appKey
        self.counter = counter
        self.judgedAt = judgedAt
        self.binding = binding
    }

    /// The attested facts; nil if the attestation is not genuine, or the stored facts cannot be
    /// read.
    var attested: AttestedDevice? {
        guard let facts, let object = Self.object(facts) else { return nil }
        let key = appKey.flatMap { try? P256PublicKey(x963: $0) }
        return AttestedDevice(facts: object, appAttest: key.map { AppAttestKey(key: $0, receipt: []) })
    }

    private static func object(_ text: String) -> JSONObject? { (try? JSONReader.read(Array(text.utf8)))?.object }

    /// The attestation as the phone sent it; nil if it is not genuine.
    var sent: AttestationStatement? {
        guard let statement, let json = try? JSONReader.read(Array(statement.utf8)) else { return nil }
        return try? AttestationStatement(json: json)
    }

    /// Returns the attestation with the verdict that it has now: a certificate of it may have been
    /// revoked since the enrolment.
    func asOfNow(_ verifier: AttestationVerifier) -> AttestationRow {
        guard let sent, verifier.isRevoked(sent) else { return self }
        var row = self
        row.verdict = .flawed
        let fault = AttestationFault.revoked.rawValue
        if !row.faults.contains(fault) { row.faults.append(fault) }
        return row
    }

    /// The relay's verdict, and everything that a website needs to verify the attestation itself.
    public var json: JSONObject {
        var object: JSONObject = [
            "verdict": .word(verdict), "faults": .array(faults.map { .string($0) }),
        ]
        if let facts = facts.flatMap(Self.object) { object.set("facts", .object(facts)) }
        if let evidence { object.set("evidence", .object(evidence)) }
        return object
    }

    /// The attestation itself; nil if it is not genuine.
    var evidence: JSONObject? {
        guard let statement = statement.flatMap(Self.object) else { return nil }
        return [
            "statement": .object(statement), "activation_code": .string(activationCode),
            "judged_at": .string(judgedAt.rfc3339),
        ]
    }
}

/// A phone that was not bound because of its attestation, as it is recorded in the audit.
public struct NotAttested: Sendable, Equatable {
    public let fault: AttestationFault
    public let website: WebsiteID
    public let user: UserID
    public let device: DeviceID
    public let at: Timestamp

    public init(fault: AttestationFault, website: WebsiteID, user: UserID, device: DeviceID, at: Timestamp) {
        self.fault = fault
        self.website = website
        self.user = user
        self.device = device
        self.at = at
    }
}

/// The outcome of an attestation at an enrolment, for the metrics.
enum AttestationOutcomeLabel: String, CaseIterable {
    case valid, flawed, invalid, missing
    /// The phone was not bound.
    case refused

    init(_ verdict: AttestationVerdict) {
        self =
            switch verdict {
            case .valid: .valid
            case .flawed: .flawed
            case .invalid: .invalid
            case .missing: .missing
            }
    }
}

extension Relay {
    /// Judges the attestation of a phone that is about to use its activation code.
    ///
    /// A phone whose website requires attestations is refused without a faultless one. The code is
    /// not used up, so the phone can send a better attestation while the code is valid. The refusal
    /// names the fault, because only who has the code gets as far as here.
    ///
    /// - Parameter activation: the digest of the activation code.
    /// - Returns: the attestation to be stored; nil if attestations do not count.
    func attest(
        _ attestation: JSONValue?, of device: NewDevice, key: P256PublicKey, token: UserToken, code: String,
        activation: [UInt8], at website: Website
    ) async throws(Refusal) -> AttestationRow? {
        let subject = AttestationSubject(
            audience: SignedDecision.audience(origin: settings.origin, website: website.name), user: token.text,
            activationCode: code, key: key)
        let outcome = attestations.judge(
            json: attestation, for: subject, requirements: website.policy.attestation, at: device.at)
        guard website.policy.attestation.strictest != .none else { return nil }
        let verdict = AttestationVerdict(outcome)
        let names: LogFields = [
            .website: website.name, .user: device.user.text, .device: device.id.text, .outcome: verdict.rawValue,
            .reason: outcome.faults.map(\.rawValue).joined(separator: ","),
        ]
        guard outcome.admits else {
            let fault = outcome.faults.first ?? .missing
            metrics.attested(.refused)
            log.notice("attestation.refused", names)
            let refused = NotAttested(
                fault: fault, website: website.id, user: device.user, device: device.id, at: device.at)
            await record(refused, of: activation)
            throw .notAttested(fault)
        }
        metrics.attested(AttestationOutcomeLabel(verdict))
        log.info("attestation.judged", names)
        let statement = outcome.device == nil ? nil : attestation.flatMap { try? AttestationStatement(json: $0) }
        return AttestationRow(
            device: device.id, verdict: verdict, faults: outcome.faults.map(\.rawValue),
            facts: outcome.device.map { JSONWriter.text(.object($0.json)) },
            statement: statement.map { JSONWriter.text(.object($0.json)) }, activationCode: code,
            appKey: outcome.device?.appAttest?.key.x963, counter: 0, judgedAt: device.at, binding: nil)
    }

    /// Records a phone that was not bound. The audit has one row for each fault and activation,
    /// whichever key the phone makes for its next attempt. The writes for one user in one minute
    /// are limited.
    private func record(_ refused: NotAttested, of activation: [UInt8]) async {
        let operation = operations.fixed("not attested", activation + Array(refused.fault.rawValue.utf8))
        guard attestationRefusals.spend(operation.id, of: refused.user, at: time.instant()) else { return }
        // The phone is refused even if this write fails.
        _ = try? await withStore("attestation") { () async throws(StoreFailure) in
            try await store.recordNotAttested(refused, as: operation)
        }
    }

    /// The attestations of a user's phones, by phone. The list is empty if attestations do not
    /// count at this website.
    public func attestations(
        of user: UserID, at website: Website
    ) async throws(Refusal) -> [DeviceID: AttestationRow] {
        guard website.policy.attestation.strictest != .none else { return [:] }
        let rows = try await toShow(else: []) { () async throws(Refusal) in
            try await withStore("attestation") { () async throws(StoreFailure) in
                try await store.attestations(of: user)
            }
        }
        let verifier = attestations
        return Dictionary(rows.map { ($0.device, $0.asOfNow(verifier)) }) { first, _ in first }
    }

    /// The attestation of one phone; nil if there is none, or if attestations do not count.
    public func attestation(of device: DeviceID, at website: Website) async throws(Refusal) -> AttestationRow? {
        guard website.policy.attestation.strictest != .none else { return nil }
        return try await attestationToShow(of: device)
    }

    /// The attestation of a phone for people and for the website. An approval reads it strictly.
    func attestationToShow(of device: DeviceID) async throws(Refusal) -> AttestationRow? {
        try await toShow(else: nil) { () async throws(Refusal) in try await attestation(of: device) }
    }

    /// Reads attestations that decide nothing. A row that is not genuine, which was logged, counts
    /// as missing: it must keep nobody from denying a request, or from learning a result.
    private func toShow<Value>(
        else missing: Value, _ read: () async throws(Refusal) -> Value
    ) async throws(Refusal) -> Value {
        do throws(Refusal) {
            return try await read()
        } catch {
            guard error == .broken else { throw error }
            return missing
        }
    }

    /// The attestation of a phone, with its present verdict; nil if none was recorded.
    func attestation(of device: DeviceID) async throws(Refusal) -> AttestationRow? {
        try await withStore("attestation") { () async throws(StoreFailure) in
            try await store.attestation(of: device)
        }?.asOfNow(attestations)
    }
}
