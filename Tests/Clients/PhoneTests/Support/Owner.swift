import Crypto
import Glibc
import JSON
import TestSupport
import Testing

@testable import Phone

/// A person with a directory of enrolments who runs the real `twoefay phone`.
struct Owner {
    let directory: TemporaryDirectory
    var keys: String { directory("keys") }

    init() throws { directory = try TemporaryDirectory() }

    /// - Parameter locale: the variables of the locale. By default the program does not see those of the machine.
    func begin(
        _ arguments: [String], locale: [String: String] = ["LC_ALL": "C"], input: Int32? = nil
    ) throws -> Child {
        try Child(
            try BuiltProgram.twoefay.path, ["phone"] + arguments,
            environment: locale.merging(["XDG_DATA_HOME": directory.path]) { $1 }, input: input)
    }

    /// - Parameter input: the text for standard input.
    func phone(_ arguments: String..., input: String = "") async throws -> Child.Ended {
        let pipe = try Input.pipe()
        pipe.write(input)
        pipe.end()
        return try await begin(arguments + ["--keys", keys], input: pipe.child).ended()
    }

    var names: [String] { TemporaryDirectory.names(in: keys) }

    /// Returns the stored enrolment of the only phone.
    func kept() throws -> Enrolment {
        try #require(names.count == 1, "\(names)")
        return try Enrolment(kept: try TextFile.bytes("\(keys)/\(names[0])"))
    }

    func save(_ enrolment: Enrolment) throws {
        mkdir(keys, 0o700)
        try TextFile.write(
            JSONWriter.write(try enrolment.json()), to: "\(keys)/\(enrolment.thumbprint).json")
    }
}

extension Child.Ended {
    /// The JSON objects on standard output, one a line.
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
