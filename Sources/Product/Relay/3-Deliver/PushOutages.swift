import DeliveryOutcomes
import Domain
import Log
import Synchronization
import World

/// The push services that are down, as far as this relay knows it from its own pushes.
///
/// Purpose: while a service is down, nobody waits for a push that cannot arrive. Each outcome of a
/// push is noted here, and a login asks before it waits.
///
/// A host of the operator is down in two cases. The courier cannot connect to it. Or pushes to 20
/// users have failed since the last one was accepted, and the last failure is not long ago. A host
/// that a user has chosen is down for that device alone, after its first failure.
///
/// An attacker may want a service to appear down, because users then get weaker factors. Therefore
/// an answer about one phone, such as an invalid token or too many pushes, is no failure of the
/// service. A single user, with any number of phones, counts once.
///
/// Every push is attempted all the same, so the first accepted one ends the outage.
///
/// Tests: `RelayTests/PushOutagesTests.swift` and, with logins, `PushOutageTests.swift`.
struct PushOutages {
    /// The users whose pushes must have failed before a host of the operator is down.
    static let mostUsers = 20
    /// The time after the last failure in which a service is known to be down.
    static let memory = Duration.seconds(300)
    /// The devices with a failing service of their own that are remembered. Further ones wait as if
    /// nothing was known.
    static let mostDevices = 10_000

    /// The beginning or the end of the outage of a host.
    enum Change: Equatable {
        case began(host: String, users: Int)
        case ended(host: String, after: Duration, logins: Int)
    }

    /// The failures of a service since its last success.
    private struct Failures {
        var users: Set<UserID> = []
        var last: Instant?

        /// Whether so many users make an outage.
        func make(_ most: Int, at now: Instant) -> Bool {
            guard let last, now - last < PushOutages.memory else { return false }
            return users.count >= most
        }
    }

    /// An outage of a host, which was logged.
    private struct Outage {
        let since: Instant
        /// The logins that did not wait for their pushes.
        var logins = 0
    }

    private var hosts: [String: Failures] = [:]
    private var devices: [DeviceID: Failures] = [:]
    private var outages: [String: Outage] = [:]

    /// The number of hosts that are down.
    var count: Int { outages.count }

    /// Notes the outcome of a push. An outcome that tells nothing about the service is ignored.
    mutating func note(_ outcome: DeliveryOutcome, of push: Push, by service: PushService, at now: Instant) -> Change? {
        switch outcome {
        case .accepted, .unregistered: forget(push, service)
        case .unavailable, .ambiguous: fail(push, service, at: now)
        case .retry, .misconfigured, .declined: return nil
        }
        return change(service, push, at: now)
    }

    /// Returns whether the service of a push is down, and the beginning or end of the outage of a
    /// host that shows itself only now.
    mutating func isDown(_ service: PushService, for push: Push, at now: Instant) -> (isDown: Bool, change: Change?) {
        // Nearly always.
        if hosts.isEmpty, devices.isEmpty, outages.isEmpty, !service.isUnreachable { return (false, nil) }
        return (judge(service, push, at: now), change(service, push, at: now))
    }

    /// Counts a login that does not wait for its push.
    mutating func countLogin(at service: PushService) {
        guard case .configured(let host, _) = service else { return }
        outages[host]?.logins += 1
    }

    private func judge(_ service: PushService, _ push: Push, at now: Instant) -> Bool {
        switch service {
        case .configured(_, isUnreachable: true): true
        case .configured(let host, _): hosts[host]?.make(Self.mostUsers, at: now) ?? false
        case .chosen: devices[push.device]?.make(1, at: now) ?? false
        }
    }

    private mutating func forget(_ push: Push, _ service: PushService) {
        switch service {
        case .configured(let host, _): hosts[host] = nil
        case .chosen: devices[push.device] = nil
        }
    }

    private mutating func fail(_ push: Push, _ service: PushService, at now: Instant) {
        switch service {
        case .configured(let host, _):
            var failures = hosts[host] ?? Failures()
            if failures.users.count < Self.mostUsers { failures.users.insert(push.user) }
            failures.last = now
            hosts[host] = failures
        case .chosen:
            if devices.count >= Self.mostDevices { devices = devices.filter { $1.make(1, at: now) } }
            guard devices.count < Self.mostDevices else { return }
            devices[push.device] = Failures(users: [push.user], last: now)
        }
    }

    /// Returns the change of a host's state, once.
    private mutating func change(_ service: PushService, _ push: Push, at now: Instant) -> Change? {
        guard case .configured(let host, _) = service else { return nil }
        let isDown = judge(service, push, at: now)
        switch (isDown, outages[host]) {
        case (true, nil):
            outages[host] = Outage(since: now)
            return .began(host: host, users: hosts[host]?.users.count ?? 0)
        case (false, let outage?):
            outages[host] = nil
            return .ended(host: host, after: now - outage.since, logins: outage.logins)
        case (true, _), (false, nil): return nil
        }
    }
}

extension PushService {
    fileprivate var isUnreachable: Bool { if case .configured(_, isUnreachable: true) = self { true } else { false } }
}

extension Relay {
    /// Notes the outcome of a push, for the logins that follow.
    func note(_ outcome: DeliveryOutcome, of push: Push, by courier: any PushCourier) {
        let (service, now) = (courier.service(of: push), time.instant())
        report(outages.withLock { ($0.note(outcome, of: push, by: service, at: now), $0.count) })
    }

    /// Whether the service of the push is known to be down.
    func isServiceDown(of push: Push) -> Bool {
        guard let courier = self.push else { return false }
        let (service, now) = (courier.service(of: push), time.instant())
        let (found, count) = outages.withLock { ($0.isDown(service, for: push, at: now), $0.count) }
        report((found.change, count))
        return found.isDown
    }

    /// Whether the next factor begins beside these pushes: no push service that is up has one of
    /// them, and no phone of the user waits for challenges at this relay.
    func isPushDown(_ pushes: [Push], of user: UserID, _ policy: Policy) -> Bool {
        policy.whenPushIsDown == .next && !pushes.isEmpty && pushes.allSatisfy { isServiceDown(of: $0) }
            && !heldRequests.isAwaited(.user(user))
    }

    /// Begins the next factor beside pushes that nobody waits for, and counts that.
    func begin(beside pushes: [Push], of challenge: ChallengeID) async -> Factor? {
        if let courier = push {
            let services = Set(pushes.map { courier.service(of: $0) })
            outages.withLock { outages in for service in services { outages.countLogin(at: service) } }
        }
        metrics.pushWasDown()
        return await beginBesidePush(of: challenge)
    }

    /// Begins the next factor beside a push whose service is down. The push stays in the outbox, and
    /// is sent when the service is back.
    ///
    /// - Returns: the factor that is under way; nil if no other factor begins. Then the user can
    ///   answer only in the app, or with a code at hand.
    @discardableResult
    func beginBesidePush(of challenge: ChallengeID) async -> Factor? {
        if let factor = await advance(challenge, because: .pushDown) { return factor }
        _ = try? await withStore("cascade") { () async throws(StoreFailure) in
            try await store.setPushAside(challenge)
        }
        return nil
    }

    private func report(_ seen: (change: PushOutages.Change?, count: Int)) {
        switch seen.change {
        case nil: return
        case .began(let host, let users): log.warning("push.service.down", [.host: host, .users: users])
        case .ended(let host, let duration, let logins):
            log.notice(
                "push.service.up", [.host: host, .count: logins, .milliseconds: duration.wholeMilliseconds])
        }
        metrics.recordServicesDown(seen.count)
    }
}
