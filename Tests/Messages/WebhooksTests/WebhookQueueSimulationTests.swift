import TestSupport
import Testing
import Webhooks
import World

/// Websites with their queues, and a substitute for the store: webhooks with their due times. The time is virtual,
/// and a seed determines the run.
private struct SimulatedEndpoints {
    typealias Queue = WebhookQueue<Int, Int>

    struct Webhook {
        let website: Int
        let challenge: Int
        let ordinal: Int
        let born: Timestamp
        var due: Timestamp?
        var failures = 0
        var isHeld = false
        var isDead = false
        var arrivals: [Timestamp] = []
    }

    let jitter: SeededRandomness
    var now = Timestamp(seconds: 1_800_000_000)
    var webhooks: [Webhook] = []
    var queues: [Queue]
    var notices: [(website: Int, reason: WebhookHealth.Reason)] = []
    var mostUnderWay = 0
    private var underWay: [(webhook: Int, ends: Timestamp, outcome: WebhookOutcome)] = []

    init(_ count: Int, seed: UInt64) {
        jitter = SeededRandomness(seed: seed)
        queues = (0..<count).map { _ in Queue() }
    }

    mutating func happen(at website: Int, challenge: Int, ordinals: Range<Int>) {
        for ordinal in ordinals.reversed() {
            webhooks.append(Webhook(website: website, challenge: challenge, ordinal: ordinal, born: now, due: now))
        }
    }

    /// Leases due webhooks as a relay does: none before an earlier webhook of its thread.
    private mutating func lease() {
        for website in queues.indices {
            var room = queues[website].room(at: now)
            for webhook in webhooks.indices where room > 0 && webhooks[webhook].website == website {
                let one = webhooks[webhook]
                guard let due = one.due, due <= now, !one.isHeld,
                    !webhooks.contains(where: {
                        $0.challenge == one.challenge && $0.ordinal < one.ordinal && isOpen($0)
                    })
                else { continue }
                webhooks[webhook].isHeld = true
                queues[website].add(
                    .init(webhook, thread: one.challenge, ordinal: one.ordinal, failures: one.failures))
                room -= 1
            }
        }
    }

    private func isOpen(_ webhook: Webhook) -> Bool { webhook.due != nil }

    /// Runs until every webhook has its outcome, or until the limit.
    mutating func run(
        for limit: Duration, _ answer: (_ website: Int, Timestamp) -> (after: Duration, WebhookOutcome)
    ) {
        let end = now + limit
        while now <= end {
            lease()
            for website in queues.indices {
                while let entry = queues[website].next(at: now) {
                    let (after, outcome) = answer(website, now)
                    if outcome.meaning == .delivered { webhooks[entry.id].arrivals.append(now + after) }
                    underWay.append((entry.id, now + after, outcome))
                }
                mostUnderWay = max(mostUnderWay, queues[website].underWayCount)
            }
            let next = ([end + .milliseconds(1)] + underWay.map(\.ends) + resting + waiting).filter { $0 > now }.min()
            guard let next else { return }
            now = next
            for ended in underWay where ended.ends <= now { act(ended.webhook, ended.outcome) }
            underWay.removeAll { $0.ends <= now }
        }
    }

    private var resting: [Timestamp] { queues.compactMap { $0.pauseEnd(at: now) } }
    private var waiting: [Timestamp] { webhooks.filter { !$0.isHeld }.compactMap(\.due) }

    private mutating func act(_ webhook: Int, _ outcome: WebhookOutcome) {
        let website = webhooks[webhook].website
        let jitter = Double(jitter.number(below: 1000)) / 1000
        for effect in queues[website].end(webhook, outcome, at: now, jitter: jitter) {
            switch effect {
            case .delivered(let webhook): webhooks[webhook].due = nil
            case .retry(let webhook, let due, let failures): putBack(webhook, due, failures)
            case .dead(let webhook, let failures):
                putBack(webhook, nil, failures)
                webhooks[webhook].isDead = true
            case .suspended(let webhook, let failures): putBack(webhook, nil, failures)
            case .disabled(let reason): notices.append((website, reason))
            case .recovered:
                for webhook in webhooks.indices where webhooks[webhook].website == website && !webhooks[webhook].isHeld
                {
                    if webhooks[webhook].due != nil { webhooks[webhook].due = min(webhooks[webhook].due ?? now, now) }
                }
            }
        }
    }

    private mutating func putBack(_ webhook: Int, _ due: Timestamp?, _ failures: Int) {
        webhooks[webhook].due = due
        webhooks[webhook].failures = failures
        webhooks[webhook].isHeld = false
    }

    func latest(at website: Int) -> Duration {
        webhooks.filter { $0.website == website }.map { ($0.arrivals.first ?? now) - $0.born }.max() ?? .zero
    }

    /// Whether each webhook of a thread first arrived after those before it.
    var isInOrder: Bool {
        Dictionary(grouping: webhooks, by: \.challenge).values.allSatisfy { challenge in
            let arrivals = challenge.sorted { $0.ordinal < $1.ordinal }.compactMap(\.arrivals.first)
            return arrivals == arrivals.sorted()
        }
    }
}

