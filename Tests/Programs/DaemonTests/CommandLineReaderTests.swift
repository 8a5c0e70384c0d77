import Bytes
import Daemon
import Testing

private let reader = CommandLineReader(
    program: "tool", about: "Does things.",
    shared: [.init("config", .one("FILE"), "The settings."), .init("json", .nothing, "For programs.")],
    commands: [
        Command(
            "website add", "Adds one.", operands: [.init("NAME", "Its name.")],
            options: [.init("out", .one("DIR"), "Where to."), .init("host", .many("NAME"), "Names.")]),
        Command("website list", "Lists them.", options: [.init("expiring", .optional("DAYS"), "Soon.")]),
        Command("status", "Tells how it is."),
    ])

private func invocation(_ arguments: String...) throws -> Invocation {
    guard case .run(let invocation) = try reader.read(arguments) else { throw Failure(.failed, "help", next: "") }
    return invocation
}

private func refusal(_ arguments: [String]) -> Failure? {
    do throws(Failure) {
        _ = try reader.read(arguments)
        return nil
    } catch {
        return error
    }
}

private func help(_ arguments: String...) throws -> String {
    guard case .help(let text) = try reader.read(arguments) else { return "" }
    return text
}

@Suite struct CommandLineReaderTests {
    @Test func sharedOptionsMayPrecedeOrFollowTheCommand() throws {
        let before = try invocation("--config", "a.yaml", "website", "add", "shop", "--json")
        #expect(before.command.name == "website add")
        #expect(before.operands == ["shop"])
        #expect(before.value("config") == "a.yaml")
        #expect(before.has("json"))
        let behind = try invocation("website", "add", "--config=a.yaml", "shop")
        #expect(behind.value("config") == "a.yaml")
        #expect(!behind.has("json"))
    }

    @Test func multiValueOptionTakesAllValues() throws {
        let given = try invocation("website", "add", "shop", "--host", "a", "b", "--out", "d", "--host=c")
        #expect(given.values("host") == ["a", "b", "c"])
        #expect(given.value("out") == "d")
    }

    @Test func valueOfAnOptionalOneMayBeLeftOut() throws {
        for (words, value) in [(["--expiring"], nil), (["--expiring", "7"], "7"), (["--expiring=8"], "8")] {
            let given = try reader.read(["website", "list"] + words + ["--json"])
            guard case .run(let invocation) = given else { throw Failure(.failed, "help", next: "") }
            #expect(invocation.has("expiring") && invocation.has("json"))
            #expect(invocation.value("expiring") == value)
        }
        #expect(refusal(["website", "list", "--expiring", "7", "8"])?.message.contains("unexpected") == true)
    }

    @Test func doubleDashEndsTheOptions() throws {
        #expect(try invocation("website", "add", "--", "--shop").operands == ["--shop"])
    }

    @Test(
        "An operand or a value may begin with a dash",
        arguments: ["-", "-9aZ_w4", "-json", "--9aZ_w4", "--A"])
    func operandMayBeginWithADash(code: String) throws {
        #expect(try invocation("website", "add", code).operands == [code])
        #expect(try invocation("website", "add", "shop", "--out", code).value("out") == code)
        #expect(try invocation("website", "add", "shop", "--host", code, "b").values("host") == [code, "b"])
    }

    @Test(
        "The refusal names the error",
        arguments: [
            (["wibsite"], "unknown command wibsite; did you mean website?"),
            (["status", "now"], "unexpected argument now"),
            (["website"], "website needs a subcommand"),
            (["website", "add"], "NAME is missing"),
            (["website", "add", "shop", "--aut", "d"], "unknown option --aut; did you mean --out?"),
            (["status", "--out", "d"], "unknown option --out"),
            (["website", "add", "shop", "--out"], "--out needs a value: --out DIR"),
            (["website", "add", "shop", "--out", "--json"], "--out needs a value: --out DIR"),
            (["website", "add", "shop", "--out="], "--out needs a value: --out DIR"),
            (["website", "add", "shop", "--out", "a", "--out", "b"], "--out is given twice"),
            (["status", "--json=yes"], "--json takes no value"),
            (["status", "-j"], "unknown option -j"),
            (["--json"], "no command was given"),
        ])
    func invalidArgumentsAreRefused(arguments: [String], message: String) {
        let failure = refusal(arguments)
        #expect(failure?.message == message)
        #expect(failure?.code == .usage)
        #expect(failure?.next.contains("--help") == true)
    }

    @Test func helpListsEveryCommandAndOption() throws {
        let all = try help()
        for part in ["website add NAME", "website list", "status", "--config FILE", "--json", "--help"] {
            #expect(all.contains(part))
        }
        let websites = try help("website", "--help")
        #expect(websites.contains("website add NAME") && !websites.contains("status"))
        let one = try help("website", "add", "--help")
        for part in ["Usage: tool website add NAME [OPTION]…", "--out DIR", "--host NAME…", "--config FILE", "NAME "] {
            #expect(one.contains(part))
        }
    }

    @Test func programWithoutSubcommandsIsParsed() throws {
        let one = CommandLineReader(
            program: "daemon", about: "", shared: [],
            commands: [Command("", "Runs.", options: [.init("config", .one("FILE"), "The settings.")])])
        guard case .run(let invocation) = try one.read(["--config", "a"]) else {
            Issue.record("asked for help")
            return
        }
        #expect(invocation.value("config") == "a")
        guard case .run(let bare) = try one.read([]) else {
            Issue.record("asked for help")
            return
        }
        #expect(!bare.has("config"))
        #expect(throws: Failure.self) { try one.read(["x"]) }
    }

    @Test(
        arguments: [
            ("stroage", "storage"), ("orign", "origin"), ("listen", "listen"), ("Storage", "storage"), ("sto", nil),
            ("certificates", "certificate"), ("x", nil),
        ] as [(String, String?)])
    func typosAreRefusedWithASuggestion(word: String, meant: String?) {
        #expect(Spelling.nearest(to: word, among: ["origin", "listen", "storage", "certificate"]) == meant)
    }
}
