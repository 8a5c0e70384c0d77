import Commands
import Daemon
import Domain
import JSON
import Storage
import TokenFiles
import World

extension Tool {
    static let importTokens = Subcommand(
        command: Command(
            "import", "Assigns the TOTP and HOTP tokens of a file to users of a website.",
            operands: [.init("FILE", "A file of tokens: PSKC (RFC 6030) or CSV.")],
            options: [
                .init("website", .one("NAME"), "The website of the users (required)."),
                .init("format", .one("pskc|csv"), "The format of FILE (default: its first character decides)."),
                .init("key-file", .one("FILE"), "The pre-shared key of a PSKC file, in hexadecimal or as bytes."),
                .init("password-file", .one("FILE"), "The password of a PSKC file; a final line end is ignored."),
                .init("map", .one("FILE"), "The owners of the tokens: CSV with the columns serial and username."),
                .init("replace", .nothing, "Replace a user's factor of the same kind (default: keep it)."),
                .init("skip-unknown", .nothing, "Leave out tokens of users that the website does not have."),
                .init("dry-run", .nothing, "Check everything, and change nothing."),
            ],
            notes: """
                The factors are valid at once, because the operator vouches for them. If the file has an error, or a user is
                missing, nothing is changed. The command can be run again: a user who has the token already keeps it. See
                docs/operators/import.md.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let input = try TokenFileInput(invocation)
        let store = try OperatorStore(settings)
        defer { store.close() }
        guard let name = invocation.value("website") else {
            throw Failure(
                .usage, "--website is missing",
                next: "User names belong to a website. 'twoefay website list' shows the websites.")
        }
        let website = try store.website(named: name)
        let keys = try settings.loadMasterKey()
        var work = TokenImport(
            website: website, store: store, sealer: try keys.usableSealer(), replaces: invocation.has("replace"),
            progress: invocation.progress())
        let file = invocation.operand(0)
        try work.plan(try input.owned(), skippingUnknown: invocation.has("skip-unknown"), file: file)
        let isDryRun = invocation.has("dry-run")
        if !isDryRun { try work.carryOut() }
        return work.report(remarks: input.remarks, isDryRun: isDryRun)
    }
}
