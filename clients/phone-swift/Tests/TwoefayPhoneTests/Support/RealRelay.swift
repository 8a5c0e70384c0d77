import Foundation
import LinuxPhone
import Testing
import TwoefayPhone

/// The relay that `clients/phone-swift/test` has started, with the programs of an operator.
struct RealRelay {
    struct Ended {
        let status: Int32
        let output: String
        let errors: String
    }

    let programs: URL
    let directory: URL

    init() throws {
        let variables = ProcessInfo.processInfo.environment
        programs = URL(filePath: try #require(variables["TWOEFAY_PROGRAMS"], "run clients/phone-swift/test"))
        directory = URL(filePath: try #require(variables["TWOEFAY_PHONE_RELAY"], "run clients/phone-swift/test"))
    }

    static func run(_ program: String, _ arguments: [String], in directory: URL) throws -> Ended {
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        process.currentDirectoryURL = directory
        // Files, because a full pipe would stop the program.
        let files = try (0..<2).map { _ in
            let file = FileManager.default.temporaryDirectory.appending(path: "phone-\(UUID().uuidString)")
            try Data().write(to: file)
            return file
        }
        defer { for file in files { try? FileManager.default.removeItem(at: file) } }
        process.standardOutput = try FileHandle(forWritingTo: files[0])
        process.standardError = try FileHandle(forWritingTo: files[1])
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        let texts = try files.map { try String(contentsOf: $0, encoding: .utf8) }
        return Ended(status: process.terminationStatus, output: texts[0], errors: texts[1])
    }

    /// Runs a command of the operator.
    @discardableResult func operate(_ arguments: String...) throws -> String {
        let ended = try Self.run(
            programs.appending(path: "twoefay").path, ["--config", "relay/twoefay.yaml"] + arguments, in: directory)
        try #require(ended.status == 0, "\(arguments): \(ended.output)\(ended.errors)")
        return ended.output
    }

    /// Adds a website with a name of its own, which only this test uses.
    func website(_ policies: String...) throws -> Website {
        let name = "w" + UUID().uuidString.lowercased().prefix(12)
        let ended = try Self.run(
            programs.appending(path: "twoefay").path,
            ["--config", "relay/twoefay.yaml", "website", "add", name, "--display-name", "The Shop"] + policies,
            in: directory)
        try #require(ended.status == 0, "\(ended.errors)")
        let port = try String(contentsOf: directory.appending(path: "port"), encoding: .utf8)
        return Website(relay: self, name: name, origin: "https://localhost:\(port)")
    }
}

/// A website, which calls the relay by the program curl with its certificate.
struct Website {
    let relay: RealRelay
    let name: String
    let origin: String

    struct Reply {
        let status: Int
        let body: JSONObject

        subscript(_ name: String) -> JSONValue? { body[name] }
    }

    func call(
        _ method: String, _ path: String, _ body: JSONObject? = nil, fields: [String] = []
    ) throws -> Reply {
        var arguments = [
            "--silent", "--show-error", "--cacert", "relay/ca.pem", "--cert", "\(name).pem", "--key", "\(name).key",
            "--request", method, "--write-out", "\n%{http_code}", origin + path,
        ]
        if let body { arguments += ["--header", "content-type: application/json", "--data-binary", body.text] }
        for field in fields { arguments += ["--header", field] }
        let ended = try RealRelay.run("/usr/bin/curl", arguments, in: relay.directory)
        try #require(ended.status == 0, "\(ended.errors)")
        let end = try #require(ended.output.lastIndex(of: "\n"))
        let text = ended.output[..<end]
        return Reply(
            status: try #require(Int(ended.output[ended.output.index(after: end)...])),
            body: text.isEmpty ? [:] : try #require(JSONReader.object(Array(text.utf8)), "\(text)"))
    }

    /// The activation for a new user, and that of a further phone for one that exists.
    func register(_ user: String = "alice", _ more: JSONObject = [:]) throws -> Activation {
        var body: JSONObject = ["username": .string(user)]
        for member in more.members { body[member.name] = member.value }
        let reply = try call("POST", "/register", body)
        return try Activation(try #require(reply["activation"]?.object?["uri"]?.string, "\(reply)"))
    }

    struct Login {
        let challenge: String
        let number: String?
    }

    func logIn(_ user: String = "alice", _ more: JSONObject = [:]) throws -> Login {
        var body: JSONObject = ["username": .string(user), "service": "members", "ip": "192.0.2.7"]
        for member in more.members { body[member.name] = member.value }
        let reply = try call("POST", "/login", body)
        return Login(
            challenge: try #require(reply["challenge"]?.string, "\(reply)"), number: reply["number"]?.string)
    }

    /// The result, the reason and the proof, when the challenge has ended.
    func result(_ login: Login) throws -> [String?] {
        let reply = try call(
            "POST", "/auth", ["challenge": .string(login.challenge)], fields: ["prefer: wait=20"])
        return [reply["login"]?.string, reply["reason"]?.string, reply["proof"]?.string]
    }

    /// The first phone of a user, as the website sees it.
    func phones(_ user: String = "alice") throws -> [JSONObject] {
        (try call("GET", "/user/\(user)")["devices"]?.array ?? []).compactMap(\.object)
    }
}

/// The app of a test: storage in memory, keys in memory, requests over libcurl.
struct App {
    let storage = MemoryStorage()
    let clock: SetClock
    var parts: PhoneParts

    init(clock: SetClock = SetClock(), transport: (any Transport)? = nil) {
        self.clock = clock
        parts = PhoneParts(
            cryptography: OpenSSLCryptography(), keys: SoftwareKeys(),
            transport: transport ?? CurlTransport(clock: clock), storage: storage)
        parts.clock = clock
    }

    /// Binds a phone, which needs no approval.
    func enrol(_ activation: Activation, _ options: EnrolmentOptions = EnrolmentOptions()) async throws -> Phone {
        let phone = try Phone.begin(activation, options, parts)
        _ = try await phone.enrol()
        return phone
    }

    /// The phone as it is after a restart of the app.
    func restarted(_ phone: Phone) async throws -> Phone {
        try Phone(try Enrolment(stored: try #require(storage.stored[await phone.enrolment.id])), parts)
    }
}
