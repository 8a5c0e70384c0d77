import Bytes
import Crypto
import Glibc
import JSON
import Synchronization
import TestSupport
import Testing
import World

/// A running relay, its clients, and all secrets that its log must not hold.
final class Fixture: Sendable {
    let relay: RunningRelay
    private let secrets = Mutex<Set<String>>([])

    /// Runs a test on a relay that logs everything. At the end the relay must still be the same process, must stop
    /// when asked, and must not have logged a secret.
    static func run(
        _ kind: StoreKind = .file, change settings: (inout String) throws -> Void = { _ in },
        _ test: (Fixture) async throws -> Void
    ) async throws {
        let relay = try await RunningRelay.start(kind) { text throws in
            try text.set("log.level", to: "debug")
            try settings(&text)
        }
        let fixture = Fixture(relay)
        try await test(fixture)
        let health = try await fixture.nobody.curl("GET", "/health")
        #expect(health.status == 200)
        let ended = await relay.stop()
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.errors.contains("event=daemon.stopped"))
        fixture.expectSilentLog()
    }

    private init(_ relay: RunningRelay) { self.relay = relay }

    var nobody: APIClient { APIClient(caller: relay.caller(), fixture: self) }

    /// - Parameter answers: the policy `answers`, unless `policies` has it; nil for the default.
    func website(
        _ name: String, _ policies: [String] = [], answers: String? = "certificate"
    ) async throws -> APIClient {
        var policies = policies
        if let answers, !policies.contains("--answers") { policies += ["--answers", answers] }
        try await relay.tool(["website", "add", name, "--out", relay.directory.path] + policies)
        record(pem: try TextFile.read(relay.directory("\(name).key")))
        return APIClient(
            caller: relay.caller(
                certificatePath: relay.directory("\(name).pem"), keyPath: relay.directory("\(name).key")), fixture: self
        )
    }

    /// Returns a client with this certificate and key.
    func holder(_ name: String, _ certificate: [UInt8], _ key: P256PrivateKey) throws -> APIClient {
        let pem = String(decoding: try key.pem().reveal(), as: UTF8.self)
        record(pem: pem)
        return APIClient(
            caller: try relay.caller(name, certificate: String(decoding: certificate, as: UTF8.self), key: pem),
            fixture: self)
    }

    /// Returns an authority of the installation: "ca", "website-ca" or "device-ca".
    func authority(_ name: String) throws -> CertificateAuthority {
        try CertificateAuthority(
            certificatePEM: try TextFile.bytes(relay.file("\(name).pem")),
            keyPEM: Secret(try TextFile.bytes(relay.file("\(name).key"))))
    }

    // MARK: Secrets

    func record(_ text: String?) {
        // Shorter texts occur by chance.
        guard let text, text.utf8.count >= 4 else { return }
        _ = secrets.withLock { $0.insert(text) }
    }

    /// Keeps every line of a PEM text as a secret.
    func record(pem: String) {
        for line in pem.split(separator: "\n") where !line.hasPrefix("---") { record(String(line)) }
    }

    private static let secretNames: Set<String> = [
        "token", "id_token", "dev_token", "activation_code", "code", "uri", "proof", "binding", "revocation_code",
        "email", "phone", "otp", "details", "value", "label", "secret", "user_agent", "ip", "username",
    ]

    /// Keeps the values in a body whose names are those of secrets.
    func record(_ value: JSONValue?, under name: String? = nil) {
        switch value {
        case .string(let text):
            // Answers use "proof" and "code" for other values, too, such as "website" and "invalid".
            guard let name, Self.secretNames.contains(name), !["proof", "code"].contains(name) || text.utf8.count > 20
            else { return }
            record(text)
        case .array(let values): for value in values { record(value, under: name) }
        case .object(let object): for member in object.members { record(member.value, under: member.name) }
        default: break
        }
    }

    var kept: Set<String> { secrets.withLock { $0 } }

    private static func isOfAWord(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        default: false
        }
    }

    private func expectSilentLog() {
        let log = relay.log
        let saysSomething = log.contains("event=request") || log.contains("event=connection.failed")
        #expect(saysSomething, "a log that says nothing proves nothing")
        let numbers = Set(log.utf8.split { !Self.isOfAWord($0) }.filter { $0.count < 10 }.map { String($0) })
        for secret in kept {
            // Six digits of a code occur by chance in many ids.
            let isCode = secret.utf8.count < 10 && secret.utf8.allSatisfy { (0x30...0x39).contains($0) }
            let isHeld = isCode ? numbers.contains(secret) : log.contains(secret)
            #expect(!isHeld, "the log holds \(secret)")
        }
        for key in ["website-ca.key", "device-ca.key", "server.key", "master.key"] {
            let text = (try? TextFile.read(relay.file(key))) ?? ""
            #expect(!text.isEmpty)
            for line in text.split(separator: "\n") where !line.hasPrefix("---") {
                let isHeld = log.contains(line)
                #expect(!isHeld, "the log holds a line of \(key)")
            }
        }
    }
}

