import HTTP
import JSON
import Log
import Relay

/// Something without which the relay is of no use, by the name under which /ready shows it.
public struct Dependency: Sendable {
    public let name: String
    /// Nil when it is there, else why not: for the log, never for the answer.
    public let trouble: @Sendable () async -> String?
    /// Whether it is needed now.
    public let isNeeded: @Sendable () -> Bool

    public init(
        _ name: String, isNeeded: @escaping @Sendable () -> Bool = { true },
        trouble: @escaping @Sendable () async -> String?
    ) {
        self.name = name
        self.isNeeded = isNeeded
        self.trouble = trouble
    }
}

/// Alive, and of use.
enum Health {
    static let routes = [
        Route("GET", "/health", "Alive", Form(.anyone(alive), answers: [(200, "status: alive")])),
        Route(
            "GET", "/ready", "Of use: everything is there that is needed",
            Form(
                .anyone(ready),
                answers: [(200, "status: ready, dependencies: {name: ok}"), (503, "the same, with those missing")])),
    ]

    static let path = "/health"
    private static let body: JSONObject = ["status": "alive"]

    /// Made once: /health is asked often, and says always the same.
    static let response = Response(
        status: 200, fields: Fields([Answer.json, Answer.noStore]), body: JSONWriter.write(body))

    @Sendable static func alive(_ call: Call) async throws(Refusal) -> Verdict { .answer(Answer(200, body)) }

    @Sendable static func ready(_ call: Call) async throws(Refusal) -> Verdict {
        var dependencies = JSONObject()
        var missing: [String] = []
        for dependency in call.api.dependencies where dependency.isNeeded() {
            let trouble = await dependency.trouble()
            dependencies.set(dependency.name, .string(trouble == nil ? "ok" : "missing"))
            guard let trouble else { continue }
            missing.append(dependency.name)
            call.api.log.warning("ready.missing", [.name: dependency.name, .reason: trouble])
        }
        guard missing.isEmpty else {
            var problem = Problem(.unavailable, "Missing: \(missing.joined(separator: ", "))", retryAfter: 5)
            problem.members.set("dependencies", .object(dependencies))
            return .answer(Answer(problem))
        }
        return .answer(Answer(200, ["status": "ready", "dependencies": .object(dependencies)]))
    }
}
