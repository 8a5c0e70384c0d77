import TestSupport
import Testing

/// `clients/swift`: its README and its export. The command `clients/swift/test` also builds the package.
@Suite("Export of the Swift package", .timeLimit(.minutes(5)), .mayBlock) struct PackageExportTests {
    private static let author = [
        "GIT_AUTHOR_NAME": "test", "GIT_AUTHOR_EMAIL": "test@example.com", "GIT_COMMITTER_NAME": "test",
        "GIT_COMMITTER_EMAIL": "test@example.com",
    ]

    private func export(_ arguments: [String]) async throws -> Child.Ended {
        try await Child("\(GuidePage.root)/clients/swift/export", arguments, environment: Self.author).ended()
    }

    private func git(_ directory: String, _ arguments: String...) async throws -> String {
        let ended = try await Child.run("git", ["-C", directory] + arguments)
        try #require(ended.status == 0, "\(ended.errors)")
        return ended.output
    }

    @Test func readmeShowsTheTestedCode() throws {
        let readme = try TextFile.read("\(GuidePage.root)/clients/swift/README.md")
        let code = try TextFile.read(
            "\(GuidePage.root)/Tests/Clients/TwoefayClientTests/Website/FifteenLines.swift")
        #expect(readme.contains("```swift Shop.swift\n\(code)```\n"))
        let statements = code.split(separator: "\n").filter { !$0.hasPrefix("///") && !$0.hasPrefix("import") }
        #expect(statements.count <= 15)
    }

    @Test func exportedPackageHasOwnNamesAndAVersion() async throws {
        let directory = try TemporaryDirectory()
        let package = directory("package")
        let ended = try await export([package, "--tag"])
        try #require(ended.status == 0, "\(ended.errors)")
        let files = try await git(package, "ls-files").split(separator: "\n").map(String.init)
        let modules = Set(files.filter { $0.hasPrefix("Sources/") }.map { $0.split(separator: "/")[1] })
        #expect(modules.isSuperset(of: ["TwoefayClient", "TwoefayCrypto", "CTwoefayOpenSSL"]))
        #expect(modules.allSatisfy { $0.hasPrefix("Twoefay") || $0.hasPrefix("CTwoefay") })
        for file in files where file.hasSuffix(".swift") {
            for line in try TextFile.read("\(package)/\(file)").split(separator: "\n") where line.contains("import ") {
                let words = line.split(separator: " ")
                guard words.dropLast().last == "import", let module = words.last, words[0] != "///" else { continue }
                let isKnown = ["Glibc", "PackageDescription", "Synchronization", "Testing"].contains(module)
                #expect(isKnown || modules.contains(module), "\(file): \(line)")
            }
        }
        #expect(files.contains("LICENSE") && files.contains("Tests/TwoefayClientTests/cases.json"))
        #expect(try !TextFile.read("\(package)/README.md").contains("](.."))
        #expect(try await git(package, "describe", "--exact-match").wholeMatch(of: /[0-9]+\.[0-9]+\.[0-9]+\n/) != nil)
        // A version is exported once, and nothing is overwritten.
        #expect(try await export([package, "--tag"]).status == 1)
        #expect(try await export([package]).status == 1)
        #expect(try await git(package, "status", "--porcelain") == "")
    }
}
