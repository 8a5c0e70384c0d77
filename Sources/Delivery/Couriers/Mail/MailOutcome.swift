import Curl
import DeliveryOutcomes

extension MessageOutcome {
    /// What a conversation with a mail server comes to. Reasons name no address.
    init(_ result: Result<SMTPReply, SMTPFailure>) {
        switch result {
        case .success: self = .accepted(by: nil)
        case .failure(let failure): self = Self.of(failure)
        }
    }

    private static func of(_ failure: SMTPFailure) -> MessageOutcome {
        let reason = failure.reasonWithoutAddresses
        if failure.mayHaveArrived { return .ambiguous(reason) }
        switch failure.cause {
        case .refused: return refusal(failure, reason)
        case .malformed: return .refused(reason)
        case .busy, .unknownHost, .unreachable, .deadline, .cancelled, .broken: return .retryAfter(nil, reason)
        case .insecure, .untrusted: return .undeliverable(reason)
        }
    }

    private static func refusal(_ failure: SMTPFailure, _ reason: String) -> MessageOutcome {
        guard let code = failure.reply?.code, code >= 500 else { return .retryAfter(nil, reason) }
        // What is said no to anywhere else would be so for another recipient, too.
        return failure.stage == .recipient ? .refused(reason) : .undeliverable(reason)
    }
}

extension SMTPFailure {
    /// Servers repeat whom a mail was for, and logs are to name nobody.
    var reasonWithoutAddresses: String {
        description.split(separator: " ", omittingEmptySubsequences: false).map { word in
            word.contains("@") ? "…" : word
        }.joined(separator: " ")
    }

    /// Something is wrong with how we reach the server, or with the server, and not with this mail.
    var isOfTheServer: Bool {
        switch cause {
        case .unknownHost, .unreachable, .insecure, .untrusted, .deadline, .broken: true
        case .refused: stage != .recipient && stage != .content
        case .malformed, .busy, .cancelled: false
        }
    }

    /// It stays so until somebody changes the settings, or the server.
    var needsOperator: Bool {
        switch cause {
        case .insecure, .untrusted: true
        case .refused: stage != .recipient && stage != .content && reply.map { $0.code >= 500 } == true
        default: false
        }
    }
}
