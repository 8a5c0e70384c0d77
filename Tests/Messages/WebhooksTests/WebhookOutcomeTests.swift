import Testing
import Webhooks

@Suite("The meaning of an outcome") struct WebhookOutcomeTests {
    @Test(
        arguments: [
            (.answered(status: 200), .delivered, nil), (.answered(status: 201), .delivered, nil),
            (.answered(status: 204, retryAfter: .seconds(9)), .delivered, nil),
            (.answered(status: 299), .delivered, nil),
            (.answered(status: 301), .failed(isOverloaded: false, retryAfter: nil), "redirects (301)"),
            (
                .answered(status: 302, retryAfter: .seconds(9)), .failed(isOverloaded: false, retryAfter: nil),
                "redirects (302)"
            ),
            (.answered(status: 308), .failed(isOverloaded: false, retryAfter: nil), "redirects (308)"),
            (.answered(status: 400), .failed(isOverloaded: false, retryAfter: nil), "answered 400"),
            (.answered(status: 401), .failed(isOverloaded: false, retryAfter: nil), "answered 401"),
            (
                .answered(status: 404, retryAfter: .seconds(9)), .failed(isOverloaded: false, retryAfter: nil),
                "answered 404"
            ),
            (.answered(status: 410), .unsubscribed, "gone (410)"),
            (.answered(status: 429), .failed(isOverloaded: true, retryAfter: nil), "answered 429"),
            (
                .answered(status: 429, retryAfter: .seconds(9)), .failed(isOverloaded: true, retryAfter: .seconds(9)),
                "answered 429"
            ),
            (.answered(status: 500), .failed(isOverloaded: false, retryAfter: nil), "answered 500"),
            (
                .answered(status: 500, retryAfter: .seconds(9)), .failed(isOverloaded: false, retryAfter: .seconds(9)),
                "answered 500"
            ),
            (.answered(status: 502), .failed(isOverloaded: true, retryAfter: nil), "answered 502"),
            (
                .answered(status: 503, retryAfter: .seconds(9)), .failed(isOverloaded: true, retryAfter: .seconds(9)),
                "answered 503"
            ),
            (.answered(status: 504), .failed(isOverloaded: true, retryAfter: nil), "answered 504"),
            (.answered(status: 505), .failed(isOverloaded: false, retryAfter: nil), "answered 505"),
            // Not a status of an answer.
            (.answered(status: 0), .failed(isOverloaded: false, retryAfter: nil), "answered 0"),
            (.answered(status: 199), .failed(isOverloaded: false, retryAfter: nil), "answered 199"),
            (.answered(status: 999), .failed(isOverloaded: false, retryAfter: nil), "answered 999"),
            (.unanswered(.timeout), .failed(isOverloaded: true, retryAfter: nil), "no answer in time"),
            (.unanswered(.refusedAddress), .failed(isOverloaded: false, retryAfter: nil), "address not allowed"),
            (.unanswered(.insecure), .failed(isOverloaded: false, retryAfter: nil), "not https"),
            (.unanswered(.unknownHost), .failed(isOverloaded: false, retryAfter: nil), "unknown host"),
            (.unanswered(.unreachable), .failed(isOverloaded: false, retryAfter: nil), "not reached"),
            (.unanswered(.untrusted), .failed(isOverloaded: false, retryAfter: nil), "certificate not trusted"),
            (.unanswered(.broken), .failed(isOverloaded: false, retryAfter: nil), "connection lost"),
            (.unsent, .notAttempted, "the relay was busy"),
        ] as [(WebhookOutcome, WebhookOutcome.Meaning, String?)])
    func outcomeHasItsMeaning(outcome: WebhookOutcome, meaning: WebhookOutcome.Meaning, reason: String?) {
        #expect(outcome.meaning == meaning)
        #expect(outcome.reason == reason)
    }

    /// The column has 64 characters.
    @Test(arguments: WebhookOutcome.Silence.allCases) func outcomeReasonsFitTheirColumn(silence: WebhookOutcome.Silence)
    {
        let reason = WebhookOutcome.unanswered(silence).reason ?? ""
        #expect((1...64).contains(reason.utf8.count))
    }
}
