import API
import Metrics
import Synchronization

/// The dependencies of the relay, as `/ready` shows them. They are checked for each scrape.
final class DependencyMetrics: Sendable {
    private let dependencies: [Dependency]
    private let states = Mutex<[String: Int64]>([:])

    init(_ dependencies: [Dependency], in registry: Registry) {
        self.dependencies = dependencies
        registry.growingGauges(
            "twoefay_dependency_ready", "1 if this dependency is available, 0 if it is missing; as in /ready.",
            by: "dependency"
        ) { [self] in states.withLock { $0 } }
    }

    /// Checks the dependencies that are needed now.
    func check() async {
        var states: [String: Int64] = [:]
        for dependency in dependencies where dependency.isNeeded() {
            states[dependency.name] = await dependency.fault() == nil ? 1 : 0
        }
        self.states.withLock { [states] in $0 = states }
    }
}
