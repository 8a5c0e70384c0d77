import Daemon
import Domain
import JSON
import Storage
import TokenFiles
import World

extension Tool {
    static let importTokens = Subcommand(
        command: Command(
            "import", "Gives users of a website the tokens (TOTP, HOTP) that a file of their maker describes.",
            operands: [.init("FILE", "Key containers (PSKC, RFC 6030), or a table (CSV).")],
            options: [
                .init("website", .one("NAME"), "Whose users they are; it must be given."),
                .init("format", .one("pskc|csv"), "What FILE is; otherwise its first character tells."),
                .init(
                    "key-file", .one("FILE"), "The pre-shared key of a PSKC file: hexadecimal, or the bytes themselves."
                ),
                .init(
                    "password-file", .one("FILE"), "The password of a PSKC file; a line end behind it does not count."),
                .init("map", .one("FILE"), "Who has which token: a table with the columns serial and username."),
                .init("replace", .nothing, "Also where a user has such a factor; otherwise that is kept."),
                .init("skip-unknown", .nothing, "Leave out tokens of users whom the website does not have."),
                .init("dry-run", .nothing, "Look at everything, and change nothing."),
            ],
            notes: """
                The factors count at once, on the operator's word. If anything is wrong with the file, or a user is not known, nothing is
                done at all. It may be run again: who has the token already keeps it. See docs/operators/import.md.
                  twoefay import tokens.xml --website shop --key-file transport.key --map owners.csv --dry-run
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let input = try TokenFileInput(invocation)
        let desk = try OperatorStore(settings)
        defer { desk.close() }
        guard let name = invocation.value("website") else {
            throw Failure(
                .usage, "--website is missing",
                next: "User names are each website's own. 'twoefay website list' shows the websites.")
        }
        let website = try desk.website(named: name)
        let keys = try settings.loadMasterKey()
        var work = TokenImport(
            website: website, store: desk, sealer: try keys.usableSealer(), replaces: invocation.has("replace"))
        let file = invocation.operand(0)
        try work.plan(try input.owned(), skippingUnknown: invocation.has("skip-unknown"), file: file)
        let isRehearsal = invocation.has("dry-run")
        if !isRehearsal { try work.carryOut() }
        return work.report(remarks: input.remarks, isRehearsal: isRehearsal)
    }
}
