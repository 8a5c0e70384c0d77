import Daemon
import Glibc
import TestSupport
import Testing

/// The man pages, checked by the programs that show them.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ManPageTests {
    private static func has(_ program: String) -> Bool { access("/usr/bin/\(program)", X_OK) == 0 }

    private static func page(_ page: ManPage, in directory: TemporaryDirectory) async throws -> String {
        let printed = try await BuiltProgram.twoefay("man", page.rawValue, "--date", "2026-11-27")
        try #require(printed.status == 0, "\(printed.errors)")
        let path = directory("\(page.rawValue).\(page.section)")
        try TextFile.write(printed.output, to: path)
        return path
    }

    @Test(.enabled(if: ManPageTests.has("mandoc"), "mandoc is missing"), arguments: ManPage.allCases)
    func mandocFindsNoFault(_ page: ManPage) async throws {
        let directory = try TemporaryDirectory()
        let path = try await Self.page(page, in: directory)
        let ended = try await Child.run("mandoc", ["-Tlint", "-Wwarning", path])
        #expect(ended.status == 0 && ended.output.isEmpty, "\(ended.output)")
    }

    @Test(.enabled(if: ManPageTests.has("groff"), "groff is missing"), arguments: ManPage.allCases)
    func groffFindsNoFault(_ page: ManPage) async throws {
        let directory = try TemporaryDirectory()
        let path = try await Self.page(page, in: directory)
        let ended = try await Child.run("groff", ["-man", "-Kutf8", "-Tutf8", "-ww", "-z", path])
        #expect(ended.status == 0 && ended.errors.isEmpty, "\(ended.errors)")
    }

    /// A page that looks right may lack a part, so its text is compared with what it is about.
    @Test(.enabled(if: ManPageTests.has("mandoc"), "mandoc is missing"))
    func pagesAreComplete() async throws {
        let directory = try TemporaryDirectory()
        var texts: [ManPage: String] = [:]
        for page in ManPage.allCases {
            let path = try await Self.page(page, in: directory)
            let shown = try await Child.run("mandoc", ["-Tutf8", "-Owidth=400", path]).output
            // Bold letters are overstruck.
            texts[page] = shown.replacing(/.\u{8}/, with: "")
        }
        let help = try await BuiltProgram.twoefay("--help").output
        let commands = help.split(separator: "\n").drop { $0 != "Commands:" }.dropFirst()
            .prefix { $0.hasPrefix("  ") }
        #expect(commands.count > 60)
        for command in commands {
            let words = command.split(separator: " ").prefix { $0.allSatisfy { $0.isLowercase || $0 == "-" } }
            #expect(texts[.twoefay]?.contains("twoefay \(words.joined(separator: " "))") == true, "\(command)")
        }
        for key in SettingsKeys.all {
            #expect(texts[.settings]?.contains("\n       \(key.name)") == true, "\(key.name)")
        }
        #expect(texts[.twoefayd]?.contains("--check") == true)
        #expect(texts[.keys]?.contains("--peer USER") == true)
    }

    @Test func wrongPageAndDateAreRefused() async throws {
        let page = try await BuiltProgram.twoefay("man", "twoefayz")
        #expect(page.status == 2 && page.errors.contains("twoefay.yaml"), "\(page.errors)")
        let date = try await BuiltProgram.twoefay("man", "twoefay", "--date", "today")
        #expect(date.status == 2, "\(date.errors)")
    }
}
