import JSON

/// Why a call came to nothing.
public enum CallFault: Error, Sendable, Equatable {
    /// The relay said no, and why.
    case refused(Problem)
    /// The relay has certainly done nothing.
    case unreached(String)
    /// Nobody knows whether the relay has done it. If it was, it was done once: the calls of this module were repeated by then,
    /// or were not because of this (see `RetryPolicy`).
    case unanswered(String)
    /// What came back is not what was agreed: is that the relay?
    case odd(String)
    /// The task that called was cancelled.
    case cancelled
    /// The website's own affair, before anything was sent: a certificate that cannot be used, say.
    case unable(String)

    /// What the relay refused with, if that is what happened.
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
        case .odd(let reason): "what came back is no answer of a relay: \(reason)"
        case .cancelled: "the call was cancelled"
        case .unable(let reason): reason
        }
    }
}

/// A problem document (RFC 9457) as the relay writes it.
public struct Problem: Sendable, Equatable {
    /// The stable word that a program goes by. A later relay may have more of them.
    public struct Code: RawRepresentable, Sendable, Hashable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }

        public static let malformed = Code(rawValue: "malformed")
        public static let invalid = Code(rawValue: "invalid")
        public static let unauthenticated = Code(rawValue: "unauthenticated")
        public static let forbidden = Code(rawValue: "forbidden")
        public static let approvalRequired = Code(rawValue: "approval_required")
        /// No code of the user is taken until that is lifted: see `RelayClient.unlock`.
        public static let codesLocked = Code(rawValue: "codes_locked")
        public static let notFound = Code(rawValue: "not_found")
        public static let methodNotAllowed = Code(rawValue: "method_not_allowed")
        public static let conflict = Code(rawValue: "conflict")
        public static let alreadyDecided = Code(rawValue: "already_decided")
        public static let shownOnce = Code(rawValue: "shown_once")
        public static let tooLarge = Code(rawValue: "too_large")
        public static let unsupportedType = Code(rawValue: "unsupported_type")
        public static let idempotencyMismatch = Code(rawValue: "idempotency_mismatch")
        public static let limited = Code(rawValue: "limited")
        public static let `internal` = Code(rawValue: "internal")
        public static let unavailable = Code(rawValue: "unavailable")
        /// Not of the relay's making: something between it and the website has answered.
        public static let foreign = Code(rawValue: "")
    }

    /// What is wrong with one parameter.
    public struct Fault: Sendable, Equatable {
        public let parameter: String
        public let code: String
        /// What a text in the website's own languages is looked up under.
        public let messageKey: String
        public let message: String
    }

    /// Whom the user has to say yes to before the call is repeated, with `challenge` as its `approval`.
    public struct NeededApproval: Sendable, Equatable {
        public let challenge: String
        /// To be shown to the person; nil where none is asked for.
        public let number: String?
    }

    public let status: Int
    public let code: Code
    public let detail: String
    public let faults: [Fault]
    public let retryAfter: Duration?
    /// Under this the relay's log says more.
    public let requestID: String?
    /// With `.approvalRequired`.
    public let approval: NeededApproval?

    init(_ reply: RelayReply) {
        let body = (try? JSONReader.read(reply.body))?.object ?? [:]
        status = reply.status
        code = Code(rawValue: body["code"]?.string ?? "")
        detail = body["detail"]?.string ?? body["title"]?.string ?? ""
        faults = (body["errors"]?.array ?? []).compactMap { entry in
            guard let fault = entry.object, let parameter = fault["parameter"]?.string else { return nil }
            return Fault(
                parameter: parameter, code: fault["code"]?.string ?? "",
                messageKey: fault["message_key"]?.string ?? "", message: fault["message"]?.string ?? "")
        }
        // Digits alone: the relay gives no dates.
        retryAfter = reply.fields["retry-after"].flatMap { UInt32($0) }.map { .seconds(Int64($0)) }
        requestID = reply.fields["request-id"]
        approval = body["challenge"]?.string.map { challenge in
            NeededApproval(challenge: challenge, number: body["number"]?.string)
        }
    }
}

extension Problem: CustomStringConvertible {
    public var description: String {
        let words = [code.rawValue, detail].filter { !$0.isEmpty }.joined(separator: ": ")
        return "\(status)" + (words.isEmpty ? "" : " \(words)") + (requestID.map { " (request \($0))" } ?? "")
    }
}
