import Testing
import Webhooks
import World

@Suite("The health of a webhook endpoint") struct WebhookHealthTests {
    private let start = Timestamp(seconds: 1_800_000_000)
    private let failed = WebhookOutcome.Meaning.failed(isOverloaded: false, retryAfter: nil)

    /// Records failures at these seconds, and returns the changes of the health.
    private func fail(_ health: inout WebhookHealth, at seconds: some Sequence<Int64>) -> [WebhookHealth.Change] {
        seconds.compactMap { health.record(failed, at: start + .seconds($0)) }
    }

    private let days3: Int64 = 3 * 86_400

    @Test func endpointIsDisabledOnceAfterThreeDays() {
        var health = WebhookHealth()
        #expect(fail(&health, at: stride(from: 0, to: days3, by: 3600)).isEmpty)
        #expect(health.state == .failing(since: start, attempts: 72))
        #expect(fail(&health, at: [days3, days3 + 1]) == [.disabled(.failures)])
        #expect(health.state == .disabled(.failures, since: start + .seconds(days3)))
    }

    @Test func endpointIsDisabledOnlyAfterEnoughAttempts() {
        var health = WebhookHealth()
        #expect(fail(&health, at: (0..<9).map { days3 * $0 }).isEmpty)
        #expect(fail(&health, at: [days3 * 9]) == [.disabled(.failures)])
    }

    @Test func successResetsTheFailureCount() {
        var health = WebhookHealth()
        _ = fail(&health, at: stride(from: 0, to: days3, by: 3600))
        #expect(health.record(.delivered, at: start + .seconds(days3)) == .recovered)
        #expect(health.state == .working)
        #expect(fail(&health, at: [days3 + 1]).isEmpty)
    }

    @Test(
        "A success counts as a recovery after an outage: number of failures, and seconds",
        arguments: [(1, 86_400, false), (2, 86_400, false), (3, 299, false), (3, 300, true), (50, 301, true)]
            as [(Int64, Int64, Bool)])
    func recoveryIsReportedAfterFiveMinutesOfFailures(tries: Int64, seconds: Int64, isNews: Bool) {
        var health = WebhookHealth()
        _ = fail(&health, at: 0..<tries)
        #expect(health.isDown == (tries >= 3))
        let change = health.record(.delivered, at: start + .seconds(seconds))
        #expect(change == (isNews ? .recovered : nil))
        #expect(health.record(.delivered, at: start + .seconds(seconds + 1)) == nil)
    }

    @Test func status410DisablesTheEndpointOnce() {
        var health = WebhookHealth()
        #expect(health.record(.unsubscribed, at: start) == .disabled(.unsubscribed))
        #expect(health.record(.unsubscribed, at: start) == nil)
        #expect(health.isDisabled)
    }

    @Test(
        "A webhook in flight does not enable the endpoint",
        arguments: [.delivered, .unsubscribed, .notAttempted, .failed(isOverloaded: true, retryAfter: nil)]
            as [WebhookOutcome.Meaning])
    func lateOutcomeDoesNotEnableADisabledEndpoint(meaning: WebhookOutcome.Meaning) {
        var health = WebhookHealth()
        #expect(health.disable(.operator, at: start) == .disabled(.operator))
        #expect(health.record(meaning, at: start + .seconds(days3)) == nil)
        #expect(health.state == .disabled(.operator, since: start))
    }

    @Test func operatorEnablesTheEndpoint() {
        var health = WebhookHealth()
        #expect(health.enable() == false)
        _ = fail(&health, at: (0...9).map { days3 * $0 })
        #expect(health.isDisabled)
        #expect(health.enable() == true)
        #expect(health.state == .working)
        #expect(fail(&health, at: [days3 * 10]).isEmpty)
    }

    @Test func unattemptedWebhookChangesNothing() {
        var health = WebhookHealth(.failing(since: start, attempts: 2))
        #expect(health.record(.notAttempted, at: start + .seconds(days3)) == nil)
        #expect(health.state == .failing(since: start, attempts: 2))
    }

    @Test func clockSetBackDoesNotDisable() {
        var health = WebhookHealth()
        #expect(fail(&health, at: (0..<50).map { -days3 * $0 }).isEmpty)
    }
}
