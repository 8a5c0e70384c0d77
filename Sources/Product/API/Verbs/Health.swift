import Domain
import HTTP
import JSON
import Log
import Relay
import Synchronization

/// A dependency without which the relay cannot serve, with the name that `/ready` shows.
public struct Dependency: Sendable {
    public let name: String
    /// Checks the dependency; returns nil if it is there, and the reason otherwise. The reason goes
    /// to the log and never into the answer.
    public let fault: @Sendable () async -> String?
    /// Whether the dependency is needed now.
    public let isNeeded: @Sendable () -> Bool
    /// Whether the relay can serve without it. Then it is shown as missing, and the relay is ready
    /// all the same.
    public let isAdvisory: Bool

    public init(
        _ name: String, isAdvisory: Bool = false, isNeeded: @escaping @Sendable () -> Bool = { true },
        fault: @escaping @Sendable () async -> String?
    ) {
        self.name = name
        self.isNeeded = isNeeded
        self.isAdvisory = isAdvisory
        self.fault = fault
    }
}

/// The dependencies that were missing at the last check. Checks come every second, so only changes
/// are logged.
final class ReadinessLog: Sendable {
    private let names = Mutex<Set<String>>([])

    /// Records the state of a dependency; returns whether it has changed.
    func logChange(_ name: String, isMissing: Bool) -> Bool {
        names.withLock { isMissing ? $0.insert(name).inserted : $0.remove(name) != nil }
    }
}

/// Liveness and readiness.
enum Health {
    static let routes = [
        Route(
            "showHealth", "GET", path, "Reports that the process is alive",
            Form(.anyone(alive), answers: [Answer(200, "It is alive", .object(["status": .words(["alive"])]))])),
        Route(
            "showReadiness", "GET", readyPath, "Reports whether all required dependencies are available",
            Form(
                .anyone(ready), answers: [Answer(200, "All are there", readiness)],
                problems: [.unavailable: "a required dependency is missing; dependencies shows which"])),
        Route(
            "showReadinessOf", "GET", readyOfOnePath, "Reports whether one dependency is available",
            Form(
                .anyone(readyOfOne), answers: [Answer(200, "It is there", readiness)],
                problems: [
                    .notFound: "no dependency has this name", .unavailable: "the dependency is missing",
                ])),
    ]

    private static let readiness = Shape.object([
        "status": .words(["ready"]), "dependencies": .dependencies,
    ]).named("Readiness")

    static let path = "/health"
    private static let readyPath = "/ready"
    private static let readyOfOnePath = "/ready/{dependency}"
    private static let body: JSONObject = ["status": "alive"]

    /// The answer of `/health`, built once because it is requested often and never changes.
    static let response = Response(
        status: 200, fields: Fields([APIResponse.json, APIResponse.noStore]), body: JSONWriter.write(body))

    /// Whether the route is a health check. Machines request these every second, so only changes
    /// are logged at level info and above.
    static func isCheck(_ route: String) -> Bool { [path, readyPath, readyOfOnePath].contains(route) }

    @Sendable static func alive(_ call: VerbCall) async throws(Refusal) -> VerbOutcome {
        .answer(APIResponse(200, body))
    }

    @Sendable static func ready(_ call: VerbCall) async throws(Refusal) -> VerbOutcome {
        await look(at: call.api.dependencies.filter { $0.isNeeded() }, call)
    }

    @Sendable static func readyOfOne(_ call: VerbCall) async throws(Refusal) -> VerbOutcome {
        let name = try call.place("dependency")
        let meant = call.api.dependencies.filter { $0.name == name && $0.isNeeded() }
        guard !meant.isEmpty else { throw .notFound }
        return await look(at: meant, call)
    }

    private static func look(at needed: [Dependency], _ call: VerbCall) async -> VerbOutcome {
        var dependencies = JSONObject()
        var missing: [String] = []
        for dependency in needed {
            let trouble = await dependency.fault()
            let isChanged = call.api.missed.logChange(dependency.name, isMissing: trouble != nil)
            dependencies.set(dependency.name, .string(trouble == nil ? "ok" : "missing"))
            if let trouble {
                if !dependency.isAdvisory { missing.append(dependency.name) }
                if isChanged { call.api.log.warning("ready.missing", [.name: dependency.name, .reason: trouble]) }
            } else if isChanged {
                call.api.log.notice("ready.back", [.name: dependency.name])
            }
        }
        guard missing.isEmpty else {
            var problem = Problem(
                .unavailable,
                LocalizedText(
                    "Missing: \(missing.joined(separator: ", "))", de: "Es fehlt: \(missing.joined(separator: ", "))"),
                retryAfter: 5)
            problem.members.set("dependencies", .object(dependencies))
            return .answer(APIResponse(problem, to: call.fields))
        }
        return .answer(APIResponse(200, ["status": "ready", "dependencies": .object(dependencies)]))
    }
}
