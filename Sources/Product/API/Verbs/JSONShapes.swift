import Attestation
import Crypto
import Domain
import JSON
import Log
import Relay
import World

/// The JSON of users, phones, factors and activations. That of a challenge's result is in Relay
/// (`ChallengeResultJSON`), because webhooks contain it, too.
extension JSONValue {
    static func timestamp(_ moment: Timestamp?) -> JSONValue { text(moment?.rfc3339) }
}

extension Activation {
    func json(_ call: VerbCall) async throws(Refusal) -> JSONObject {
        var object: JSONObject = ["code": .string(code), "uri": .string(uri)]
        if let link { object.set("link", .string(link)) }
        object.set("qr", try await call.qr(scanned))
        object.set("expires_at", .string(expiresAt.rfc3339))
        return object
    }
}

extension IssuedActivation {
    func json(_ call: VerbCall) async throws(Refusal) -> JSONObject {
        switch self {
        case .shown(let activation): try await activation.json(call)
        case .mailed(let address, let expiresAt):
            ["sent_to": .string(address), "expires_at": .string(expiresAt.rfc3339)]
        case .awaitsIdentity: ["awaits": .word(EnrolmentStep.identity)]
        }
    }
}

extension JSONObject {
    /// Adds the unfinished steps of an enrolment, if there are any.
    mutating func set(missing steps: [EnrolmentStep]) {
        if !steps.isEmpty { set("missing", .array(steps.map { .word($0) })) }
    }
}

extension UserRow {
    func enrolment(_ factors: [CodeFactor]) -> EnrolmentState {
        EnrolmentState(
            isIdentityConfirmed: isIdentityConfirmed, isProved: isProved,
            active: factors.filter { $0.state == .active }.map(\.kind),
            waiting: factors.filter { $0.state == .waiting }.map(\.kind))
    }
}

extension DeviceView {
    /// The JSON of a phone. A phone that its website bound in the original form has no key.
    ///
    /// - Parameters:
    ///   - attestation: nil if none was recorded, or if attestations do not count.
    ///   - page: the page that the phone is; nil for another phone.
    ///   - certificates: the tagged certificates of the phone.
    func json(
        _ call: VerbCall, _ attestation: AttestationRow?, _ page: BoundPage?, _ certificates: [TaggedCertificate]
    ) throws(Refusal) -> JSONObject {
        var jwk = JSONValue.null
        var thumbprint: String?
        if let publicKey {
            guard let key = try? P256PublicKey(x963: publicKey) else {
                call.api.log.error("device.key", [.device: id.text])
                throw .broken
            }
            jwk = .object(key.jwk)
            thumbprint = key.thumbprint
        }
        var object: JSONObject = [
            "device": .string(id.text), "name": .text(name), "platform": .word(platform),
            "state": .string(stateText(at: call.api.time.now())),
            "jwk": jwk, "thumbprint": .text(thumbprint),
        ]
        if let stoppedBy { object.set("stopped_by", .word(stoppedBy)) }
        if let expiresAt { object.set("expires_at", .timestamp(expiresAt)) }
        if let verifySince { object.set("verify_since", .timestamp(verifySince)) }
        if let agreement = agreementKey.flatMap({ try? P256PublicKey(x963: $0) }) {
            object.set("agreement", .object(agreement.jwk))
        }
        if let binding { object.set("binding", .string(binding)) }
        if let attestation { object.set("attestation", .object(attestation.json)) }
        for member in page?.claims.json.members ?? [] { object.set(member.name, member.value) }
        if !certificates.isEmpty { object.set("certificates", .array(certificates.map { .object($0.json) })) }
        object.set("created_at", .timestamp(createdAt))
        object.set("last_seen_at", .timestamp(lastSeenAt))
        object.set("login_successes", .integer(counts.successes))
        object.set("login_failures", .integer(counts.failures))
        object.set("wrong_numbers", .integer(counts.wrongNumbers))
        object.set("pin", .word(pin.state))
        object.set("report", report.map { .object($0.json(at: call.api.time.now())) } ?? .null)
        if isReportForged { object.set("report_forged", .bool(true)) }
        return object
    }
}

extension Binding {
    var json: JSONObject {
        switch self {
        case .bound(let bound):
            var object: JSONObject = ["login": "verified", "device": .string(bound.device.text)]
            object.set("certificate", bound.certificate.map { .string($0) })
            object.set("revocation_code", .string(bound.revocationCode))
            if let attestation = bound.attestation {
                object.set(
                    "attestation",
                    [
                        "verdict": .word(attestation.verdict),
                        "faults": .array(attestation.faults.map { .string($0) }),
                    ])
            }
            return object
        case .waiting(let device, let number):
            var object: JSONObject = ["login": "wait", "device": .string(device.text)]
            if let number { object.set("number", .string(number)) }
            return object
        }
    }
}
