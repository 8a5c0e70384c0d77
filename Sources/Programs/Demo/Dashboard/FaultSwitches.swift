import Daemon
import EventLoop
import FakeAPNs
import JSON

/// What a visitor may break, and mend again. Lives on its loop.
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
    private let stage: Sandbox
    private let feed: ActivityFeed
    private let inbox: PhoneInbox
    private let texts: SMSCatcher
    /// The relay is gone because somebody wanted it.
    private var isKilled = false

    init(stage: Sandbox, feed: ActivityFeed, inbox: PhoneInbox, texts: SMSCatcher) {
        self.stage = stage
        self.feed = feed
        self.inbox = inbox
        self.texts = texts
        stage.relayIsGone = { [weak self] in self?.relayIsGone() }
    }

    var json: JSONObject {
        [
            "push": .string(push.rawValue), "relay": .string(stage.relayState.rawValue),
            "phone": .string((inbox.isOnline ? Phone.online : .offline).rawValue),
            "sms": .string((texts.isSlowNow ? Texts.slow : .fast).rawValue),
        ]
    }

    /// False where there is no such switch, or it has no such state.
    func turn(_ name: String, to state: String) async -> Bool {
        switch (name, Push(rawValue: state), Phone(rawValue: state), Texts(rawValue: state)) {
        case ("push", let push?, _, _): await turn(push)
        case ("phone", _, let phone?, _):
            inbox.setOnline(phone == .online)
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
        await stage.pushService?.misbehave(
            push == .up ? FaultPlan() : FaultPlan(rules: [.every(1, .refuse(.serviceUnavailable))]))
        feed.add(push == .up ? .pushUp : .pushDown)
    }

    private func killRelay() {
        guard stage.relayState == .up else { return }
        isKilled = true
        stage.killRelay()
    }

    private func startRelay() async {
        guard stage.relayState == .down else { return }
        isKilled = false
        do throws(Failure) {
            try await stage.startRelayAgain()
            feed.add(.relayStarted)
        } catch {
            feed.add(.relayFailed, error.message)
        }
    }

    /// Whoever has reported a fraud and has no recovery code goes to the operator.
    private func unlockAll() async {
        do throws(Failure) {
            let names = try await stage.unlock(feed.usernames)
            feed.add(.operatorUnlocked, names.joined(separator: ", "))
        } catch {
            feed.add(.operatorFailed, error.message)
        }
    }

    private func relayIsGone() {
        if isKilled {
            feed.add(.relayKilled)
        } else {
            feed.add(.relayDied, stage.relay?.tail.joined(separator: "\n"))
        }
    }
}
