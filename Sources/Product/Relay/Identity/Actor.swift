import Domain

/// The party that causes a change, for the audit. It is a task-local value, set where the caller is
/// known, as `Tenant` is.
public enum Actor: Sendable, Equatable {
    case website(String)
    case phone(DeviceID)
    /// A source of users, whose sync changes a user.
    case directory(String)
    /// An account of the operating system that uses the control socket, in this role, with the reason
    /// that it gave.
    case account(role: String, name: String, reason: String?)
    /// A caller without an identity, such as a phone that is not bound yet.
    case anyone

    /// The text in `audit.actor`.
    public var text: String {
        switch self {
        case .website(let name): "website \(name)"
        case .phone(let id): "phone \(id.text)"
        case .directory(let source): "directory \(source)"
        case .account(let role, let name, _): "\(role) \(name)"
        case .anyone: "anyone"
        }
    }

    /// The reason for its changes, for the audit.
    public var reason: String? {
        if case .account(_, _, let reason) = self { reason } else { nil }
    }

    private static let local = TaskLocal<Actor?>(wrappedValue: nil)

    /// The actor of the running task; nil if the program itself acts.
    public static var current: Actor? { local.get() }

    /// Runs work, and all tasks that it starts, on behalf of an actor; nil for the program itself.
    public static func run<Value>(_ actor: Actor?, _ work: () async -> Value) async -> Value {
        await local.withValue(actor) { await work() }
    }

    /// Runs work that blocks the thread on behalf of an actor.
    public static func runBlocking<Value, Problem: Error>(
        _ actor: Actor, _ work: () throws(Problem) -> Value
    ) throws(Problem) -> Value {
        let outcome = local.withValue(actor) { () -> Result<Value, Problem> in
            do throws(Problem) { return .success(try work()) } catch { return .failure(error) }
        }
        return try outcome.get()
    }
}
