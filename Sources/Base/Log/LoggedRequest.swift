/// The request that the running task serves. Every line that the task writes names it, so that no
/// caller has to pass an id to the code that logs.
///
/// Tasks that a request starts inherit it: the push of a login is sent by its request. Work for
/// everybody that a request happens to start must run with nil.
///
/// Tests: `LoggedRequestTests`.
public enum LoggedRequest {
    private static let local = TaskLocal<String?>(wrappedValue: nil)

    static var current: String? { local.get() }

    /// Runs work, and all tasks that it starts, for this request; nil for no request.
    public static func run<Value>(_ id: String?, _ work: () async -> Value) async -> Value {
        await local.withValue(id) { await work() }
    }
}
