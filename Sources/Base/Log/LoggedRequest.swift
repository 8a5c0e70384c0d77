/// The request that the running task serves. Every line that the task writes names it, so that no
/// caller has to pass an id to the code that logs.
///
/// Tasks that a request starts inherit it: the push of a login is sent by its request. Work for
/// everybody that a request happens to start must run with nil.
///
/// Tests: `LoggedRequestTests`.
public enum LoggedRequest {
    /// The names of a request.
    struct Names: Sendable {
        let id: String
        /// The trace of which the caller says that the request is a part: hexadecimal digits.
        let trace: String?
    }

    private static let local = TaskLocal<Names?>(wrappedValue: nil)

    static var current: Names? { local.get() }

    /// The id of the request; nil if the task serves none.
    public static var id: String? { current?.id }

    /// Runs work, and all tasks that it starts, for this request; nil for no request.
    public static func run<Value>(_ id: String?, trace: String? = nil, _ work: () async -> Value) async -> Value {
        await local.withValue(id.map { Names(id: $0, trace: trace) }) { await work() }
    }
}
