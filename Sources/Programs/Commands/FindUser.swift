import Daemon
import Domain
import JSON
import Storage

extension Tool {
    static let findUser = Subcommand(
        command: Command(
            "user find", "Finds the users of a mail address or phone number.",
            operands: [.init("ADDRESS", "The address or number, exactly as it was registered.")],
            notes: """
                It looks at all websites, also for former addresses and for mails that wait. It finds sealed addresses, too, if it
                can read the master key. It reads all users, which takes a while in a large store.
                """)
    ) { invocation throws(Failure) in
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let address = invocation.operand(0)
        let holders = try store.read(AddressHolders.find(address))
        guard !holders.isEmpty else {
            throw Failure(
                .notFound, "no user has \(address)",
                next: "The address must be the same letter by letter; numbers begin with + and the country.")
        }
        return Report(
            Table(["WEBSITE", "USER", "FOUND IN"], holders.map { [$0.website, $0.username, $0.place] }).text,
            json: .object([
                "users": .array(
                    holders.map {
                        .object([
                            "website": .string($0.website), "username": .string($0.username),
                            "id": .string($0.user.text), "found_in": .string($0.place),
                        ])
                    })
            ]))
    }
}
