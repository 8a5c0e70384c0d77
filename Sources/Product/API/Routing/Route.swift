import Bytes
import Domain
import Relay

/// A method and path, declared once. Matching, reading, refusals and the OpenAPI description use
/// this declaration. Requests share it by reference, because they pass it on often.
final class Route: Sendable {
    /// The `operationId` of the OpenAPI document, from which generated clients take the names of their
    /// functions. It never changes.
    let name: String
    let method: String
    let path: PathPattern
    let summary: String
    /// The forms, one for each kind of caller, because they may send different parameters.
    let forms: [Form]

    init(_ name: String, _ method: String, _ path: String, _ summary: String, _ forms: Form...) {
        self.name = name
        self.method = method
        self.path = PathPattern(path)
        self.summary = summary
        self.forms = forms
    }

    var isForPhones: Bool {
        forms.contains { if case .phone = $0.action { true } else { false } }
    }

    /// The form for this kind of caller. If there is none, the thrown problem names the reason.
    func form(for claim: PresentedIdentity) throws(Problem) -> Form {
        let own = forms.first { form in
            switch (form.action, claim) {
            case (.website, .website), (.phone, .phone), (.phone, .key): true
            default: false
            }
        }
        if let form = own ?? forms.first(where: \.isForAnyone) { return form }
        switch claim {
        case .nobody where isForPhones:
            throw Problem(
                .unauthenticated,
                LocalizedText(
                    "This route requires a client certificate, or a DPoP proof of a phone",
                    de: "Diese Route erfordert ein Client-Zertifikat oder den DPoP-Nachweis eines Telefons"))
        case .nobody:
            throw Problem(
                .unauthenticated,
                LocalizedText(
                    "This route requires a client certificate", de: "Diese Route erfordert ein Client-Zertifikat"))
        case .unproved(.nonce):
            throw Problem(
                .unauthenticated,
                LocalizedText(
                    "The DPoP proof must contain the nonce from DPoP-Nonce",
                    de: "Der DPoP-Nachweis muss die nonce aus DPoP-Nonce enthalten"))
        case .unproved(.invalid(let why)):
            throw Problem(
                .unauthenticated,
                LocalizedText(
                    "The DPoP proof is invalid: \(why.english)", de: "Der DPoP-Nachweis ist ungültig: \(why.german)"))
        case .unusable: throw .unauthenticated
        case .website:
            throw Problem(
                .forbidden,
                LocalizedText(
                    "This route is for phones, not for websites",
                    de: "Diese Route ist für Telefone, nicht für Websites"))
        case .phone, .key:
            throw Problem(
                .forbidden,
                LocalizedText(
                    "This route is for websites, not for phones",
                    de: "Diese Route ist für Websites, nicht für Telefone"))
        }
    }
}

/// The parameters that one kind of caller sends to a route, and the verb that they lead to.
final class Form: Sendable {
    enum Action: Sendable {
        case anyone(@Sendable (VerbCall) async throws(Refusal) -> VerbOutcome)
        case website(@Sendable (VerbCall, Website) async throws(Refusal) -> VerbOutcome)
        case phone(@Sendable (VerbCall, PhoneCredential) async throws(Refusal) -> VerbOutcome)
    }

    let action: Action
    let parameters: [Parameter]
    /// The parameters of which at least one must be given.
    let oneOf: [String]
    /// Whether only one of them may be given.
    let isExclusive: Bool
    /// Whether this is the original form, in which a website answers for its own users. It is only
    /// for websites whose policy is `answers: website`. Other websites are refused.
    let isOriginal: Bool
    /// Whether the verb can claim an idempotency key with its own change (`IdempotentAnswer`).
    let claimsKeys: Bool
    /// Whether the verb changes nothing. Its answers are never stored under an idempotency key.
    let isSafe: Bool
    /// The answers that are no problems, for the OpenAPI document.
    let answers: [Answer]
    /// The problems that do not follow from the kind of the route, each with a text about the case.
    let problems: KeyValuePairs<Problem.Code, String>

    init(
        _ action: Action, _ parameters: [Parameter] = [], oneOf: [String] = [], isExclusive: Bool = false,
        isOriginal: Bool = false, claimsKeys: Bool = false, isSafe: Bool = false,
        answers: [Answer], problems: KeyValuePairs<Problem.Code, String> = [:]
    ) {
        self.action = action
        self.parameters = parameters
        self.oneOf = oneOf
        self.isExclusive = isExclusive
        self.isOriginal = isOriginal
        self.claimsKeys = claimsKeys
        self.isSafe = isSafe
        self.answers = answers
        self.problems = problems
    }

    var isForAnyone: Bool {
        if case .anyone = action { true } else { false }
    }

    func run(_ call: VerbCall, for caller: Caller) async throws(Refusal) -> VerbOutcome {
        switch (action, caller) {
        case (.anyone(let run), _): try await run(call)
        case (.website(let run), .website(let website)): try await run(call, website)
        case (.phone(let run), .phone(let phone)): try await run(call, phone)
        default: throw .unauthenticated
        }
    }
}

/// The table of all routes.
struct RouteTable: Sendable {
    enum Match: Sendable {
        case route(Route, pathParameters: [String: String])
        case wrongMethod(pattern: String, allow: String)
        case nothing
    }

    let routes: [Route]
    /// The routes whose paths have no parameters, by path. Most requests are for one of them.
    private let fixed: [String: [Route]]

    init(routes: [Route]) {
        self.routes = routes
        fixed = Dictionary(grouping: routes.filter { !$0.path.hasParameters }, by: \.path.text)
    }

    /// Returns the route of a request. A path without parameters takes precedence over a pattern.
    func match(_ method: String, _ path: String) -> Match {
        if let routes = fixed[path], let first = routes.first, first.path.text.hasSameBytes(as: path) {
            if let route = routes.first(where: { $0.method == method }) { return .route(route, pathParameters: [:]) }
            return Self.wrongMethod(among: routes, of: first)
        }
        guard let segments = PathPattern.split(path) else { return .nothing }
        var allowed: [Route] = []
        for route in routes {
            guard let places = route.path.match(segments) else { continue }
            guard route.method == method else {
                allowed.append(route)
                continue
            }
            var decoded: [String: String] = [:]
            for (name, text) in places {
                guard let text = PathPattern.decode(text) else { return .nothing }
                decoded[name] = text
            }
            return .route(route, pathParameters: decoded)
        }
        guard let first = allowed.first else { return .nothing }
        return Self.wrongMethod(among: allowed, of: first)
    }

    private static func wrongMethod(among allowed: [Route], of route: Route) -> Match {
        .wrongMethod(pattern: route.path.text, allow: allowed.map(\.method).sorted().joined(separator: ", "))
    }
}
