import Bytes
import HTTP
import JSON
import Log
import Relay
import World

/// The relay over HTTP: finds the route, finds out who calls, reads, lets a verb act, and answers.
public final class API: Handler {
    public struct Settings: Sendable {
        /// `https://host:port`, as websites and phones know this installation.
        public var origin: String
        /// How long a request may take that is not held.
        public var deadline: Duration
        /// What browsers subscribe to pushes with; nil where they are not pushed.
        public var applicationServerKey: String?

        public init(origin: String, deadline: Duration = .seconds(10), applicationServerKey: String? = nil) {
            self.applicationServerKey = applicationServerKey
            self.origin = origin
            self.deadline = deadline
        }
    }

    /// After which a caller may try again that had too many requests in work, or held.
    static let quotaPause = Duration.seconds(1)

    /// A larger body never gets here.
    public static let bodyLimit = 64 * 1024

    let settings: Settings
    let relay: Relay
    let dependencies: [Dependency]
    let drawing: any QRDrawing
    let missed = ReadinessLog()
    let sampled = SampledRequests()
    private let turns: WebsiteConcurrencyLimit
    let time: any TimeSource
    private let randomness: any Randomness
    let log: Log
    static let table = RouteTable(
        routes: Health.routes + Enrol.routes + Factors.routes + Addresses.routes + Devices.routes + Ask.routes
            + Decide.routes
            + LoginResults.routes
            + PendingList.routes + PushKeys.routes + OpenAPIDocument.routes)
    /// Of the API, for machines; made once.
    let description: [UInt8]

    public init(
        settings: Settings, relay: Relay, dependencies: [Dependency], drawing: any QRDrawing = ImmediateQRDrawing(),
        time: any TimeSource, randomness: any Randomness, log: Log
    ) {
        self.settings = settings
        self.drawing = drawing
        self.relay = relay
        turns = WebsiteConcurrencyLimit(time: time)
        self.dependencies = dependencies
        self.time = time
        self.randomness = randomness
        self.log = log
        description = JSONWriter.write(OpenAPIDocument.document(of: Self.table.routes, origin: settings.origin))
    }

    public func handle(_ request: Request) -> Reply {
        // Asked more often than everything else, by machines that want nothing but speed: no id, no log.
        if request.path == Health.path, request.method == "GET", request.query == nil, request.body.isEmpty {
            return .now(Health.response)
        }
        switch Self.table.match(request.method, request.path) {
        case .nothing: return refuse(request, route: "none", APIResponse(.notFound))
        case .wrongMethod(let pattern, let allow):
            var problem = Problem(.methodNotAllowed, "This path takes \(allow)")
            problem.allow = allow
            return refuse(request, route: pattern, APIResponse(problem))
        case .route(let route, let places):
            let claim = PresentedIdentity(request, for: route, in: self)
            let form: Form
            do {
                try Self.checkSize(request)
                form = try route.form(for: claim)
            } catch {
                return refuse(request, route: route.path.text, inviting(APIResponse(error), to: claim, on: route))
            }
            let access = access(request, route: route.path.text)
            let inbound = RequestContext(
                api: self, request: request, route: route, pathParameters: places, claim: claim, form: form,
                access: access)
            let (use, subject) = (relay.quotaUse, claim.subject(from: request.remote))
            guard use.begin(subject) else {
                relay.exceeded(.requests, by: claim.website)
                return .now(inbound.refusal(Problem(.limited(retryAfter: Self.quotaPause))))
            }
            return .later(
                deadline: settings.deadline, late: APIResponse(Problem.unavailable).response(to: access.id),
                work: { [turns] in
                    defer { use.end(subject) }
                    guard case .website(let key) = subject else { return await inbound.outcome() }
                    await turns.begin(key)
                    defer { turns.end(key) }
                    // The caller has been told so at the deadline.
                    guard !access.isLate else { return .response(inbound.refusal(.unavailable)) }
                    return await inbound.outcome()
                })
        }
    }

    public func tooLarge() -> Response {
        let access = AccessLogLine(
            id: requestID(), method: nil, route: "none", deadline: settings.deadline, hasCertificate: false,
            sampled: sampled, time: time, log: log)
        access.ended(Problem.tooLarge.code.status)
        return APIResponse(.tooLarge).response(to: access.id)
    }

    private static func checkSize(_ request: Request) throws(Problem) {
        guard request.query == nil else { throw Problem(.malformed, "There are no queries here: nothing follows a ?") }
        guard request.body.count <= bodyLimit else { throw .tooLarge }
    }

    private func refuse(_ request: Request, route: String, _ answer: APIResponse) -> Reply {
        let access = access(request, route: route)
        access.ended(answer.status)
        return .now(answer.response(to: access.id))
    }

    private func access(_ request: Request, route: String) -> AccessLogLine {
        AccessLogLine(
            id: requestID(), method: request.method, route: route, deadline: settings.deadline,
            hasCertificate: request.certificate != nil, sampled: sampled, time: time, log: log)
    }

    private func requestID() -> String { Hex.encode(randomness.bytes(16)) }
}
