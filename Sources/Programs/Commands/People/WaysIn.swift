import Daemon
import Domain
import Relay
import Storage

/// The factors with which a user can log in at present, as far as settings, policies and store show.
struct WaysIn {
    /// The factors that count, in the order of the policy.
    let usable: [Factor]
    /// The active factors that do not count, each with the reason.
    let idle: [(factor: Factor, reason: String)]
    /// Whether the website itself answers its logins, so that its users need no factor.
    let isWebsiteAnswering: Bool

    /// Whether the user could not log in any more without this factor, and can with it. A temporary
    /// code does not stand in for it.
    func isLast(_ factor: Factor) -> Bool {
        !isWebsiteAnswering && usable.filter { $0 != .operator } == [factor]
    }
}

extension OperatorStore {
    /// Returns the ways in of a user, by the policy of the website and of the user's group.
    func waysIn(_ user: Accounts.User) throws(Failure) -> WaysIn {
        let website = try WebsitePolicy(try website(named: user.website).traits, settings: settings).policy
        let policy = user.policy.flatMap { try? website.changed(by: $0) } ?? website
        let hasCodes = try read(Accounts.unusedRecoveryCodes(of: user.id)) > 0
        let temporary = try read(TemporaryCodes.shown(of: user.id))
        var usable: [Factor] = []
        var idle: [(factor: Factor, reason: String)] = []
        for factor in Factor.choices where user.has(factor) {
            let reason: String? =
                switch factor {
                case _ where !policy.factors.contains(factor): "the policy factors does not name it"
                case .mail where settings.mail.url == nil: "no mail server is set"
                case .sms where settings.texts.gateways.all.isEmpty: "no SMS gateway is set"
                case .recovery where !hasCodes: "all codes are used"
                case .operator where temporary?.isUsable(at: now) != true: "the temporary code has ended"
                default: nil
                }
            if let reason { idle.append((factor, reason)) } else { usable.append(factor) }
        }
        usable.sort { (policy.factors.firstIndex(of: $0) ?? 0) < (policy.factors.firstIndex(of: $1) ?? 0) }
        return WaysIn(usable: usable, idle: idle, isWebsiteAnswering: policy.answers == .website)
    }
}

extension Accounts.User {
    /// Whether the user has an active factor of this kind, or an active phone.
    fileprivate func has(_ factor: Factor) -> Bool {
        factor == .push
            ? devices.contains { $0.view.state == .active }
            : factors.contains { $0.kind == factor && $0.state == .active }
    }

    /// The command that gives the user a way in, in place of a lost one.
    var wayBack: String { "twoefay user activate \(username.asShellWord) --website \(website)" }
}
