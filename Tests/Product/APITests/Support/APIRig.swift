import API
import Crypto
import Domain
import EventLoop
import HTTP
import JSON
import Log
import Relay
import Storage
import TestSupport
import World

/// The API over a real relay and a real store. Requests are values, which run on the relay's loop
/// as in a connection.
final class APIRig: Sendable {
    /// The origin of the listener for browsers.
    static let browserOrigin = "https://phone.example.com"

    let relay: RelayRig
    let api: API

    /// - Parameters:
    ///   - kind: the kind of store; by default in memory, or a file if statements are recorded.
    ///   - statements: records the statements that the API makes the store run.
    init(
        dependencies: [Dependency] = [], deadline: Duration = .seconds(10), _ kind: StoreKind? = nil,
        noting statements: Statements? = nil, quotas: Quotas = Quotas(), browsers: BrowserAccess? = nil
    ) async throws {
        let store = try await (kind ?? (statements == nil ? StoreKind.memory : .file)).lent()
        let rig = try await RelayRig(over: store, time: TestTime(), quotas: quotas, browsers: browsers)
        relay = rig
        api = API(
            settings: API.Settings(
                origin: RelayRig.origin, browserOrigin: Self.browserOrigin, deadline: deadline),
            relay: try statements.map { try rig.relay(over: $0.store(at: store.url)) } ?? rig.relay,
            dependencies: dependencies, time: relay.time, randomness: SystemRandomness(),
            log: Log(minimum: .info, time: relay.time, sink: relay.sink), registry: rig.registry,
            atTurnEnd: { $0() })
    }

    /// Another relay over the same store.
    init(beside other: APIRig) async throws {
        relay = try await RelayRig(beside: other.relay)
        api = Self.api(over: relay.relay, relay)
    }

    /// Returns another relay over the same store, whose store fails for the statements that
    /// `isAway` selects.
    func beside(isAway: @escaping @Sendable (String) -> Bool) throws -> APIRig {
        let store = try Store.watched(at: relay.url, rows: RelayRig.rowAuthenticator()) {
            (steps, session) throws(SessionFailure) in
            if steps.contains(where: { isAway($0.statement.sql) }) { throw .refused("away") }
            return try session.run(steps)
        }
        return APIRig(relay, Self.api(over: try relay.relay(over: store), relay))
    }

    /// Returns another relay over the same store, with another receiver of webhooks.
    func beside(webhooks: any WebhookCourier) throws -> (rig: APIRig, relay: Relay) {
        let other = try relay.relay(over: relay.store, webhooks: webhooks)
        return (APIRig(relay, Self.api(over: other, relay)), other)
    }

    private init(_ relay: RelayRig, _ api: API) {
        self.relay = relay
        self.api = api
    }

    private static func api(over relay: Relay, _ rig: RelayRig) -> API {
        API(
            settings: API.Settings(origin: RelayRig.origin), relay: relay, dependencies: [], time: rig.time,
            randomness: SystemRandomness(), log: Log(minimum: .info, time: rig.time, sink: rig.sink),
            atTurnEnd: { $0() })
    }

    func site(
        _ name: String, _ policies: [String: String] = [:], webhook: String? = nil
    ) async throws -> Site {
        _ = try await relay.website(name, policies: policies, webhook: webhook)
        return Site(rig: self, certificate: .website(name))
    }

    /// A caller without a certificate.
    var stranger: Site { Site(rig: self, certificate: nil) }

    /// Starts the request, and returns when it is answered or held. Its answer must be as the
    /// OpenAPI document declares it.
    func start(_ request: Request) async -> Outcome {
        let outcome = await relay.loop.perform { [api] in
            switch api.handle(request) {
            case .now(let response): Outcome.response(response)
            case .later(_, _, let work): await work()
            }
        }
        return DeclaredAnswers.checked(outcome, of: request)
    }

    /// Sends the request, and returns its answer. A held request is answered when it is woken.
    func send(_ request: Request) async -> Response {
        switch await start(request) {
        case .response(let response): response
        case .held(let hold): await end(hold)
        }
    }

    /// Waits until the held request is woken, and returns its answer.
    func end(_ hold: Hold) async -> Response {
        switch await wake(hold) {
        case .response(let response): response
        case .held(let hold): await end(hold)
        }
    }

