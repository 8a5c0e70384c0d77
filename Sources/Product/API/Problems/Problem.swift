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
            case .malformed: "Malformed request"
            case .invalid: "Invalid parameters"
            case .unauthenticated: "Not authenticated"
            case .forbidden: "Not allowed"
            case .approvalRequired: "The user must approve first"
            case .codesLocked: "Codes are locked"
            case .notFound: "Not found"
            case .methodNotAllowed: "Method not allowed"
            case .conflict: "Conflict with the current state"
            case .alreadyDecided: "The challenge has already ended"
            case .shownOnce: "The answer is shown only once"
            case .tooLarge: "The body is too large"
            case .unsupportedType: "Unsupported content type"
            case .idempotencyMismatch: "The Idempotency-Key was used for another request"
            case .limited: "Too many requests"
            case .internal: "Internal error"
            case .unavailable: "Temporarily unavailable"
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
