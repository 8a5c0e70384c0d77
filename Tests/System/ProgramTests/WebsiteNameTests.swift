import Glibc
import JSON
import TestSupport
import Testing

/// Names of websites that look like ids. The tool finds websites by their names alone, and the name of a
/// removed website that was given away is `~` and its id.
@Suite("twoefay website: names", .timeLimit(.minutes(15)), .mayBlock) struct WebsiteNameTests {
    private let installed: Installed

    init() async throws { installed = try await Installed() }

    private func website(_ arguments: String...) async throws -> Child.Ended {
        try await Child.run(
            try BuiltProgram.twoefay.path, ["--config", installed.settings, "--json", "website"] + arguments)
    }

    private func add(_ name: String, _ options: String...) async throws -> Child.Ended {
        let directory = installed.directory("of-\(name)-\(options.count)")
        _ = mkdir(directory, 0o700)
        return try await Child.run(
            try BuiltProgram.twoefay.path,
            ["--config", installed.settings, "--json", "website", "add", name, "--out", directory] + options)
    }

    private func sql(_ query: String) async throws -> String {
        let ended = try await Child.run("sqlite3", [installed.directory("relay/twoefay.db"), query])
        try #require(ended.status == 0, "\(ended.errors)")
        return String(ended.output.dropLast())
    }

    private func states() async throws -> String {
        try await sql(
            "SELECT group_concat(name || ' ' || state, ', ') FROM (SELECT * FROM website ORDER BY created_at)")
    }

    @Test func idFindsTheWebsiteOfThatNameAlone() async throws {
        #expect(try await add("shop").status == 0)
        let id = try await sql("SELECT lower(hex(id)) FROM website")
        try #require(id.utf8.count == 32)
        for name in [id, "~\(id)", "x'\(id)'", id.uppercased()] {
            #expect(try await website("show", name).status == 3, "\(name)")
            #expect(try await website("disable", name).status == 3, "\(name)")
        }
        #expect(try await states() == "shop active")
        // The id is a name like others for a website of its own, and never means shop.
        #expect(try await add(id).status == 0)
        #expect(try await website("show", id).json["website"]?.string == id)
        #expect(try await website("show", "shop").json["website"] == "shop")
        #expect(try await website("disable", id).status == 0)
        #expect(try await states() == "shop active, \(id) disabled")
        let user = try await Child.run(
            try BuiltProgram.twoefay.path, ["--config", installed.settings, "user", "list", "--website", "~\(id)"])
        #expect(user.status == 3, "\(user)")
    }

    @Test func nameOfARemovedWebsiteCannotBeTaken() async throws {
        #expect(try await add("shop").status == 0)
        let id = try await sql("SELECT lower(hex(id)) FROM website")
        for name in ["~\(id)", "~shop", "~"] {
            let refused = try await add(name)
            #expect(refused.status == 2 && refused.errors.contains("NAME must be"), "\(refused)")
        }
        #expect(try await website("disable", "shop").status == 0)
        #expect(try await website("remove", "shop", "--yes").status == 0)
        #expect(try await add("shop", "--reuse-name").status == 0)
        #expect(try await states() == "~\(id) removed, shop active")
        // The old one cannot be changed by its new name, and the new one is not meant by it.
        for words in [["enable", "~\(id)"], ["disable", "~\(id)"], ["remove", "~\(id)", "--yes"]] {
            let ended = try await Child.run(
                try BuiltProgram.twoefay.path, ["--config", installed.settings, "website"] + words)
            #expect(ended.status == 3 && ended.errors.contains("is removed"), "\(words): \(ended)")
        }
        #expect(try await add("~\(id)", "--reuse-name").status == 2)
        #expect(try await states() == "~\(id) removed, shop active")
    }
}
