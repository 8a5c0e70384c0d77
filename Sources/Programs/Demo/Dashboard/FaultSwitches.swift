import Daemon
import EventLoop
import FakePushServices
import JSON

/// The faults that a visitor can switch on and off. It must be used on its loop only.
final class FaultSwitches {
    enum Push: String {
        case up, down
    }

    enum Phone: String {
        case online, offline
    }

    enum Texts: String {
        case fast, slow
    }

    private(set) var push = Push.up
    private let sandbox: Sandbox
    private let feed: ActivityFeed
    private let phoneInbox: PhoneInbox
    private let texts: SMSCatcher
    /// Whether a visitor switched the relay off.
    private var isKilled = false

    init(sandbox: Sandbox, feed: ActivityFeed, phoneInbox: PhoneInbox, texts: SMSCatcher) {
        self.sandbox = sandbox
        self.feed = feed
        self.phoneInbox = phoneInbox
        self.texts = texts
        sandbox.relayIsGone = { [weak self] in self?.relayIsGone() }
    }

    var json: JSONObject {
        [
            "push": .string(push.rawValue), "relay": .string(sandbox.relayState.rawValue),
            "phone": .string((phoneInbox.isOnline ? Phone.online : .offline).rawValue),
            "sms": .string((texts.isSlowNow ? Texts.slow : .fast).rawValue),
        ]
    }

    /// Changes one switch; false if the switch or the state does not exist.
    func turn(_ name: String, to state: String) async -> Bool {
        switch (name, Push(rawValue: state), Phone(rawValue: state), Texts(rawValue: state)) {
        case ("push", let push?, _, _): await turn(push)
        case ("phone", _, let phone?, _):
            phoneInbox.setOnline(phone == .online)
            feed.add(phone == .online ? .phoneOnline : .phoneOffline)
        case ("sms", _, _, let speed?):
            texts.setSlow(speed == .slow)
            feed.add(speed == .slow ? .textsSlow : .textsFast)
        case ("relay", .up, _, _): await startRelay()
        case ("relay", .down, _, _): killRelay()
        case ("operator", .up, _, _): await unlockAll()
        default: return false
        }
        return true
    }

    private func turn(_ push: Push) async {
        self.push = push
        await sandbox.pushService?.injectFaults(
            push == .up ? FaultPlan() : FaultPlan(rules: [.every(1, .refuse(.serviceUnavailable))]))
        feed.add(push == .up ? .pushUp : .pushDown)
    }

    private func killRelay() {
        guard sandbox.relayState == .up else { return }
        isKilled = true
        sandbox.killRelay()
    }

    private func startRelay() async {
        guard sandbox.relayState == .down else { return }
        isKilled = false
        do throws(Failure) {
            try await sandbox.startRelayAgain()
            feed.add(.relayStarted)
        } catch {
            feed.add(.relayFailed, error.message)
        }
    }

    /// Unlocks all users, as the operator does. A user who reported fraud and has no recovery code
    /// needs the operator.
    private func unlockAll() async {
        do throws(Failure) {
            let names = try await sandbox.unlock(feed.usernames)
            feed.add(.operatorUnlocked, names.joined(separator: ", "))
        } catch {
            feed.add(.operatorFailed, error.message)
        }
    }

    private func relayIsGone() {
        if isKilled {
            feed.add(.relayKilled)
        } else {
            feed.add(.relayDied, sandbox.relay?.tail.joined(separator: "\n"))
        }
    }
}
