import Testing
import Webhooks

@Suite("What an outcome means") struct WebhookOutcomeTests {
    @Test(
        arguments: [
            (.answered(status: 200), .delivered, nil), (.answered(status: 201), .delivered, nil),
            (.answered(status: 204, wish: .seconds(9)), .delivered, nil), (.answered(status: 299), .delivered, nil),
            (.answered(status: 301), .failed(isBusy: false, wish: nil), "redirects (301)"),
            (.answered(status: 302, wish: .seconds(9)), .failed(isBusy: false, wish: nil), "redirects (302)"),
            (.answered(status: 308), .failed(isBusy: false, wish: nil), "redirects (308)"),
            (.answered(status: 400), .failed(isBusy: false, wish: nil), "answered 400"),
            (.answered(status: 401), .failed(isBusy: false, wish: nil), "answered 401"),
            (.answered(status: 404, wish: .seconds(9)), .failed(isBusy: false, wish: nil), "answered 404"),
            (.answered(status: 410), .gone, "gone (410)"),
            (.answered(status: 429), .failed(isBusy: true, wish: nil), "answered 429"),
            (.answered(status: 429, wish: .seconds(9)), .failed(isBusy: true, wish: .seconds(9)), "answered 429"),
            (.answered(status: 500), .failed(isBusy: false, wish: nil), "answered 500"),
            (.answered(status: 500, wish: .seconds(9)), .failed(isBusy: false, wish: .seconds(9)), "answered 500"),
            (.answered(status: 502), .failed(isBusy: true, wish: nil), "answered 502"),
            (.answered(status: 503, wish: .seconds(9)), .failed(isBusy: true, wish: .seconds(9)), "answered 503"),
            (.answered(status: 504), .failed(isBusy: true, wish: nil), "answered 504"),
            (.answered(status: 505), .failed(isBusy: false, wish: nil), "answered 505"),
            // What is no status of an answer.
            (.answered(status: 0), .failed(isBusy: false, wish: nil), "answered 0"),
            (.answered(status: 199), .failed(isBusy: false, wish: nil), "answered 199"),
            (.answered(status: 999), .failed(isBusy: false, wish: nil), "answered 999"),
            (.unanswered(.timeout), .failed(isBusy: true, wish: nil), "no answer in time"),
            (.unanswered(.refusedAddress), .failed(isBusy: false, wish: nil), "address not allowed"),
            (.unanswered(.insecure), .failed(isBusy: false, wish: nil), "not https"),
            (.unanswered(.unknownHost), .failed(isBusy: false, wish: nil), "unknown host"),
            (.unanswered(.unreachable), .failed(isBusy: false, wish: nil), "not reached"),
            (.unanswered(.untrusted), .failed(isBusy: false, wish: nil), "certificate not trusted"),
            (.unanswered(.broken), .failed(isBusy: false, wish: nil), "connection broke"),
            (.unsent, .nothing, "busy here"),
        ] as [(WebhookOutcome, WebhookOutcome.Meaning, String?)])
    func outcomeHasItsMeaning(outcome: WebhookOutcome, meaning: WebhookOutcome.Meaning, reason: String?) {
        #expect(outcome.meaning == meaning)
        #expect(outcome.reason == reason)
    }

    /// They stand in a column of 64 characters.
    @Test(arguments: WebhookOutcome.Silence.allCases) func outcomeReasonsFitTheirColumn(silence: WebhookOutcome.Silence)
    {
        let reason = WebhookOutcome.unanswered(silence).reason ?? ""
        #expect((1...64).contains(reason.utf8.count))
    }
}
