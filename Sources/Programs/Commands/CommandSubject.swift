import Daemon
import Domain
import Storage

/// The subject of a command for the audit of the control socket.
extension Invocation {
    /// The options that are no part of a search.
    private static let presentation: Set = [
        "json", "csv", "config", "control", "reason", "limit", "count", "website", "yes",
    ]

    /// The user, phone or website that the command line names; nil if it names none.
    var subject: AuditSubject.Named? {
        let website = value("website")
        switch command.operands.first?.name {
        case "USER":
            if let website { return .user(operand(0), website: website) }
        case "DEVICE":
            if let id = DeviceID(operand(0)) { return .device(id) }
        case "NAME" where command.words.first == "website" && operands.count == 1: return .website(operand(0))
        default: break
        }
        // The filters of a search in the audit or the outbox.
        if let id = value("device").flatMap({ DeviceID($0) }) { return .device(id) }
        if let user = value("user") {
            if let id = UserID(user) { return .identified(id) }
            if let website { return .user(user, website: website) }
        }
        return website.map { .website($0) }
    }

    /// The name of the command, and the way in which it searches, such as `user search (mail address)`.
    /// A text that is searched for is often an address, so it stands nowhere.
    var searchNote: String {
        var ways = given.keys.filter { !Self.presentation.contains($0) }.sorted()
        if ["user search", "user find"].contains(command.name) { ways.insert(Self.kind(of: operand(0)), at: 0) }
        return ways.isEmpty ? command.name : "\(command.name) (\(ways.joined(separator: ", ")))"
    }

    private static func kind(of text: String) -> String {
        if UserID(text) != nil { return "id" }
        if text.contains("@") { return "mail address" }
        let isNumber = text.contains { $0.isNumber } && text.allSatisfy { $0.isNumber || " +-/().".contains($0) }
        return isNumber ? "phone number" : "text"
    }
}
