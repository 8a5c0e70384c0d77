import Bytes
import Daemon
import JSON
import Storage

extension Tool {
    static let revokeWebsiteKey = Subcommand(
        command: Command(
            "website revoke-key", "Takes a key of a website out: its certificate counts no more.",
            operands: [
                .init("NAME", "A website that 'website list' shows."),
                .init("THUMBPRINT", "A key that 'website show' lists.", isMany: true),
            ],
            options: [.init("all", .nothing, "Every key of the website, in place of THUMBPRINT.")],
            notes: """
                Requests with the key are refused at once. Its connections, and the requests that are held on them, end within a
                second or two at every relay that reaches the store. It cannot be undone: the key has leaked.
                  twoefay --config /etc/twoefay/twoefay.yaml website revoke-key shop --all
                """)
    ) { invocation throws(Failure) in
        let desk = try OperatorStore(try Settings.load(invocation))
        defer { desk.close() }
        let website = try desk.website(named: invocation.operand(0))
        let thumbprint = try thumbprint(invocation)
        let before = try desk.read(Websites.keys(of: website.id))
        guard
            try desk.run({ Websites.revokeKeys(of: website.id, thumbprint, at: desk.now, as: $0) })
        else {
            throw Failure(
                .notFound, "\(website.name) has no such key",
                next: "Nothing was changed. 'twoefay website show \(website.name)' lists its keys.")
        }
        let revoked = before.map(\.thumbprint).filter { thumbprint == nil || $0 == thumbprint }
        let left = before.count - revoked.count
        return Report(
            """
            \(revoked.count == 1 ? "1 key" : "\(revoked.count) keys") of \(website.name) revoked, \(left) left. \
            Connections with \(revoked.count == 1 ? "it" : "them") end within a second or two.
            """,
            json: .object([
                "website": .string(website.name), "revoked": .array(revoked.map { .string(Hex.encode($0)) }),
                "left": .integer(Int64(left)),
            ]))
    }

    /// Returns the thumbprint that was given; nil if `--all` was given.
    private static func thumbprint(_ invocation: Invocation) throws(Failure) -> [UInt8]? {
        let given = invocation.operands.dropFirst()
        let next = "'twoefay website show \(invocation.operand(0))' lists the keys of the website."
        guard (given.count == 1) != invocation.has("all"), given.count < 2 else {
            throw Failure(.usage, "give one THUMBPRINT, or --all", next: next)
        }
        guard let text = given.first else { return nil }
        guard let bytes = Hex.decode(text), bytes.count == 32 else {
            throw Failure(.usage, "THUMBPRINT must be the 64 hexadecimal digits of a key", next: next)
        }
        return bytes
    }
}
