import Glibc
import TestSupport
import Testing

/// The code of docs/websites/by-hand.md in one language, run unchanged, with the code of
/// docs/websites/receipts.md.
struct GuideCode: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// The language of the blocks on the page.
    let language: String
    let program: String
    /// The file for the code of docs/websites/receipts.md, or nil if the language does not use it.
    let receipts: String?
    /// The program that logs a user in.
    let driver: (name: String, text: String)
    /// The command that receives webhooks at a port. It prints `ready.word` when it listens.
    let listening: @Sendable (_ port: String) -> [String]
    let ready: (stream: Child.Stream, word: String)

    /// The origin on the page, which the test replaces by that of the real relay.
    static let origin = "https://login.example.com:8080"

    static let python = GuideCode(
        testDescription: "Python", language: "python", program: "/usr/bin/python3", receipts: "receipts.py",
        driver: ("driver.py", GuideDriver.python), listening: { ["driver.py", "listen", $0] },
        ready: (.output, "listening"))
    static let javaScript = GuideCode(
        testDescription: "JavaScript", language: "js", program: "node", receipts: "receipts.mjs",
        driver: ("driver.mjs", GuideDriver.javaScript), listening: { ["driver.mjs", "listen", $0] },
        ready: (.output, "listening"))
    static let php = GuideCode(
        testDescription: "PHP", language: "php", program: "php", receipts: "receipts.php",
        driver: ("driver.php", GuideDriver.php), listening: { ["-S", "127.0.0.1:\($0)", "webhook.php"] },
        ready: (.errors, "started"))

    /// The languages that are installed. dev/need installs all of them if there is a network.
    static let withReceipts = [python, javaScript, php].filter(\.isInstalled)

    private var isInstalled: Bool {
        switch language {
        case "python": access("\(GuidePage.root)/.build/python/standardwebhooks/webhooks.py", R_OK) == 0
        case "js": PageCode.hasNode
        default: PageCode.hasPHP
        }
    }

    /// Writes the page's files in this language, the code for receipts, and the driver.
    func write(into directory: TemporaryDirectory, origin: String) throws {
        for (name, text) in try Self.files(language) { try write(text, name, directory, origin) }
        if let receipts { try write(try PageCode.text(language), receipts, directory, origin) }
        try TextFile.write(driver.text, to: directory(driver.name))
        if language == "js" { try PageCode.linkJose(into: directory) }
    }

    private func write(_ text: String, _ name: String, _ directory: TemporaryDirectory, _ origin: String) throws {
        try TextFile.write(text.replacing(Self.origin, with: origin), to: directory(name))
    }

    /// Runs the program in this directory.
    func start(_ arguments: [String], in directory: TemporaryDirectory) throws -> Child {
        try Child(
            program, arguments,
            environment: [
                "PYTHONPATH": "\(GuidePage.root)/.build/python", "PYTHONDONTWRITEBYTECODE": "1",
                "TWOEFAY": try BuiltProgram.twoefay.path,
            ], in: directory.path)
    }

    static func files(_ language: String) throws -> [(name: String, text: String)] {
        try GuidePage.files().filter { $0.language == language }.map { ($0.name, $0.text) }
    }
}

/// The page docs/websites/by-hand.md.
enum GuidePage {
    static let root = #filePath.split(separator: "/").dropLast(5).map { "/\($0)" }.joined()

    /// Returns the blocks that have a file name.
    static func files() throws -> [(language: String, name: String, text: String)] {
        let page = try TextFile.read("\(root)/docs/websites/by-hand.md")
        var files: [(language: String, name: String, text: String)] = []
        var lines = page.split(separator: "\n", omittingEmptySubsequences: false)[...]
        while let line = lines.popFirst() {
            guard line.hasPrefix("```") else { continue }
            let words = line.dropFirst(3).split(separator: " ").map(String.init)
            let code = lines.prefix { $0 != "```" }
            lines = lines.dropFirst(code.count + 1)
            if words.count == 2 { files.append((words[0], words[1], code.joined(separator: "\n") + "\n")) }
        }
        try #require(files.count >= 6, "docs/websites/by-hand.md has lost its code")
        return files
    }
}
