import Crypto
import Glibc
import JSON
import TestSupport
import Testing

@testable import Phone

/// Somebody with a directory of enrolments, who runs `twoefay phone` as it was built.
struct Owner {
    let directory: TemporaryDirectory
    var keys: String { directory("keys") }

    init() throws { directory = try TemporaryDirectory() }

    func begin(_ arguments: [String], input: Int32? = nil) throws -> Child {
        try Child(
            try BuiltProgram.twoefay.path, ["phone"] + arguments, environment: ["XDG_DATA_HOME": directory.path],
            input: input)
    }

    /// - Parameter input: what is written on its standard input.
    func phone(_ arguments: String..., input: String = "") async throws -> Child.Ended {
        let pipe = try Input.pipe()
        pipe.write(input)
        pipe.end()
        return try await begin(arguments + ["--keys", keys], input: pipe.child).ended()
    }

    var names: [String] { TemporaryDirectory.names(in: keys) }

    /// What is kept of its one phone.
    func kept() throws -> Enrolment {
        try #require(names.count == 1, "\(names)")
        return try Enrolment(kept: try TextFile.bytes("\(keys)/\(names[0])"))
    }

    func keep(_ enrolment: Enrolment) throws {
        mkdir(keys, 0o700)
        try TextFile.write(
            JSONWriter.write(try enrolment.json()), to: "\(keys)/\(enrolment.thumbprint).json")
    }
}

extension Child.Ended {
    /// One value for each line of standard output.
    var events: [JSONObject] {
        get throws {
            try output.split(separator: "\n").map { try #require(try JSONReader.read(Array($0.utf8)).object) }
        }
    }

    /// The message of a failure under `--json`.
    var failure: String? {
        (try? JSONReader.read(Array(errors.utf8)))?.object?["error"]?.object?["message"]?.string
    }
}
