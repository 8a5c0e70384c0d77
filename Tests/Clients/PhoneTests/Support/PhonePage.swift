import Glibc
import JSON
import TestSupport
import Testing

/// The scripts of the demo's phone, which Node runs unchanged.
struct PhonePage {
    private static let root = #filePath.split(separator: "/").dropLast(5).map { "/\($0)" }.joined()
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        let assets = "\(Self.root)/Sources/Programs/Demo/Pages/Assets"
        let drivers = "\(Self.root)/Tests/Clients/PhoneTests/Page"
        for (from, name) in [assets, drivers].flatMap({ from in TemporaryDirectory.names(in: from).map { (from, $0) } })
        where name.hasSuffix("js") {
            try TextFile.write(try TextFile.bytes("\(from)/\(name)"), to: directory(name))
        }
        // The pages load the scripts as modules. Node needs this setting for it.
        try TextFile.write("{\"type\": \"module\"}", to: directory("package.json"))
    }

    /// Returns the result or the error of each call.
    func answers(_ calls: [JSONObject]) async throws -> [Result<JSONValue, Thrown>] {
        let file = directory("calls.json")
        try TextFile.write(JSONWriter.write(.array(calls.map { .object($0) })), to: file)
        let ended = try await Child.run("node", [directory("driver.mjs"), file])
        try #require(ended.status == 0, "\(ended.errors)")
        let lines = ended.output.split(separator: "\n")
        try #require(lines.count == calls.count, "\(ended.output)\(ended.errors)")
        return try lines.map { line in
            let object = try #require(try JSONReader.read(Array(line.utf8)).object)
            if let error = object["error"]?.string { return .failure(Thrown(message: error)) }
            return .success(object["value"] ?? .null)
        }
    }

    /// Runs a file of tests with Node's test runner.
    func passes(_ file: String) async throws {
        let ended = try await Child.run("node", ["--test", directory(file)])
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
    }

    struct Thrown: Error {
        let message: String
    }
}
