import Commands
import Crypto
import Daemon
import JSON
import Storage
import World

extension Tool {
    private static let kind = Command.Operand(
        "KIND", "websites or phones. 'server pins' is for that of the server.",
        choices: AuthorityReplacement.Kind.allCases.map(\.rawValue))

    static let replaceAuthority = Subcommand(
        command: Command(
            "authority replace", "Creates another authority of websites or phones, beside the present one.",
            operands: [kind],
            options: [.init("back", .nothing, "Let the former authority sign again, during a replacement.")],
            notes: """
                Relays trust both after a reload, and the new one signs. Websites get certificates of it by 'website renew';
                'website list --unmoved' shows who lacks one. Phones get one when they renew. Then 'authority finish' takes
                the former one out.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let replacement = try replacement(invocation)
        let isBack = invocation.has("back")
        let authority = isBack ? try replacement.revert() : try replacement.begin(at: SystemTime().now())
        let unrecorded = settings.recordDone(
            "authority.replaced", note: "\(replacement.kind.rawValue)\(isBack ? ", back to the former one" : "")")
        return Report(
            """
            \(replacement.certificatesPath) holds two authorities, and \(replacement.keyPath) is the key of the \
            \(isBack ? "former" : "new") one.
            \(settings.reloadHint)\(unrecorded)
            """,
            json: .object([
                "kind": .string(replacement.kind.rawValue), "certificates": .string(replacement.certificatesPath),
                "key": .string(replacement.keyPath), "former_key": .string(replacement.formerKeyPath),
                "expires_at": .string(authority.notAfter.rfc3339),
            ]))
    }

    static let finishAuthority = Subcommand(
        command: Command(
            "authority finish", "Takes the former authority of websites or phones out.", operands: [kind],
            options: [.init("yes", .nothing, "Do it although certificates of the former authority may be in use.")])
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let replacement = try replacement(invocation)
        _ = try replacement.lastPhoneExpiry()
        if !invocation.has("yes"), let reason = try reasonToWait(replacement, settings) {
            throw Failure(.conflict, reason, next: "Nothing was changed. Wait, or do it with --yes.")
        }
        // Without its key, the list of the former authority would stay, and no relay would start.
        if replacement.kind == .websites, settings.tls.revoked != nil { _ = try WebsiteRevocationList(settings) }
        let former = try replacement.finish()
        let list = replacement.kind == .websites ? listWithout(former, settings) : nil
        let unrecorded = settings.recordDone(
            "authority.finished", note: "\(replacement.kind.rawValue), serial \(former.serial)")
        return Report(
            "The former authority is taken out of \(replacement.certificatesPath), and its key is deleted. "
                + "\(list.map { "\($0.text) " } ?? "")\(settings.reloadHint)\(unrecorded)",
            json: .object([
                "kind": .string(replacement.kind.rawValue), "certificates": .string(replacement.certificatesPath),
                "former_serial": .string(former.serial), "list": list.map { .object($0.json) } ?? .null,
            ]))
    }

    /// Takes the former authority's list out of the file that the settings name; nil if they name
    /// none. The authority is out already, so a failure is only reported.
    private static func listWithout(
        _ former: Certificate, _ settings: Settings
    ) -> (text: String, json: JSONObject)? {
        guard let revoked = settings.tls.revoked else { return nil }
        let path = settings.path(of: revoked)
        do throws(Failure) {
            let list = try WebsiteRevocationList(settings)
            let written = try list.write(without: former, at: SystemTime().now())
            return (
                "\(path) has its list no more, and lists \(counted(written.count, "certificate")) of the present authority.",
                ["path": .string(path), "count": .integer(Int64(written.count))]
            )
        } catch {
            return (
                "Its list is still in \(path), and relays refuse it: \(error.message). Remove that list first.",
                ["path": .string(path), "error": .string(error.message)]
            )
        }
    }

    private static func reasonToWait(
        _ replacement: AuthorityReplacement, _ settings: Settings
    ) throws(Failure) -> String? {
        switch replacement.kind {
        case .websites:
            let store = try OperatorStore(settings)
            defer { store.close() }
            let unmoved = try store.read(Websites.unmoved(to: try WebsiteAuthority.current(settings), at: store.now))
            guard !unmoved.isEmpty else { return nil }
            return "\(unmoved.count) websites have not moved to certificates of the present authority, or not with all "
                + "their servers: "
                + unmoved.prefix(5).map(\.name).joined(separator: ", ")
        case .phones:
            let end = try replacement.lastPhoneExpiry()
            guard end > SystemTime().now() else { return nil }
            return "phones may have certificates of the former authority until \(end.rfc3339)"
        }
    }

    private static func replacement(_ invocation: Invocation) throws(Failure) -> AuthorityReplacement {
        guard let kind = AuthorityReplacement.Kind(rawValue: invocation.operand(0)) else {
            throw Failure(
                .usage, "KIND must be websites or phones",
                next:
                    "The server's authority is replaced by 'twoefay server pins', 'server switch' and 'server finish'.")
        }
        return try AuthorityReplacement(kind, try Settings.load(invocation))
    }
}
