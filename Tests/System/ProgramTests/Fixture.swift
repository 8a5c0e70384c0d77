import Bytes
import Crypto
import JSON
import Log
import Storage
import TestSupport
import Testing
import World

/// A running relay with one website, and the operator's tool.
struct Fixture {
    typealias Enrolment = (token: String, code: String)

    let relay: RunningRelay
    let shop: CurlCaller

    /// Creates the relay. Phones authenticate with certificates, which shows most directly whether
    /// one is known.
    ///
    /// - Parameters:
    ///   - tables: the tables of an earlier package, in the place of the present ones.
    ///   - settings: changes the text of the settings.
    init(
        _ kind: StoreKind, tables: Int64? = nil, change settings: (inout String) throws -> Void = { _ in }
    ) async throws {
        relay = try await RunningRelay.start(kind, tables: tables, change: settings)
        shop = try await relay.website("shop", "--answers", "certificate")
    }

    // MARK: The operator

    func tool(_ arguments: [String]) async throws -> Child.Ended {
        try await Child.run(try BuiltProgram.twoefay.path, ["--config", relay.settings] + arguments)
    }

    /// Returns the output of a successful command with --json.
    func json(_ arguments: String...) async throws -> JSONObject {
        let ended = try await tool(arguments + ["--json"])
        try #require(ended.status == 0, "\(ended.errors)")
        return try ended.json
    }

    func refused(
        _ arguments: [String], _ status: Int32, _ message: String, at place: SourceLocation = #_sourceLocation
    ) async throws {
        let ended = try await tool(arguments)
        #expect(ended.status == status && ended.errors.contains(message), "\(ended.errors)", sourceLocation: place)
    }

    /// Returns the number of such audit rows.
    func trail(_ event: String, outcome: String, device: String? = nil) throws -> Int64 {
        let ofDevice = device.map { " AND device = '\($0)'" } ?? ""
        return try relay.count(
            "SELECT count(*) FROM AuditTrail WHERE event = '\(event)' AND outcome = '\(outcome)'" + ofDevice)
    }

    /// Executes SQL in the store of an installation without a relay.
    static func execute(_ sql: String, in installed: Installed) throws {
        try RunningRelay.execute(
            sql, at: .sqlite(path: installed.directory("relay/twoefay.db")), settings: installed.settings)
    }

    // MARK: The website

    func registered(_ username: String, email: String? = nil) async throws -> Enrolment {
        let email = email ?? "\(username)@example.com"
        let answer = try await shop.curl(
            "POST", "/register", json: #"{"username":"\#(username)","email":"\#(email)"}"#)
        try #require(answer.status == 201, "\(answer)")
        return (
            try #require(answer["token"]?.string), try #require(answer["activation"]?.object?["code"]?.string)
        )
    }

    func login(_ username: String) async throws -> String {
        let asked = try await shop.curl("POST", "/login", json: #"{"username":"\#(username)"}"#)
        return try #require(asked["challenge"]?.string, "\(asked)")
    }

    func result(_ challenge: String) async throws -> CurlCaller.Answer {
        try await shop.curl("POST", "/auth", json: #"{"challenge":"\#(challenge)"}"#)
    }

    // MARK: Phones

    struct Phone {
        let device: String
        let key: P256PrivateKey
        fileprivate let caller: CurlCaller

        /// The certificate that the phone got when it was bound.
        var certificate: Certificate {
            get throws { try Certificate(pem: try TextFile.bytes(caller.certificatePath ?? "")) }
        }

        /// Whether the relay accepts the phone's certificate. The requested challenge does not
        /// exist in either case.
        func isKnown() async throws -> Bool {
            let answer = try await answered(again: 2)
            try #require([401, 404].contains(answer.status), "\(answer)")
            return answer.status == 404
        }

        /// Repeats the request like every client whose connection ends without an answer. Once for
        /// each suspension and revocation, the relay ends the phone's connections, also a newer
        /// one.
        private func answered(again: Int) async throws -> CurlCaller.Answer {
            do {
                return try await caller.curl(
                    "POST", "/success", json: #"{"challenge":"\#(String(repeating: "0", count: 32))"}"#)
            } catch let failed as CurlCaller.Failed where again > 0 && Self.connectionEnded.contains(failed.status) {
                return try await answered(again: again - 1)
            }
        }

        /// The exit statuses of curl: an error of HTTP/2, no answer, no more data.
        private static let connectionEnded: [Int32] = [16, 52, 56]
    }

    func bind(_ enrolment: Enrolment) async throws -> Phone {
        let phone = try TestPhone(pushToken: "abcdef0123456789")
        let answer = try await verify(enrolment, phone)
        try #require(answer["login"] == "verified", "\(answer)")
        let device = try #require(answer["device"]?.string)
        let caller = try relay.caller(
            device, certificate: try #require(answer["certificate"]?.string),
            key: String(decoding: try phone.key.pem().reveal(), as: UTF8.self))
        return Phone(device: device, key: phone.key, caller: caller)
    }

    func verify(_ enrolment: Enrolment, _ phone: TestPhone) async throws -> CurlCaller.Answer {
        let proof = try phone.proof(
            token: enrolment.token, code: enrolment.code, origin: relay.origin, website: "shop",
            at: SystemTime().now())
        let body: JSONObject = [
            "id_token": .string(enrolment.token), "dev_token": .string(phone.pushToken),
            "activation_code": .string(enrolment.code), "proof": .string(proof), "platform": "ios",
        ]
        return try await relay.caller().curl("POST", "/verify", json: JSONWriter.text(.object(body)))
    }
}
