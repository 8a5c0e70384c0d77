import Commands
import Daemon
import Domain
import JSON
import Relay
import Storage

extension Tool {
    static let removeWebsite = Subcommand(
        command: Command(
            "website remove", "Removes a website with all its users, keys and webhooks.",
            operands: [.init("NAME", "The website's name, as in 'website list'.")],
            options: [Invocation.yes],
            notes: """
                The website is disabled first. Its users are deleted with their phones, logins and codes, as if the website
                had deleted each of them. Webhooks that wait are dropped. The audit stays. This cannot be undone.
                The command can be repeated if it was interrupted. A later website gets the name only with
                'website add --reuse-name'.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let store = try OperatorStore(settings)
        defer { store.close() }
        let website = try store.website(named: invocation.operand(0))
        if let directory = settings.directories.all.first(where: { $0.website == website.name }) {
            throw Failure(
                .conflict, "users of \(website.name) come from the directory \(directory.name)",
                next:
                    "Nothing was changed. Remove directories.\(directory.name) from the settings, and reload the relays."
            )
        }
        try invocation.confirm(
            "This removes \(website.name) with \(counted(website.users, "user")), and all their phones and codes.")
        if website.state == "active" {
            _ = try store.run { Websites.set(website.id, isDisabled: true, at: store.now, as: $0) }
        }
        let (deleted, certificates) = try deleteUsers(of: website, store, invocation.progress())
        let list = addToRevoked(certificates, settings, at: store.now)
        var json: JSONObject = [
            "website": .string(website.name), "state": "removed", "users": .integer(deleted),
        ]
        json.set("list", list.map { .object($0.json) })
        return Report(
            "\(website.name) is removed, and \(deleted) of its users are deleted.\(list.map { "\n" + $0.text } ?? "")",
            json: .object(json))
    }

    /// Deletes all users, then the website. A request that began before the website was disabled may
    /// still add a user, so the store removes the website only if there is none.
    ///
    /// - Returns: how many users were deleted, and the certificates of the website's keys, which the
    ///   store does not know afterwards.
    private static func deleteUsers(
        of website: Websites.Listed, _ store: OperatorStore, _ progress: ProgressLines
    ) throws(Failure) -> (deleted: Int64, certificates: [WebsiteCertificate]) {
        var deleted: Int64 = 0
        while true {
            let users = try store.read(WebsiteRemoval.users(of: website.id, limit: 100))
            if users.isEmpty {
                let certificates = try store.read(Websites.keys(of: website.id)).flatMap(\.certificates)
                if try store.run({ WebsiteRemoval.finish(website.id, at: store.now, as: $0) }) {
                    return (deleted, certificates)
                }
                guard try store.website(named: website.name).state != "disabled" else { continue }
                throw Failure(
                    .conflict, "\(website.name) was enabled in the meantime",
                    next: "\(deleted) of its users are deleted. Repeat the command to remove the website.")
            }
            var deletions: [Query<[ChallengeID]?>] = []
            for user in users {
                deletions.append(
                    UserDeletion.delete(
                        user, of: website.id, by: .operator, at: store.now, as: try store.newOperation()))
            }
            deleted += Int64(try store.readAll(deletions).count { $0 != nil })
            progress.show("\(deleted) users deleted")
        }
    }
}
