import JSON
import Relay

/// A problem document (RFC 9457), the content of `application/problem+json`.
struct Problem: Error, Sendable {
    /// The stable code that programs check.
    enum Code: String, Sendable, CaseIterable {
        case malformed, invalid, unauthenticated, forbidden, conflict, limited, unavailable
        case approvalRequired = "approval_required"
        case codesLocked = "codes_locked"
        case notFound = "not_found"
        case methodNotAllowed = "method_not_allowed"
        case alreadyDecided = "already_decided"
        case shownOnce = "shown_once"
        case tooLarge = "too_large"
        case unsupportedType = "unsupported_type"
        case idempotencyMismatch = "idempotency_mismatch"
        /// A bug in the relay.
        case `internal`

        var status: Int {
            switch self {
            case .malformed, .invalid: 400
            case .unauthenticated: 401
            case .forbidden, .approvalRequired, .codesLocked: 403
            case .notFound: 404
            case .methodNotAllowed: 405
            case .conflict, .alreadyDecided, .shownOnce: 409
            case .tooLarge: 413
            case .unsupportedType: 415
            case .idempotencyMismatch: 422
            case .limited: 429
            case .internal: 500
            case .unavailable: 503
            }
        }

        var title: String {
            switch self {
            case .malformed: "The request cannot be read"
            case .invalid: "The request has parameters that are not right"
            case .unauthenticated: "No proof of who is calling"
            case .forbidden: "Not allowed"
            case .approvalRequired: "The user has to approve first"
            case .codesLocked: "Codes are locked"
            case .notFound: "Not found"
            case .methodNotAllowed: "Not with this method"
            case .conflict: "In conflict with what is there"
            case .alreadyDecided: "The challenge has its end"
            case .shownOnce: "Shown once, and not again"
            case .tooLarge: "The body is too large"
            case .unsupportedType: "Bodies are JSON"
            case .idempotencyMismatch: "The Idempotency-Key was used for something else"
            case .limited: "Too often"
            case .internal: "A fault of the relay"
            case .unavailable: "Not now"
            }
        }
    }

    let code: Code
    let detail: String
    var faults: [FieldFault] = []
    /// The value of `Retry-After`, in whole seconds.
    var retryAfter: Int64?
    /// The allowed methods, for `Allow`.
    var allow: String?
    /// Further members of the document.
    var members = JSONObject()

    init(_ code: Code, _ detail: String, faults: [FieldFault] = [], retryAfter: Int64? = nil) {
        self.code = code
        self.detail = detail
        self.faults = faults
        self.retryAfter = retryAfter
    }

    var body: JSONObject {
        var object: JSONObject = [
            "type": .string("urn:twoefay:problem:\(code.rawValue)"), "title": .string(code.title),
            "status": .integer(Int64(code.status)), "code": .string(code.rawValue), "detail": .string(detail),
        ]
        if !faults.isEmpty { object.set("errors", .array(faults.map { .object($0.json) })) }
        for member in members.members { object.set(member.name, member.value) }
        return object
    }
}

extension FieldFault {
    /// The fault as JSON. `message_key` is the key for translations: the parameter without its list
    /// index, and the code.
    var json: JSONObject {
        var key = ""
        var inBrackets = false
        for character in parameter {
            if character == "[" { inBrackets = true }
            if !inBrackets { key.append(character) }
            if character == "]" { inBrackets = false }
        }
        // The sender chooses the name of an unknown parameter, so all unknown parameters share one
        // key.
        let messageKey = code == .unknown ? "unknown" : "\(key).\(code.rawValue)"
        return [
            "parameter": .string(parameter), "code": .string(code.rawValue), "message_key": .string(messageKey),
            "message": .string(message),
        ]
    }
}
