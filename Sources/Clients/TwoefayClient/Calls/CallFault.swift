import JSON

/// The reason why a call failed. It is final: retries have already been made as `RetryPolicy`
/// allows.
public enum CallFault: Error, Sendable, Equatable {
    /// The relay refused the request, for the reason in the problem document.
    case refused(Problem)
    /// The relay was not reached, so it has certainly done nothing.
    case unreached(String)
    /// The answer is missing, so the result is ambiguous: the relay may or may not have done the
    /// work.
    ///
    /// If it did, it did so only once. The client has already repeated the call, unless a
    /// repetition could have had a second effect (see `RetryPolicy`).
    case unanswered(String)
    /// The answer does not follow the protocol. The other end may not be a relay.
    case odd(String)
    /// The task that made the call was cancelled.
    case cancelled
    /// The website's own configuration is at fault, and nothing was sent. Example: an unusable
    /// certificate.
    case unable(String)

    /// The problem document if the relay refused; otherwise nil.
    public var problem: Problem? {
        if case .refused(let problem) = self { problem } else { nil }
    }
}

extension CallFault: CustomStringConvertible {
    public var description: String {
        switch self {
        case .refused(let problem): "the relay answered \(problem)"
        case .unreached(let reason): "the relay was not reached: \(reason)"
        case .unanswered(let reason): "the relay gave no answer: \(reason)"
        case .odd(let reason): "the answer is not valid: \(reason)"
        case .cancelled: "the call was cancelled"
        case .unable(let reason): reason
        }
    }
}

