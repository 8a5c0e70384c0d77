import Curl
import DeliveryOutcomes
import Testing

@testable import Couriers

@Suite struct MailOutcomeTests {
    private enum Outcome { case accepted, refused, retry, service, message, declined, ambiguous }

    private func outcome(_ failure: SMTPFailure) -> Outcome {
        switch DeliveryOutcome(.failure(failure)) {
        case .accepted: .accepted
        case .unregistered: .refused
        case .retry, .unavailable: .retry
        case .misconfigured(.service, _): .service
        case .misconfigured(.message, _): .message
        case .declined: .declined
        case .ambiguous: .ambiguous
        }
    }

    private func refusal(_ code: Int, at stage: SMTPPhase) -> SMTPFailure {
        SMTPFailure(.refused, at: stage, reply: SMTPReply(code: code, text: "x"), "x")
    }

    @Test func acceptedReplyIsAccepted() {
        #expect(DeliveryOutcome(.success(SMTPReply(code: 250, text: "ok"))) == .accepted(by: nil))
    }

    @Test func serverRepliesMapToOutcomes() {
        for stage in [SMTPPhase.connection, .hello, .starttls, .login, .sender, .recipient, .data, .content] {
            for code in [421, 450, 451, 452, 454] { #expect(outcome(refusal(code, at: stage)) == .retry) }
            let lasting: Outcome = stage == .recipient ? .refused : stage == .content ? .message : .service
            for code in [500, 530, 535, 550, 554] { #expect(outcome(refusal(code, at: stage)) == lasting) }
        }
    }

    @Test func connectionFailuresMapToOutcomes() {
        for cause in [SMTPFailure.Cause.busy, .unknownHost, .unreachable, .deadline, .cancelled, .broken] {
            #expect(outcome(SMTPFailure(cause, "x")) == .retry)
        }
        for cause in [SMTPFailure.Cause.insecure, .untrusted] {
            #expect(outcome(SMTPFailure(cause, "x")) == .service)
        }
        #expect(outcome(SMTPFailure(.malformed, "x")) == .refused)
        for cause in [SMTPFailure.Cause.deadline, .broken, .cancelled] {
            #expect(outcome(SMTPFailure(cause, at: .content, mayHaveArrived: true, "x")) == .ambiguous)
        }
    }

    @Test func reasonsContainNoAddresses() {
        let reply = SMTPReply(code: 550, text: "5.1.1 <bob@example.org>: Recipient address rejected")
        let failure = SMTPFailure(.refused, at: .recipient, reply: reply, "x")
        #expect(
            DeliveryOutcome(.failure(failure))
                == .unregistered(since: nil, reason: "recipient: 550 5.1.1 … Recipient address rejected"))
        let number = SMTPReply(code: 550, text: "4366012345678 unknown")
        #expect(
            DeliveryOutcome(.failure(SMTPFailure(.refused, at: .recipient, reply: number, "x")))
                == .unregistered(since: nil, reason: "recipient: 550 … unknown"))
    }

    @Test(
        arguments: [
            ("5.1.1 +43 660 123 4567 unknown", "5.1.1 … … … … unknown"),
            ("5.1.1 0660/12 34 567: no such user", "5.1.1 … … … no such user"),
            ("5.1.1 <(0)660 12 34 56 7>", "5.1.1 … … … … …"),
            ("5.3.4 Message size 1234 exceeds 1000", "5.3.4 Message size 1234 exceeds 1000"),
            ("0660 12 34 567 89", "… … … … …"), ("550 12 34 56 78 90", "… … … … … …"),
            ("4.7.0 Try again in 300 s", "4.7.0 Try again in 300 s"),
        ])
    func reasonsContainNoSpacedNumbers(text: String, expected: String) {
        let failure = SMTPFailure(.refused, at: .recipient, reply: SMTPReply(code: 550, text: text), "x")
        #expect(
            DeliveryOutcome(.failure(failure)) == .unregistered(since: nil, reason: "recipient: 550 \(expected)"))
    }
}