    /// Waits until the held request is woken, and returns the outcome.
    func wake(_ hold: Hold) async -> Outcome {
        await withCheckedContinuation { continuation in hold.wait.arm { continuation.resume() } }
        return await relay.loop.perform { await hold.finish() }
    }

    /// Ends the wait, as a connection does when the time is over.
    func giveUp(_ hold: Hold) async -> Response {
        hold.wait.cancel()
        return switch await relay.loop.perform({ await hold.finish() }) {
        case .response(let response): response
        case .held(let hold): await giveUp(hold)
        }
    }
}

/// A caller with its certificate.
struct Site: Sendable {
    let rig: APIRig
    let certificate: ClientCertificate?

    func request(
        _ method: String, _ path: String, _ body: JSONObject? = nil, fields: [(String, String)] = []
    ) -> Request {
        var all = Fields()
        if body != nil { all.add("content-type", "application/json") }
        for (name, value) in fields { all.add(name, value) }
        return Request(
            method: method, path: path, fields: all, body: body.map { JSONWriter.write($0) } ?? [],
            certificate: certificate)
    }

    func send(
        _ method: String, _ path: String, _ body: JSONObject? = nil, fields: [(String, String)] = []
    ) async -> Response {
        await rig.send(request(method, path, body, fields: fields))
    }

    /// Posts a body of raw bytes.
    func post(_ path: String, raw: [UInt8], type: String? = "application/json") async -> Response {
        var fields = Fields()
        if let type { fields.add("content-type", type) }
        return await rig.send(
            Request(method: "POST", path: path, fields: fields, body: raw, certificate: certificate))
    }

    func register(_ username: String) async throws -> (token: String, code: String) {
        let response = await send("POST", "/register", ["username": .string(username)])
        guard let token = response["token"]?.string, let code = response["activation"]?.object?["code"]?.string else {
            throw RigFailure("register answered \(response.status) \(response.text)")
        }
        return (token, code)
    }

    /// Registers a user and binds a phone that proved its key.
    func enrol(_ username: String) async throws -> (token: String, phone: Site) {
        let (token, code) = try await register(username)
        let phone = try TestPhone(pushToken: "push-of-\(token)")
        let name = certificate?.uris.first.map { String($0.dropFirst("twoefay:website:".count)) } ?? ""
        let proof = try phone.proof(
            token: token, code: code, origin: RelayRig.origin, website: name, at: rig.relay.time.now())
        let response = await rig.stranger.send(
            "POST", "/verify",
            [
                "id_token": .string(token), "dev_token": .string(phone.pushToken), "activation_code": .string(code),
                "proof": .string(proof), "platform": "ios",
            ])
        guard let id = response["device"]?.string.flatMap({ DeviceID($0) }) else {
            throw RigFailure("verify answered \(response.status) \(response.text)")
        }
        return (token, Site(rig: rig, certificate: phone.certificate(device: id)))
    }

    /// Starts a login, and returns its challenge and number.
    func login(_ username: String) async throws -> (challenge: String, number: String?) {
        let response = await send("POST", "/login", ["username": .string(username)])
        guard let challenge = response["challenge"]?.string else {
            throw RigFailure("login answered \(response.status) \(response.text)")
        }
        return (challenge, response["number"]?.string)
    }
}

extension ClientCertificate {
    /// Returns the certificate that `RelayRig.website` registers, as TLS reports it.
    static func website(_ name: String) -> ClientCertificate {
        ClientCertificate(
            authority: .websites, uris: ["twoefay:website:\(name)"],
            keyThumbprint: SHA256.hash(Array(name.utf8)))
    }
}

extension Response {
    var text: String { String(decoding: body, as: UTF8.self) }
    var json: JSONObject { (try? JSONReader.read(body))?.object ?? [:] }
    subscript(name: String) -> JSONValue? { json[name] }
    var code: String? { self["code"]?.string }

    /// The reported faults, as `parameter code`.
    var faults: [String] {
        (self["errors"]?.array ?? []).map {
            "\($0.object?["parameter"]?.string ?? "") \($0.object?["code"]?.string ?? "")"
        }
    }

    /// The answer without the field that differs between any two answers.
    var withoutID: Response {
        Response(status: status, fields: Fields(fields.all.filter { $0.name != "request-id" }), body: body)
    }
}
