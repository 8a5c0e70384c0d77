import JSON
import TestSupport
import Testing

extension Child.Ended {
    /// The output of `--json`, one value on one line.
    var json: JSONObject {
        get throws {
            let line = status == 0 ? output : errors
            try #require(line.hasSuffix("\n") && line.dropLast().contains("\n") == false, "not one line: \(line)")
            return try #require(try JSONReader.read(Array(line.utf8)).object)
        }
    }
}

/// An installation in a separate directory.
struct Installed {
    let directory: TemporaryDirectory
    var settings: String { directory("relay/twoefay.yaml") }

    init(_ arguments: String...) async throws {
        directory = try TemporaryDirectory()
        let made = try await Child.run(
            try BuiltProgram.twoefay.path, ["init", directory("relay")] + arguments)
        try #require(made.status == 0, "\(made.errors)")
    }

    /// Runs a command of the tool that succeeds, and returns its JSON.
    func tool(_ arguments: String...) async throws -> JSONObject {
        let ended = try await Child.run(
            try BuiltProgram.twoefay.path, ["--config", settings, "--json"] + arguments)
        try #require(ended.status == 0, "\(ended.errors)")
        return try ended.json
    }
}

func text(_ path: String) throws -> String { try TextFile.read(path) }
