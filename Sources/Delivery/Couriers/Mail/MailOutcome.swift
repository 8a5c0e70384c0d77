import Curl
import DeliveryOutcomes

extension DeliveryOutcome {
    /// Translates the result of an SMTP transfer. Reasons contain no address.
    init(_ result: Result<SMTPReply, SMTPFailure>) {
        switch result {
        case .success: self = .accepted(by: nil)
        case .failure(let failure): self = Self.of(failure)
        }
    }

    private static func of(_ failure: SMTPFailure) -> DeliveryOutcome {
        let reason = failure.reasonWithoutAddresses
        if failure.mayHaveArrived { return .ambiguous(reason) }
        switch failure.cause {
        case .refused: return refusal(failure, reason)
        case .malformed: return .unregistered(since: nil, reason: reason)
        case .busy, .unknownHost, .unreachable, .deadline, .cancelled, .broken:
            return .retry(after: nil, reason: reason)
        case .insecure, .untrusted: return .misconfigured(.service, reason: reason)
        }
    }

    private static func refusal(_ failure: SMTPFailure, _ reason: String) -> DeliveryOutcome {
        guard let code = failure.reply?.code, code >= 500 else { return .retry(after: nil, reason: reason) }
        guard failure.stage != .recipient else { return .unregistered(since: nil, reason: reason) }
        // A refusal at any other stage would also affect other recipients.
        return .misconfigured(failure.isOfTheServer ? .service : .message, reason: reason)
    }
}

extension SMTPFailure {
    /// The description without mail addresses and phone numbers. Servers repeat the recipient, and
    /// logs must name no person. Seven digits are a number, also over adjacent words; codes of SMTP
    /// and sizes have fewer.
    var reasonWithoutAddresses: String {
        var words: [Substring] = []
        var code = reply.map { "\($0.code)" }
        // The words at the end that may be parts of one number, and their digits.
        var (parts, digits) = (0, 0)
        for word in description.split(separator: " ", omittingEmptySubsequences: false) {
            let isCode = word == code ?? ""
            if isCode { code = nil }
            (parts, digits) = isCode || !word.isPartOfNumber ? (0, 0) : (parts + 1, digits + word.digits)
            words.append(word.contains("@") || word.digits >= 7 ? "…" : word)
            guard digits >= 7 else { continue }
            words.replaceSubrange((words.count - parts)..., with: repeatElement("…", count: parts))
        }
        return words.joined(separator: " ")
    }

    /// Whether the fault is in the server or the connection to it, and not in this mail.
    var isOfTheServer: Bool {
        switch cause {
        case .unknownHost, .unreachable, .insecure, .untrusted, .deadline, .broken: true
        case .refused: stage != .recipient && stage != .content
        case .malformed, .busy, .cancelled: false
        }
    }

    /// Whether the fault remains until someone changes the settings or the server.
    var needsOperator: Bool {
        switch cause {
        case .insecure, .untrusted: true
        case .refused: stage != .recipient && stage != .content && reply.map { $0.code >= 500 } == true
        default: false
        }
    }
}

extension Substring {
    fileprivate var digits: Int { count(where: \.isNumber) }

    /// Whether the word may be a part of a phone number that is written with spaces. An enhanced code
    /// such as 5.1.1 is none.
    fileprivate var isPartOfNumber: Bool {
        guard digits > 0, !contains(where: \.isLetter) else { return false }
        return wholeMatch(of: #/[245]\.\d{1,3}\.\d{1,3}:?/#) == nil
    }
}
