import Bytes
import Crypto
import Domain
import JSON
import World

/// The body of a webhook: the event, its time and its data. It is built for each attempt from rows
/// that do not change any more, so no copy of it is stored.
public enum WebhookBody {
    /// The event type for the end of a challenge. The other event types are `AccountEvent`s.
    public static let loginDecided = "login.decided"

    /// The body on one line, as it is signed.
    public static func text(_ type: String, at moment: Timestamp, _ data: JSONObject) -> [UInt8] {
        let body: JSONObject = [
            "type": .string(type), "timestamp": .string(moment.rfc3339), "data": .object(data),
        ]
        return JSONWriter.write(body)
    }

    /// The body of a webhook; nil if its subject no longer exists.
    static func text(of row: WebhookRow, at now: Timestamp) -> [UInt8]? {
        if row.event == loginDecided {
            guard let challenge = row.challenge, let decidedAt = challenge.decidedAt else { return nil }
            var data = ChallengeResult(challenge, at: now).json()
            data.set("token", .string(row.token.text))
            return text(row.event, at: decidedAt, data)
        }
        let data: JSONObject
        switch AccountEvent(rawValue: row.event) {
        case .deviceBound, .deviceUnbound, .secretDelivered, .deviceCertified:
            guard let device = row.device else { return nil }
            data = device.json(of: row.token)
        case .userLocked, .codesLocked, .pinLocked, .pukLocked: data = row.json(.locked)
        case .pinChanged, .unlockIssued, .temporaryIssued, .temporaryUsed: data = row.json(nil)
        case .userFrozen: data = row.json(.frozen)
        case .recoveryWaiting, .recoveryDone, .recoveryCancelled: data = ["token": .string(row.token.text)]
        case nil: return nil
        }
        return text(row.event, at: row.createdAt, data)
    }
}

extension WebhookDevice {
    /// The phone as the website knows it from `devices`. A phone that its website bound in the
    /// original form has no key.
    fileprivate func json(of token: UserToken) -> JSONObject {
        let key = publicKey.flatMap { try? P256PublicKey(x963: $0) }
        var object: JSONObject = ["token": .string(token.text), "device": .string(id.text)]
        if let name { object.set("name", .string(name)) }
        object.set("platform", .word(platform))
        object.set("thumbprint", .text(key?.thumbprint))
        object.set("jwk", key.map { .object($0.jwk) } ?? .null)
        if let agreement = agreementKey.flatMap({ try? P256PublicKey(x963: $0) }) {
            object.set("agreement", .object(agreement.jwk))
        }
        if let binding { object.set("binding", .string(binding)) }
        return object
    }
}

extension WebhookRow {
    /// The user's new state, with the challenge and the phone that caused it, if there are any.
    fileprivate func json(_ reason: Reason?) -> JSONObject {
        var object: JSONObject = ["token": .string(token.text)]
        if let challenge { object.set("challenge", .string(challenge.id.text)) }
        if let device { object.set("device", .string(device.id.text)) }
        if let reason { object.set("reason", .word(reason)) }
        return object
    }
}
