import Bytes
import Commands
import Daemon
import JSON
import Relay
import Storage
import World

extension Tool {
    static let revokeWebsiteKey = Subcommand(
        command: Command(
            "website revoke-key", "Revokes keys of a website: their certificates are refused from now on.",
            operands: [
                .init("NAME", "The website's name, as in 'website list'."),
                .init("THUMBPRINT", "The thumbprint of each key, as in 'website show'.", isMany: true),
            ],
            options: [
                .init("all", .nothing, "Revoke every key of the website, instead of THUMBPRINT."), Invocation.yes,
            ],
            notes: """
                Relays refuse requests with the keys at once. Every relay that reaches the store ends its connections, with the
                requests held on them, within a second or two. A revocation cannot be undone.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let store = try OperatorStore(settings)
        defer { store.close() }
        let website = try store.website(named: invocation.operand(0))
        let given = try thumbprints(invocation)
        let before = try store.read(Websites.keys(of: website.id))
        let present = Set(before.map(\.thumbprint))
        if let unknown = given.first(where: { !present.contains($0) }) {
            throw absent(Hex.encode(unknown), of: website)
        }
        let ended = before.filter { given.isEmpty || given.contains($0.thumbprint) }
        if !ended.isEmpty {
            let isLast = ended.count == before.count
            try invocation.confirm(
                "\(ended.count) of \(before.count) keys of \(website.name) are refused for good."
                    + (isLast ? " The website cannot call any more, until 'website renew' gives it a new key." : ""))
        }
        // The list comes before the revocation: it cannot be completed once the store has the keys no
        // more. Before that the keys stop, because a website may have renewed its certificate meanwhile.
        let stopped = ended.map(\.thumbprint)
        if !stopped.isEmpty { try store.read(Websites.stopKeys(of: website.id, stopped, at: store.now)) }
        let keys = try store.read(Websites.keys(of: website.id)).filter { stopped.contains($0.thumbprint) }
        let list = ended.isEmpty ? nil : addToRevoked(keys.flatMap(\.certificates), settings, at: store.now)
        // Without a thumbprint, all keys end in one step, also one that is added now. A key that is gone
        // was revoked by somebody else in the meantime.
        for thumbprint in given.isEmpty ? [nil] : given.map(Optional.some) {
            let isRevoked = try store.run { Websites.revokeKeys(of: website.id, thumbprint, at: store.now, as: $0) }
            guard isRevoked || thumbprint != nil else { throw absent(nil, of: website) }
        }
        let revoked = ended.map(\.thumbprint)
        let left = before.count - revoked.count
        var json: JSONObject = [
            "website": .string(website.name), "revoked": .array(revoked.map { .string(Hex.encode($0)) }),
            "left": .integer(Int64(left)),
        ]
        json.set("list", list.map { .object($0.json) })
        return Report(
            """
            \(revoked.count == 1 ? "1 key" : "\(revoked.count) keys") of \(website.name) revoked, \(left) left. \
            Connections with \(revoked.count == 1 ? "it" : "them") end within a second or two.\(list.map { "\n" + $0.text } ?? "")
            """,
            json: .object(json))
    }

    /// Adds the certificates to the revocation list that the settings name; nil if they name none.
    /// A failure is only reported, because relays refuse revoked keys without the list.
    static func addToRevoked(
        _ certificates: [WebsiteCertificate], _ settings: Settings, at now: Timestamp
    ) -> (text: String, json: JSONObject)? {
        guard settings.tls.revoked != nil else { return nil }
        do throws(Failure) {
            let list = try WebsiteRevocationList(settings)
            let serials = certificates.filter { list.isOfIssuer($0.issuer) }.map(\.serial)
            let written = try list.write(adding: serials, at: now)
            return (
                "\(list.path) lists \(counted(written.count, "certificate")). Relays read it at their next reload: "
                    + "\(settings.waysToReload).",
                ["path": .string(list.path), "count": .integer(Int64(written.count))]
            )
        } catch {
            return ("The revocation list was not written: \(error.message)", ["error": .string(error.message)])
        }
    }

    private static func absent(_ thumbprint: String?, of website: Websites.Listed) -> Failure {
        Failure(
            .notFound, "\(website.name) has no key\(thumbprint.map { " with the thumbprint \($0)" } ?? "")",
            next: "'twoefay website show \(website.name)' lists its keys.")
    }

    /// Returns the thumbprints that were given, each once; none if `--all` was given.
    private static func thumbprints(_ invocation: Invocation) throws(Failure) -> [[UInt8]] {
        let given = invocation.operands.dropFirst()
        let next = "'twoefay website show \(invocation.operand(0))' lists the keys of the website."
        guard given.isEmpty == invocation.has("all") else {
            throw Failure(
                .usage,
                given.isEmpty
                    ? "give the THUMBPRINT of each key that is to be revoked, or --all"
                    : "THUMBPRINT and --all exclude each other", next: next)
        }
        var thumbprints: [[UInt8]] = []
        for text in given {
            guard let bytes = Hex.decode(text), bytes.count == 32 else {
                throw Failure(.usage, "THUMBPRINT must be the 64 hexadecimal digits of a key", next: next)
            }
            if !thumbprints.contains(bytes) { thumbprints.append(bytes) }
        }
        return thumbprints
    }
}
