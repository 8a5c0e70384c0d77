import Domain
import Synchronization
import Webhooks
import World

/// What this relay is doing about the websites that it calls, each by itself. Nothing waits here: what cannot leave at once
/// goes back to the store.
final class WebhookQueues: Sendable {
    typealias Line = WebhookQueue<OutboxEntryID, ChallengeID>

    private struct EndpointState {
        var line: Line
        var place: EndpointRevision?
        /// One claim at a time: two would take more than there is room for.
        var isClaiming = false
        /// There was more to claim meanwhile.
        var needsAnotherRound = false
        /// Until then something of ours is to be mended first.
        var pausedUntil: Timestamp?
        /// It is back, and what waits for it is being made due.
        var isRecovering = false

        func isPaused(at now: Timestamp) -> Bool {
            guard let pausedUntil else { return false }
            // For a clock that was set back nobody waits.
            return now < pausedUntil && pausedUntil - now <= WebhookQueues.pause
        }
    }

    /// So long a website is left alone that cannot be called, for a reason of ours.
    static let pause = Duration.seconds(60)

    private let callers = Mutex<[WebsiteID: EndpointState]>([:])

    /// How many of its calls to claim now. Where there are any, `claimed` is to follow.
    func lease(_ website: DueEndpoint, at now: Timestamp) -> Int {
        change(website.id, at: now) { caller in
            if let former = caller.place, former != website.place {
                caller.line.reset()
                caller.pausedUntil = nil
            }
            caller.place = website.place
            caller.needsAnotherRound = caller.isClaiming
            guard !caller.isClaiming, !caller.isPaused(at: now) else { return 0 }
            // Those that are called no more are not asked about.
            _ = caller.line.update(website.health)
            let room = caller.line.room(at: now)
            caller.isClaiming = room > 0
            return room
        }
    }

    /// What leaves of what was claimed.
    ///
    /// - Parameter isClosed: none of it.
    /// - Returns: beside it, what goes back, and whether to look again.
    func claimed(
        _ rows: [WebhookRow], of website: WebsiteID, at now: Timestamp, isClosed: Bool
    ) -> (leaving: [OutboxEntryID], effects: [Line.Effect], isWanted: Bool) {
        change(website, at: now) { caller in
            for row in rows {
                caller.line.add(
                    Line.Entry(row.id, thread: row.challenge?.id, ordinal: row.place, failures: row.failures))
            }
            var leaving: [OutboxEntryID] = []
            while !isClosed, let next = caller.line.next(at: now) { leaving.append(next.call) }
            let isWanted = caller.needsAnotherRound
            (caller.isClaiming, caller.needsAnotherRound) = (false, false)
            return (leaving, caller.line.release(at: now), isWanted)
        }
    }

    /// Somebody has to mend something here before it is called.
    func pause(_ website: WebsiteID, at now: Timestamp) {
        change(website, at: now) { $0.pausedUntil = now + Self.pause }
    }

    /// - Returns: beside what follows, whether a success is to be counted. While it recovers, it is not: that is written
    ///   once, by whoever makes due what waits, and afterwards.
    func end(
        _ call: OutboxEntryID, of website: WebsiteID, _ outcome: WebhookOutcome, at now: Timestamp, chance: Double
    ) -> (effects: [Line.Effect], isCounted: Bool) {
        change(website, at: now) { caller in
            var effects = caller.line.end(call, outcome, at: now, chance: chance)
            let wasRecovering = caller.isRecovering
            if effects.contains(.recovered) {
                if wasRecovering { effects.removeAll { $0 == .recovered } }
                caller.isRecovering = true
            }
            return (effects, !wasRecovering)
        }
    }

    /// What waited is due, or that is for the next that arrives.
    func endRecovery(of website: WebsiteID, at now: Timestamp) {
        change(website, at: now) { $0.isRecovering = false }
    }

    private func change<Result>(
        _ website: WebsiteID, at now: Timestamp, _ change: (inout EndpointState) -> Result
    ) -> Result {
        callers.withLock { callers in
            var caller = callers[website] ?? EndpointState(line: Line())
            let result = change(&caller)
            let isNothing =
                !caller.isClaiming && !caller.isRecovering && !caller.isPaused(at: now)
                && caller.line.isIdle(at: now)
            callers[website] = isNothing ? nil : caller
            return result
        }
    }
}
