import Bytes
import Crypto
import EventLoop
import HTTP
import JSON
import TestSupport
import World

@testable import Phone

extension FakeRelay {
    func activation(
        _ address: WebAddress, pin: [UInt8]? = nil, websiteKey: [UInt8]? = nil
    ) throws -> ActivationURI {
        let key = websiteKey.map { "&k=\(Base64URL.encode($0))" } ?? ""
        return try ActivationURI(
            "twoefay://enrol?relay=\(address.text)&website=shop&token=ab12&code=f91r8F9C"
                + "&pin=\(Base64URL.encode(pin ?? authority.keyThumbprint))\(key)")
    }

    /// Returns a certificate for this key as PEM.
    func certificate(_ device: String, _ key: P256PublicKey, days: Int = 90) throws -> JSONValue {
        let issued = try phones.issueClient(
            uri: "twoefay:device:\(device)", key: key, days: days, at: SystemTime().now())
        return .string(String(decoding: try issued.pem(), as: UTF8.self))
    }

    /// Returns an enrolment as this relay would have bound it, without a request.
    func bound(_ address: WebAddress, device: String = "d1", days: Int = 90) throws -> Enrolment {
        var enrolment = try Enrolment(try activation(address), pushToken: "abcd", at: SystemTime().now())
        let pem = try certificate(device, enrolment.key.publicKey, days: days)
        enrolment.state = .bound(
            device: device, certificate: try Certificate(pem: Array((pem.string ?? "").utf8)))
        return enrolment
    }
}

/// A challenge in the answer to /pending.
struct Listed {
    var context: JSONObject
    var challenge = "c1"
    var nonce = "bm9uY2U"
    var demands: JSONObject?

    init(_ change: (inout JSONObject) -> Void = { _ in }) {
        context = [
            "v": 1, "website": "shop", "display_name": "The Shop", "username": "alice", "service": "members",
            "action": "pay", "details": [["label": "amount", "value": "12.00 EUR"]], "ip": "192.0.2.7",
            "place": "Berlin, DE", "user_agent": "Firefox", "request": "r-1", "number_digits": 2,
            "created_at": "2026-11-21T10:00:00.000Z", "expires_at": "2026-11-21T10:05:00.000Z",
        ]
        change(&context)
    }

    var bytes: [UInt8] { JSONWriter.write(context) }

    var json: JSONValue {
        var object: JSONObject = [
            "challenge": .string(challenge), "nonce": .string(nonce), "context": .string(Base64URL.encode(bytes)),
            "expires_at": "2026-11-21T10:05:00.000Z",
        ]
        object.set("demands", demands.map { .object($0) })
        return .object(object)
    }

    static func answer(_ listed: [Listed]) -> JSONObject {
        ["pending": .array(listed.map(\.json)), "time": "2026-11-21T10:01:00.000Z"]
    }

    func question() throws -> ChallengePrompt {
        guard let now = Timestamp(rfc3339: "2026-11-21T10:01:00.000Z") else { throw CallFailure.unable("no time") }
        return try ChallengePrompt(json, website: "shop", now: now)
    }
}

extension FakeRelay {
    /// Returns the relay's signed statement that a phone is unbound.
    func signedFarewell(
        for asked: Asked, of enrolment: Enrolment, device: String, type: String = "twoefay-farewell+jwt",
        _ change: (inout JSONObject) -> Void = { _ in }
    ) throws -> JSONObject {
        try signedFarewell(
            for: asked, audience: enrolment.audience, thumbprint: enrolment.thumbprint, device: device, type: type,
            change)
    }
}
