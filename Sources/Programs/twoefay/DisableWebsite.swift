import Commands
import Daemon
import JSON
import Storage

extension Tool {
    static let disableWebsite = Subcommand(
        command: Command(
            "website disable", "Refuses all requests of a website until it is enabled again.",
            operands: [.init("NAME", "The website's name, as in 'website list'.")],
            notes: """
                Relays refuse the requests of the website and of its users' phones at once. Every relay that reaches the store
                closes the website's connections within a second or two.
                """)
    ) { invocation throws(Failure) in try set(invocation, isDisabled: true) }

    static let enableWebsite = Subcommand(
        command: Command(
            "website enable", "Accepts the requests of a disabled website again.",
            operands: [.init("NAME", "The website's name, as in 'website list'.")])
    ) { invocation throws(Failure) in try set(invocation, isDisabled: false) }

    private static func set(_ invocation: Invocation, isDisabled: Bool) throws(Failure) -> Report {
        let store = try OperatorStore(try Settings.load(invocation))
        defer { store.close() }
        let website = try store.website(named: invocation.operand(0))
        let state = isDisabled ? "disabled" : "active"
        guard
            try store.run({ Websites.set(website.id, isDisabled: isDisabled, at: store.now, as: $0) })
        else {
            throw Failure(
                .conflict, "\(website.name) is \(state) already",
                next: "Nothing was changed. To see who did it: twoefay audit search --website \(website.name) "
                    + "--event website.")
        }
        return Report(
            "\(website.name) is \(state).",
            json: .object([
                "website": .string(website.name), "before": .string(website.state), "state": .string(state),
            ]))
    }
}
