import Bytes
import Domain
import HTTP
import Log
import Metrics
import Relay
import World

/// The HTTP API of the relay.
///
/// For each request it finds the route, reads the presented identity and chooses the form for this
/// kind of caller. Then it looks up the caller, reads the body, runs the verb and returns the
/// answer. `RequestContext` does the part that needs the store.
///
/// Invariants: a request is answered or held by the deadline. Each caller has a quota of requests
/// in work. Each answer has a request id, which its line in the access log has too. The only
/// exception is the health check, which has neither.
///
/// Tests: `APITests/RoutingTests.swift`, `BadInputTests.swift`, `QuotaTests.swift` and
/// `IdentityTests.swift`.
public final class API: Handler {
    public struct Settings: Sendable {
        /// The origin `https://host:port` by which websites and phones reach this installation.
        public var origin: String
        /// The origin by which browsers reach the routes of phones; nil if there is no listener for
        /// them.
        public var browserOrigin: String?
        /// The longest time for a request that is not held.
        public var deadline: Duration
        /// The public key with which browsers subscribe to pushes; nil if Web Push is not
        /// configured.
        public var applicationServerKey: String?

        public init(
            origin: String, browserOrigin: String? = nil, deadline: Duration = .seconds(10),
            applicationServerKey: String? = nil
        ) {
            self.applicationServerKey = applicationServerKey
            self.origin = origin
            self.browserOrigin = browserOrigin
            self.deadline = deadline
        }

        /// The origins that a proof of a phone may name.
        var origins: [String] { [origin] + [browserOrigin].compactMap { $0 } }
    }

    /// The `Retry-After` of a caller that has too many requests in work or held.
    static let quotaPause = Duration.seconds(1)

    let settings: Settings
    let relay: Relay
    let dependencies: [Dependency]
    let drawing: any QRDrawing
    let missed = ReadinessLog()
    let sampled = SampledRequests()
    let metrics: RequestMetrics
    private let turns: WebsiteConcurrencyLimit
    let time: any TimeSource
    private let randomness: any Randomness
    let log: Log
    static let table = RouteTable(
        routes: Health.routes + Enrol.routes + Factors.routes + Addresses.routes + Devices.routes
            + Reports.routes + Goodbyes.routes + PhonePINs.routes + PhoneCodes.routes + TaggedCertificates.routes
            + VerifyCode.routes + Ask.routes
            + Decide.routes
            + LoginResults.routes
            + PendingList.routes + PushKeys.routes + Clock.routes + RevocationLists.routes + Notices.routes
            + Accounts.routes
            + Recovery.routes + WebhookSecrets.routes + WebsiteRenewals.routes
            + Documentation.routes)
    let documentation: Documentation

    /// - Parameters:
    ///   - registry: the metrics; a caller that does not read them leaves it out.
    ///   - atTurnEnd: runs work at the end of the loop's turn. It has no default: without it, one
    ///     website's reads could fill a turn.
    public init(
        settings: Settings, relay: Relay, dependencies: [Dependency], drawing: any QRDrawing = ImmediateQRDrawing(),
        time: any TimeSource, randomness: any Randomness, log: Log, registry: Registry = Registry(),
        atTurnEnd: @escaping WebsiteConcurrencyLimit.TurnEnd
    ) {
        self.settings = settings
        metrics = RequestMetrics(Self.table.routes, in: registry)
        self.drawing = drawing
        self.relay = relay
        turns = WebsiteConcurrencyLimit(time: time, atTurnEnd: atTurnEnd)
        self.dependencies = dependencies
        self.time = time
        self.randomness = randomness
        self.log = log
        documentation = Documentation(origin: settings.origin)
    }

    public func handle(_ request: Request) -> Reply { handle(request, in: Self.table) }

    /// Answers a request by the routes of a table.
    func handle(_ request: Request, in table: RouteTable) -> Reply {
        // Health checks are more frequent than all other requests and only need a fast answer, so
        // they get no request id and no log line.
        if request.path == Health.path, request.method == "GET", request.query == nil, request.body.isEmpty {
            return .now(Health.response)
        }
        switch table.match(request.method, request.path) {
        case .nothing: return refuse(request, route: "none", APIResponse(.routeNotFound, to: request.fields))
        case .wrongMethod(let pattern, let allow):
            var problem = Problem(
                .methodNotAllowed, LocalizedText("This path accepts \(allow)", de: "Dieser Pfad nimmt \(allow) an"))
            problem.allow = allow
            return refuse(request, route: pattern, APIResponse(problem, to: request.fields))
        case .route(let route, let places):
            let claim = PresentedIdentity(request, for: route, in: self)
            let form: Form
            do {
                try Self.checkSize(request)
                form = try route.form(for: claim)
            } catch {
                let answer = inviting(APIResponse(error, to: request.fields), to: claim, on: route)
                return refuse(request, route: route.path.text, answer)
            }
            let languages = AcceptLanguage.read(request.fields)
            let access = access(request, route: route.path.text, AcceptLanguage.textLanguage(languages))
            let inbound = RequestContext(
                request: request, pathParameters: places, languages: languages,
                answers: AnswerContext(route: route, form: form, claim: claim, remote: request.remote, access: access))
            let (use, subject) = (relay.quotaUse, claim.subject(from: request.remote))
            guard use.begin(subject) else {
                relay.exceeded(.requests, by: claim.website)
                return .now(inbound.answers.refusal(Problem(.limited(retryAfter: Self.quotaPause))))
            }
            return .later(
                deadline: settings.deadline,
                // It captures this object alone, because requests are held with it.
                late: { access.late() },
                work: { [turns] in
                    defer { use.end(subject) }
                    return await LoggedRequest.run(access.id, trace: access.trace?.trace) {
                        guard case .website(let key) = subject else { return await inbound.outcome() }
                        await turns.begin(key)
                        defer { turns.end(key) }
                        // The caller got an answer at the deadline already.
                        guard !access.isLate else { return .response(inbound.answers.refusal(.unavailable)) }
                        return await inbound.outcome()
                    }
                })
        }
    }

    public func refuse(_ fault: RequestFault, _ fields: Fields, hasCertificate: Bool) -> Response {
        let access = AccessLogLine(
            id: requestID(), method: nil, route: "none", hasCertificate: hasCertificate, of: self)
        access.ended(fault.status)
        return APIResponse(Problem(fault, origin: settings.origin), to: fields).response(to: access.id)
    }

    private static func checkSize(_ request: Request) throws(Problem) {
        guard request.query == nil else {
            throw Problem(
                .malformed,
                LocalizedText(
                    "The relay accepts no query string: remove the ? and what follows it",
                    de: "Das Relay nimmt keinen Query-String an: Entfernen Sie das ? und alles danach"))
        }
        guard request.body.count <= Request.bodyLimit else { throw .tooLarge }
    }

    private func refuse(_ request: Request, route: String, _ answer: APIResponse) -> Reply {
        let access = access(request, route: route)
        access.ended(answer.status)
        return .now(answer.response(to: access.id))
    }

    private func access(
        _ request: Request, route: String, _ language: TextLanguage = .english
    ) -> AccessLogLine {
        AccessLogLine(
            id: requestID(), trace: request.traceParent, method: request.method, route: route,
            hasCertificate: request.certificate != nil, language: language, of: self)
    }

    private func requestID() -> String { Hex.encode(randomness.bytes(16)) }
}
