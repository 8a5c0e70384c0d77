import Daemon
import JSON
import Storage

extension Tool {
    static let disableWebsite = Subcommand(
        command: Command(
            "website disable", "Lets a website call no more, until it is enabled again.",
            operands: [.init("NAME", "A website that 'website list' shows.")],
            notes: """
                Its requests, and those of its users' phones, are refused at once. Its connections end within a second or two
                at every relay that reaches the store.
                """)
    ) { invocation throws(Failure) in try set(invocation, isDisabled: true) }

    static let enableWebsite = Subcommand(
        command: Command(
            "website enable", "Lets a website call again that was disabled.",
            operands: [.init("NAME", "A website that 'website list' shows.")])
    ) { invocation throws(Failure) in try set(invocation, isDisabled: false) }

    private static func set(_ invocation: Invocation, isDisabled: Bool) throws(Failure) -> Report {
        let desk = try OperatorStore(try Settings.load(invocation))
        defer { desk.close() }
        let website = try desk.website(named: invocation.operand(0))
        let state = isDisabled ? "disabled" : "active"
        guard
            try desk.run({ Websites.set(website.id, isDisabled: isDisabled, at: desk.now, as: $0) })
        else {
            throw Failure(.conflict, "\(website.name) is \(state) already", next: "Nothing was changed.")
        }
        return Report(
            "\(website.name) is \(state).",
            json: .object([
                "website": .string(website.name), "before": .string(website.state), "state": .string(state),
            ]))
    }
}
