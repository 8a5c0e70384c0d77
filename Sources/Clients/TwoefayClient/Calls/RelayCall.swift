import JSON

/// One request to the relay, as a value: whatever HTTP client a website has can carry it.
public struct RelayCall: Sendable, Equatable {
    public var method: String
    /// Behind the relay's origin; ready to be sent.
    public var path: String
    /// Names in lower case.
    public var fields: [String: String]
    public var body: JSONObject?
    /// So long an answer is waited for.
    public var timeout: Duration

    public init(
        _ method: String, _ path: String, fields: [String: String] = [:], body: JSONObject? = nil,
        timeout: Duration = .seconds(15)
    ) {
        self.method = method
        self.path = path
        self.fields = fields
        self.body = body
        self.timeout = timeout
        if body != nil { self.fields["content-type"] = "application/json" }
    }

    /// The body as it is sent; empty where there is none.
    public var bytes: [UInt8] { body.map { JSONWriter.write($0) } ?? [] }
}

extension RelayCall {
    /// Done twice it is as if it was done once.
    var isRepeatable: Bool {
        guard method == "PATCH", let body else { return true }
        return body["approval"] == nil && body["email"]?.string == nil && body["phone"]?.string == nil
    }

    /// What a repetition is told when an earlier try, whose answer got lost, has done it.
    func isDone(by fault: CallFault) -> Bool { method == "DELETE" && fault.problem?.code == .notFound }
}

/// What the relay said to it.
public struct RelayReply: Sendable, Equatable {
    public var status: Int
    /// Names in lower case.
    public var fields: [String: String]
    public var body: [UInt8]

    public init(status: Int, fields: [String: String] = [:], body: [UInt8] = []) {
        self.status = status
        self.fields = [:]
        for (name, value) in fields { self.fields[name.lowercased()] = value }
        self.body = body
    }
}

/// The way to the relay: HTTP/2 over TLS with the website's client certificate, and the clock of whoever waits there.
/// `HTTP2Transport` is one; a website that has an HTTP client of its own wraps it into another.
public protocol RelayTransport: Sendable {
    /// Brings back whatever the relay answers, refusals too. Where nothing came back it says whether the relay may have
    /// worked on it: `.unreached` or `.unanswered`. The task's being cancelled ends it at once, with `.cancelled`.
    func send(_ call: RelayCall) async throws(CallFault) -> RelayReply

    /// Comes back when the time is over, or the task is cancelled.
    func pause(for duration: Duration) async
}
