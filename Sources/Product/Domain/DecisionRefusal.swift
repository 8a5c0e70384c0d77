import Crypto
import JSON

/// A refused decision: the fault, which log, metrics and audit name, and the point for the developer
/// of the phone's app.
public struct DecisionRefusal: Error, Sendable, Equatable {
    public let fault: DecisionFault
    /// The point in which the decision is wrong; nil if the fault alone says it.
    private let point: LocalizedText?

    init(_ fault: DecisionFault, _ point: LocalizedText? = nil) {
        self.fault = fault
        self.point = point
    }

    public static func fault(_ fault: DecisionFault) -> DecisionRefusal { DecisionRefusal(fault) }

    /// The message for the developer. It contains nothing that the phone does not already know.
    public var message: LocalizedText { point ?? fault.message }
}

/// The points of a malformed decision.
extension DecisionRefusal {
    private static func malformed(_ english: String, de german: String) -> DecisionRefusal {
        DecisionRefusal(.malformed, LocalizedText(english, de: german))
    }

    static func jws(_ error: JWSError) -> DecisionRefusal {
        switch error {
        case .tooLong: .fault(.size)
        case .algorithm: .fault(.algorithm)
        case .signatureLength: .fault(.signature)
        case .malformed, .header:
            malformed(
                "is not a compact JWS: \(error.text.english)", de: "ist kein kompaktes JWS: \(error.text.german)")
        }
    }

    static let header = malformed(
        "must have alg, typ and kid in its header, and nothing else",
        de: "muss alg, typ und kid im Header haben, und sonst nichts")

    static func notJSON(_ error: JSONError) -> DecisionRefusal {
        malformed(
            "must have claims in I-JSON (RFC 7493): \(FieldRule.visible(error.text.english))",
            de: "muss Claims in I-JSON (RFC 7493) haben: \(FieldRule.visible(error.text.german))")
    }

    static let notAnObject = malformed(
        "must have a JSON object with its claims", de: "muss ein JSON-Objekt mit seinen Claims haben")

    static func missing(_ claim: String) -> DecisionRefusal {
        malformed("has no claim \(claim)", de: "hat keinen Claim \(claim)")
    }

    static func unknown(_ claim: String) -> DecisionRefusal {
        let shown = FieldRule.visible(claim)
        return malformed(
            "has the claim \(shown), which no decision has", de: "hat den Claim \(shown), den keine Entscheidung hat")
    }

    static func form(of claim: String, _ form: LocalizedText) -> DecisionRefusal {
        malformed("must have \(form.english) as its \(claim)", de: "muss \(form.german) als \(claim) haben")
    }
}
