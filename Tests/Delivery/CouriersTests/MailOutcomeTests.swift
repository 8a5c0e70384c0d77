import Curl
import DeliveryOutcomes
import Testing

@testable import Couriers

@Suite struct MailOutcomeTests {
    private enum Word { case accepted, refused, retry, undeliverable, ambiguous }

    private func word(_ failure: SMTPFailure) -> Word {
        switch MessageOutcome(.failure(failure)) {
        case .accepted: .accepted
        case .refused: .refused
        case .retryAfter: .retry
        case .undeliverable: .undeliverable
        case .ambiguous: .ambiguous
        }
    }

    private func refusal(_ code: Int, at stage: SMTPPhase) -> SMTPFailure {
        SMTPFailure(.refused, at: stage, reply: SMTPReply(code: code, text: "x"), "x")
    }

    @Test func acceptedReplyIsAccepted() {
        #expect(MessageOutcome(.success(SMTPReply(code: 250, text: "ok"))) == .accepted(by: nil))
    }

    @Test func serverRepliesMapToOutcomes() {
        for stage in [SMTPPhase.connection, .hello, .starttls, .login, .sender, .recipient, .data, .content] {
            for code in [421, 450, 451, 452, 454] { #expect(word(refusal(code, at: stage)) == .retry) }
            for code in [500, 530, 535, 550, 554] {
                #expect(word(refusal(code, at: stage)) == (stage == .recipient ? .refused : .undeliverable))
            }
        }
    }

    @Test func connectionFailuresMapToOutcomes() {
        for cause in [SMTPFailure.Cause.busy, .unknownHost, .unreachable, .deadline, .cancelled, .broken] {
            #expect(word(SMTPFailure(cause, "x")) == .retry)
        }
        for cause in [SMTPFailure.Cause.insecure, .untrusted] {
            #expect(word(SMTPFailure(cause, "x")) == .undeliverable)
        }
        #expect(word(SMTPFailure(.malformed, "x")) == .refused)
        for cause in [SMTPFailure.Cause.deadline, .broken, .cancelled] {
            #expect(word(SMTPFailure(cause, at: .content, mayHaveArrived: true, "x")) == .ambiguous)
        }
    }

    @Test func reasonsContainNoAddresses() {
        let reply = SMTPReply(code: 550, text: "5.1.1 <bob@example.org>: Recipient address rejected")
        let failure = SMTPFailure(.refused, at: .recipient, reply: reply, "x")
        #expect(
            MessageOutcome(.failure(failure)) == .refused("recipient: 550 5.1.1 … Recipient address rejected"))
    }
}