@Suite("The webhooks of many websites") struct WebhookQueueSimulationTests {
    private let good = (after: Duration.milliseconds(20), WebhookOutcome.answered(status: 204))

    @Test(
        "A slow, dead or random endpoint delays no other",
        arguments: [
            (.seconds(15), .unanswered(.timeout)), (.milliseconds(5), .unanswered(.unreachable)),
            (.seconds(14), .answered(status: 200)), (.milliseconds(5), .answered(status: 302)),
            (.milliseconds(5), .answered(status: 429, retryAfter: .seconds(3600))),
            (.milliseconds(5), .unanswered(.refusedAddress)), (.milliseconds(5), .answered(status: 410)),
        ] as [(Duration, WebhookOutcome)])
    func endpointsDoNotDelayEachOther(after: Duration, outcome: WebhookOutcome) {
        var websites = SimulatedEndpoints(3, seed: 1)
        for challenge in 0..<300 { websites.happen(at: challenge % 3, challenge: challenge, ordinals: 0..<1) }
        websites.run(for: .seconds(60)) { website, _ in website == 0 ? (after, outcome) : good }
        for website in [1, 2] {
            let webhooks = websites.webhooks.filter { $0.website == website }
            #expect(webhooks.allSatisfy { $0.arrivals.count == 1 && $0.failures == 0 })
            // A hundred webhooks of 20 ms each, of which 4, 8, 16, 32 and 40 are sent together: the
            // same as without the other websites.
            #expect(websites.latest(at: website) == .milliseconds(100))
        }
        #expect(websites.mostUnderWay == 40)
    }

    @Test("An endpoint that is down for a day gets every webhook afterwards", arguments: 1...8 as ClosedRange<UInt64>)
    func endpointDownForADayGetsEveryWebhook(seed: UInt64) {
        var websites = SimulatedEndpoints(1, seed: seed)
        let back = websites.now + .seconds(86_400)
        for hour in 0..<30 {
            websites.happen(at: 0, challenge: hour, ordinals: 0..<3)
            websites.run(for: .seconds(3599)) { _, now in
                now < back ? (.milliseconds(5), .unanswered(.unreachable)) : good
            }
        }
        websites.run(for: .seconds(40 * 3600)) { _, _ in good }
        #expect(websites.webhooks.allSatisfy { $0.arrivals.count == 1 })
        #expect(websites.notices.isEmpty)
        #expect(websites.isInOrder)
        let late = websites.webhooks.filter { $0.born < back }.compactMap(\.arrivals.first).max()
        // The first successful attempt makes all other webhooks due. The longest pause between attempts is ten
        // hours and a quarter.
        #expect(late.map { $0 - back < .seconds(45_001) } == true)
    }

    @Test("A randomly failing endpoint gets every webhook in order", arguments: 1...20 as ClosedRange<UInt64>)
    func randomlyFailingEndpointGetsEveryWebhookInOrder(seed: UInt64) {
        var websites = SimulatedEndpoints(2, seed: seed)
        let jitter = SeededRandomness(seed: seed &+ 1000)
        for challenge in 0..<40 { websites.happen(at: challenge % 2, challenge: challenge, ordinals: 0..<4) }
        websites.run(for: .seconds(7 * 86_400)) { _, _ in
            let after = Duration.milliseconds(Int64(jitter.number(below: 15_000)))
            return switch jitter.number(below: 8) {
            case 0: (after, .answered(status: 500))
            case 1: (.seconds(15), .unanswered(.timeout))
            case 2: (after, .answered(status: 429, retryAfter: .seconds(Int64(jitter.number(below: 200)))))
            case 3: (after, .unsent)
            default: (after, .answered(status: 200))
            }
        }
        #expect(websites.webhooks.allSatisfy { $0.arrivals.count == 1 || $0.isDead })
        #expect(websites.webhooks.filter(\.isDead).allSatisfy { $0.failures == 8 })
        #expect(websites.webhooks.filter(\.isDead).count < 8)
        #expect(websites.isInOrder)
        #expect(websites.queues.allSatisfy { $0.isEmpty })
        #expect(websites.notices.isEmpty)
    }

    @Test func permanentlyFailingEndpointIsDisabledOnce() {
        var websites = SimulatedEndpoints(1, seed: 3)
        for day in 0..<5 {
            websites.happen(at: 0, challenge: day, ordinals: 0..<2)
            websites.run(for: .seconds(86_399)) { _, _ in (.seconds(15), .unanswered(.timeout)) }
        }
        #expect(websites.notices.map(\.reason) == [.failures])
        // Nothing is lost: the others have not had eight attempts, or are dead letters for an operator.
        #expect(websites.webhooks.allSatisfy { $0.arrivals.isEmpty && ($0.isDead || $0.failures < 8) })
    }
}