/// A client whose requests and answers are kept for the search in the log.
struct APIClient: Sendable {
    var caller: CurlCaller
    let fixture: Fixture

    @discardableResult func curl(
        _ method: String, _ path: String, _ json: JSONObject? = nil, raw: String? = nil, fields: [String: String] = [:],
        arguments: [String] = []
    ) async throws -> CurlCaller.Answer {
        let child = try begin(method, path, json, raw: raw, fields: fields, arguments: arguments)
        return try await end(child)
    }

    func begin(
        _ method: String, _ path: String, _ json: JSONObject? = nil, raw: String? = nil, fields: [String: String] = [:],
        arguments: [String] = []
    ) throws -> Child {
        fixture.record(json.map { .object($0) })
        fixture.record(fields["token"])
        return try caller.child(
            method, path, json: raw ?? json.map { JSONWriter.text(.object($0)) }, fields: fields, arguments: arguments)
    }

    func end(_ child: Child) async throws -> CurlCaller.Answer {
        let answer = try await CurlCaller.read(child)
        fixture.record(answer.json)
        return answer
    }

    /// Registers a user, and returns the values that the first phone needs.
    func register(_ username: String) async throws -> (token: String, code: String) {
        let answer = try await curl("POST", "/register", ["username": .string(username)])
        #expect(answer.status == 201, "\(answer)")
        let code = answer["activation"]?.object?["code"]?.string
        return (try #require(answer["token"]?.string), try #require(code))
    }

    /// The exit statuses of curl for a broken connection. They depend on when it noticed: in the handshake, while
    /// sending or receiving, or within HTTP/2. 60 means a certificate: the server's, or the client's if the
    /// server's alert says that it has expired.
    static let broken: Set<Int32> = [16, 18, 35, 52, 55, 56, 60, 92]

    /// Returns curl's exit status; 0 if there was an answer.
    func refusal(_ method: String, _ path: String, arguments: [String] = []) async throws -> Int32 {
        do {
            _ = try await curl(method, path, arguments: arguments)
            return 0
        } catch let failure as CurlCaller.Failed {
            return failure.status
        }
    }
}

extension CurlCaller.Answer {
    /// The parameter and code of each error, as in "email format".
    var faults: [String] {
        self["errors"]?.array?.compactMap { fault in
            guard let fault = fault.object else { return nil }
            return "\(fault["parameter"]?.string ?? "?") \(fault["code"]?.string ?? "?")"
        } ?? []
    }

    var isProblem: Bool {
        field("content-type") == "application/problem+json" && self["status"]?.integer == Int64(status)
            && self["detail"]?.string?.isEmpty == false
    }

    /// Everything that a client can see, without the values that differ each time.
    var comparable: String {
        let fields = lines.filter { !["date", "request-id"].contains($0.name) }
        return ([String(status)] + fields.map { "\($0.name): \($0.value)" } + [text]).joined(separator: "\n")
    }
}
