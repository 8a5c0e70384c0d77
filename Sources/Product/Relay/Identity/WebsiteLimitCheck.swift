import Domain
import Log
import Synchronization
import World

/// A website with the limits that apply to it now.
struct LimitedWebsite: Sendable {
    let id: WebsiteID
    let name: String
    let limits: WebsiteLimits
}

extension Website {
    var limited: LimitedWebsite { LimitedWebsite(id: id, name: name, limits: policy.limits) }
}

/// The checks of what a website may still use. `WebsiteUsage` says how exact they are.
extension Relay {
    /// Counts a request that opens a login, unless the website has reached a limit.
    ///
    /// A repetition takes nothing if its first run opened the login. If that one was refused, the
    /// store has nothing of it, and the repetition is a request like any other.
    func takeLogin(of website: Website, as operation: Operation) async throws(Refusal) {
        if operation.mayHaveRun, try await recordedEvent(operation) != nil { return }
        try takeLogin(of: website)
    }

    private func takeLogin(of website: Website) throws(Refusal) {
        let now = time.now()
        let limits = website.policy.limits
        let over: (limit: WebsiteLimit, pause: Duration)? = usage.update(website.id, website.name, at: now) { record in
            record.limits = limits
            if let most = limits[.loginsDay], record.own.logins + record.others.logins >= Int64(most) {
                return (.loginsDay, record.day.end - now)
            }
            let pause = record.minute.take(limit: limits[.loginsMinute], others: record.others.logins, at: now)
            return pause.map { (.loginsMinute, $0) }
        }
        guard let over else { return }
        reached(over.limit, by: website.limited)
        throw .websiteLimited(over.limit, retryAfter: over.pause)
    }

    /// Whether the website may use that many more under all of these limits. If not, the limit that
    /// is reached is counted and logged.
    func mayUse(_ limits: [WebsiteLimit], _ amount: Int = 1, by website: LimitedWebsite) -> Bool {
        fullLimit(of: limits, amount, by: website) == nil
    }

    /// Returns the limit that so many more would exceed; nil if there is none.
    private func fullLimit(of limits: [WebsiteLimit], _ amount: Int, by website: LimitedWebsite) -> WebsiteLimit? {
        let now = time.now()
        let full = usage.update(website.id, website.name, at: now) { record in
            record.limits = website.limits
            return limits.first { limit in
                website.limits[limit].map { (record.used(limit) ?? 0) + Int64(amount) > Int64($0) } ?? false
            }
        }
        if let full { reached(full, by: website) }
        return full
    }

    /// Refuses a request that would send a mail, if the website has used up its mails.
    func requireMails(of website: Website) throws(Refusal) {
        guard let full = fullLimit(of: WebsiteLimit.mails, 1, by: website.limited) else { return }
        let now = time.now()
        throw .websiteLimited(full, retryAfter: UsageDay(now).end(of: full) - now)
    }

    /// Counts a mail whose outbox entry the store has, and sends it. A mail counts before a server
    /// takes it: while the server is slow or fails, no more are written than the limit allows.
    func startMail(_ entry: OutboxEntryID, of website: LimitedWebsite) {
        usage.count(\.mails, of: website.id, website.name, at: time.now())
        startDelivery(entry)
    }

    /// Counts a message that begins because a push service is down. Returns false if the website has
    /// used up those of the hour at this relay.
    func takeOutageMessage(by website: LimitedWebsite) -> Bool {
        let now = time.now()
        let pause = usage.update(website.id, website.name, at: now) { record in
            record.outage.take(limit: website.limits[.outageMessages], others: 0, at: now)
        }
        if pause != nil { reached(.outageMessages, by: website) }
        return pause == nil
    }

    /// Returns which limit of text messages is used up, as far as this relay knows.
    func textLimit(of website: LimitedWebsite) -> WebsiteLimit {
        guard let most = website.limits[.textsMonth],
            (usage.used(.textsMonth, by: website.id, at: time.now()) ?? 0) >= Int64(most)
        else { return .textsDay }
        return .textsMonth
    }

    /// Counts and logs that a website has reached a limit.
    func reached(_ limit: WebsiteLimit, by website: LimitedWebsite) { reached(limit, website.id, website.name) }

    /// Counts and logs that a website has reached its limit of held requests.
    public func reachedHeld(_ id: WebsiteID, _ name: String) { reached(.held, id, name) }

    private func reached(_ limit: WebsiteLimit, _ id: WebsiteID, _ name: String) {
        metrics.websites.reached(limit, by: name)
        guard let count = limitNotices.log(limit, of: id, at: time.instant()) else { return }
        log.warning("website.limited", [.website: name, .limit: limit.rawValue, .count: count])
    }

    /// The limits of a website whose row was read with something else. If its policies cannot be
    /// read, those of the settings apply.
    func limited(_ id: WebsiteID, _ name: String, policy: String) -> LimitedWebsite {
        let limits = (try? policies.policy(changedBy: policy))?.limits ?? defaultPolicy.limits
        return LimitedWebsite(id: id, name: name, limits: limits)
    }

    /// The maximum number of held requests of a website and its phones.
    public func mostHeld(_ website: WebsiteID, _ name: String, policy: String) -> Int? {
        limited(website, name, policy: policy).limits[.held]
    }
}

extension WebsiteLimit {
    static let mails: [WebsiteLimit] = [.mailsDay, .mailsMonth]
}

/// The log throttle for the limits of websites: one line in ten seconds for each limit of each
/// website.
final class WebsiteLimitLog: Sendable {
    private struct Subject: Hashable {
        let website: WebsiteID
        let limit: WebsiteLimit
    }

    private let bursts = Mutex<[Subject: LogThrottle]>([:])

    func log(_ limit: WebsiteLimit, of website: WebsiteID, at now: Instant) -> Int? {
        bursts.withLock { $0[Subject(website: website, limit: limit), default: LogThrottle()].record(at: now) }
    }
}