/// A problem document (RFC 9457), as the relay writes it.
public struct Problem: Sendable, Equatable {
    /// The stable code by which a program recognises the problem. Later relays may add codes.
    public struct Code: RawRepresentable, Sendable, Hashable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The body is not valid JSON, or the query or a header field is wrong.
        public static let malformed = Code(rawValue: "malformed")
        /// Parameters are invalid; `Problem.faults` names all of them.
        public static let invalid = Code(rawValue: "invalid")
        /// The proof of the caller's identity is missing or invalid.
        public static let unauthenticated = Code(rawValue: "unauthenticated")
        /// The caller may not use this route, or the policy does not allow the operation.
        public static let forbidden = Code(rawValue: "forbidden")
        /// The user must approve first: see `Problem.approval`.
        public static let approvalRequired = Code(rawValue: "approval_required")
        /// The user's codes are locked. See `RelayClient.unlock`.
        public static let codesLocked = Code(rawValue: "codes_locked")
        /// The object is unknown, or it belongs to another website.
        public static let notFound = Code(rawValue: "not_found")
        /// The path of the call is wrong, or the relay is older than this client.
        public static let routeNotFound = Code(rawValue: "route_not_found")
        /// The route has another HTTP method.
        public static let methodNotAllowed = Code(rawValue: "method_not_allowed")
        /// The name or address is already in use, or the same request is still running.
        public static let conflict = Code(rawValue: "conflict")
        /// The challenge has already ended.
        public static let alreadyDecided = Code(rawValue: "already_decided")
        /// The operation succeeded, but its answer held a secret that the relay shows only once.
        public static let shownOnce = Code(rawValue: "shown_once")
        /// The body is larger than 64 KiB.
        public static let tooLarge = Code(rawValue: "too_large")
        /// The body is not JSON.
        public static let unsupportedType = Code(rawValue: "unsupported_type")
        /// The idempotency key was used before for another request.
        public static let idempotencyMismatch = Code(rawValue: "idempotency_mismatch")
        /// A limit or quota is reached: see `Problem.retryAfter`.
        public static let limited = Code(rawValue: "limited")
        /// The relay has a fault. Its log has details under `Problem.requestID`.
        public static let `internal` = Code(rawValue: "internal")
        /// The relay cannot reach its store in time: see `Problem.retryAfter`.
        public static let unavailable = Code(rawValue: "unavailable")
        /// No code of the relay: a system between the relay and the website has answered.
        public static let foreign = Code(rawValue: "")
    }

    /// A faulty parameter.
    public struct Fault: Sendable, Equatable {
        /// The name of the parameter.
        public let parameter: String
        /// The stable code of the fault.
        public let code: String
        /// The key under which a website can look up a translated message.
        public let messageKey: String
        /// The explanation, in the language of `Problem.language`.
        public let message: String
    }

    /// The approval that the user must give first. After it, repeat the call with `challenge` as
    /// its `approval`.
    public struct NeededApproval: Sendable, Equatable {
        /// The id of the challenge that the user must approve.
        public let challenge: String
        /// The number to show to the person; nil if the challenge has none.
        public let number: String?
    }

    /// The HTTP status.
    public let status: Int
    /// The stable code of the problem.
    public let code: Code
    /// The explanation for people. Do not evaluate it in a program.
    public let detail: String
    /// The language of `detail` and of the messages, as a tag such as `de`. See
    /// `RelayClient.speaking`.
    public let language: String?
    /// The faulty parameters, if the relay names any.
    public let faults: [Fault]
    /// The pause that the relay requests before another attempt; nil if it names none.
    public let retryAfter: Duration?
    /// The id of the request, under which the relay's log has more information.
    public let requestID: String?
    /// The missing approval, with the code `.approvalRequired`; otherwise nil.
    public let approval: NeededApproval?

    /// Reads a refusal. A proxy's answer states nothing about a user, so a document counts only in its
    /// media type, with the status of the answer, and with a code that belongs to it.
    init(_ reply: RelayReply) {
        status = reply.status
        let document = reply.mediaType == "application/problem+json" ? reply.object : nil
        let code = Code(rawValue: document?["code"]?.string ?? "")
        let isOfRelay =
            reply.status >= 400 && document?["status"]?.integer == Int64(reply.status)
            && Self.statuses[code, default: reply.status] == reply.status
        let body = isOfRelay ? document ?? [:] : [:]
        self.code = isOfRelay ? code : .foreign
        detail = body["detail"]?.string ?? body["title"]?.string ?? ""
        faults = (body["errors"]?.array ?? []).compactMap { entry in
            guard let fault = entry.object, let parameter = fault["parameter"]?.string else { return nil }
            return Fault(
                parameter: parameter, code: fault["code"]?.string ?? "",
                messageKey: fault["message_key"]?.string ?? "", message: fault["message"]?.string ?? "")
        }
        // Only seconds are read: the relay never sends a date.
        retryAfter = reply.fields["retry-after"].flatMap { $0.isDigits(1...9) ? Int64($0) : nil }.map { .seconds($0) }
        requestID = reply.fields["request-id"]
        language = reply.fields["content-language"]
        // These stand in a page and in a path, so only their form is accepted.
        let challenge = code == .approvalRequired ? body["challenge"]?.string : nil
        approval = challenge.flatMap { challenge in
            guard challenge.isRelayID else { return nil }
            return NeededApproval(
                challenge: challenge, number: body["number"]?.string.flatMap { $0.isDigits(2...6) ? $0 : nil })
        }
    }
}

extension Problem {
    /// The status of each code that this library knows.
    static let statuses: [Code: Int] = [
        .malformed: 400, .invalid: 400, .unauthenticated: 401, .forbidden: 403, .approvalRequired: 403,
        .codesLocked: 403, .notFound: 404, .routeNotFound: 404, .methodNotAllowed: 405, .conflict: 409,
        .alreadyDecided: 409, .shownOnce: 409, .tooLarge: 413, .unsupportedType: 415, .idempotencyMismatch: 422,
        .limited: 429, .internal: 500, .unavailable: 503,
    ]
}

extension Problem: CustomStringConvertible {
    public var description: String {
        let words = [code.rawValue, detail].filter { !$0.isEmpty }.joined(separator: ": ")
        return "\(status)" + (words.isEmpty ? "" : " \(words)") + (requestID.map { " (request \($0))" } ?? "")
    }
}
