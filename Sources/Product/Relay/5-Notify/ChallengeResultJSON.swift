import Bytes
import Domain
import JSON
import World

extension ChallengeResult {
    /// The body of an `/auth` answer, which is also the data of a `login.decided` webhook.
    /// `/backup` sends the same with another value in `login`.
    public func json(login: String? = nil) -> JSONObject {
        var object: JSONObject = [
            "login": .string(login ?? result.rawValue), "challenge": .string(challenge.text), "factor": .word(factor),
            "assurance": .word(assurance), "proof": .word(proof),
            "steps": .array(
                steps.map { step in
                    var shown: JSONObject = [
                        "factor": .word(step.factor), "state": .word(step.state), "at": .string(step.at.rfc3339),
                    ]
                    if let reason = step.reason { shown.set("reason", .string(reason)) }
                    if let tries = step.tries, tries > 1 { shown.set("tries", .integer(Int64(tries))) }
                    return .object(shown)
                }),
        ]
        if let reason { object.set("reason", .word(reason)) }
        object.set("context", .string(Base64URL.encode(context)))
        if let receipt { object.set("receipt", .string(receipt)) }
        if let device { object.set("device", .string(device.text)) }
        if let place {
            var shown: JSONObject = ["check": .word(place.check)]
            if let distance = place.distance { shown.set("distance", .integer(Int64(distance))) }
            object.set("phone_place", .object(shown))
        }
        if let verified {
            object.set("uv", .word(verified.uv))
            object.set("uv_age", .integer(verified.age))
        }
        if let web { web.show(in: &object) }
        if let attested { object.set("attestation", .object(attested.json(evidence))) }
        return object
    }
}
