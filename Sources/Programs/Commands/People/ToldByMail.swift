import Daemon
import Domain
import JSON
import Relay
import Storage
import World

/// Whether a user is told by mail of what happens to the account: locks, new phones, recoveries.
struct ToldByMail {
    /// The reason why nothing reaches the user; nil if mails do.
    let obstacle: UnsentAnnouncement.Reason?
    /// The announcements that reached nobody, as far as the audit is kept.
    let unsent: Announcements.Unsent

    /// The state for people; empty if all is well.
    var text: String {
        var lines: [String] = []
        switch obstacle {
        case .noServer:
            lines.append(
                "The user is told nothing of locks, new phones and recoveries: no mail server is set (mail.url).")
        case .noAddress:
            lines.append(
                "The user is told nothing of locks, new phones and recoveries: the user has no mail address. The website "
                    + "can add one.")
        default: break
        }
        if let last = unsent.lastAt {
            lines.append(
                "Mails about such events that reached nobody: \(unsent.count), the last one at \(last.rfc3339).")
        }
        return lines.joined(separator: "\n")
    }

    var json: JSONValue {
        .object([
            "told_by_mail": .bool(obstacle == nil), "reason": .text(obstacle?.rawValue),
            "unsent": .integer(unsent.count), "last_unsent_at": .text(unsent.lastAt?.rfc3339),
        ])
    }
}

extension OperatorStore {
    func told(_ user: Accounts.User) throws(Failure) -> ToldByMail {
        let hasAddress = user.email != nil || user.factors.contains { $0.kind == .mail && $0.state == .active }
        let obstacle: UnsentAnnouncement.Reason? =
            settings.mail.url == nil ? .noServer : hasAddress ? nil : .noAddress
        return ToldByMail(obstacle: obstacle, unsent: try read(Announcements.unsent(to: user.id)))
    }
}
