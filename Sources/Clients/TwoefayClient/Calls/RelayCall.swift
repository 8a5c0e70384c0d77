import JSON

/// A request to the relay, as a value that any HTTP client can send.
public struct RelayCall: Sendable, Equatable {
    /// The HTTP method.
    public var method: String
    /// The path after the relay's origin, already percent-encoded.
    public var path: String
    /// The header fields, with names in lower case.
    public var fields: [String: String]
    /// The JSON body; nil if there is none.
    public var body: JSONObject?
    /// The longest time to wait for an answer.
    public var timeout: Duration

    /// Creates a call. A body sets the field `content-type`.
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

    /// The body as it is sent; empty if there is none.
    public var bytes: [UInt8] { body.map { JSONWriter.write($0) } ?? [] }
}

extension RelayCall {
    /// Whether a repetition has no second effect.
    ///
    /// A PATCH with a new address sends a code to it, and one with an approval uses that up.
    /// Neither can be repeated.
    var isRepeatable: Bool {
        guard method == "PATCH", let body else { return true }
        return body["approval"] == nil && body["email"]?.string == nil && body["phone"]?.string == nil
    }

    /// Whether this refusal of a repetition shows that an earlier attempt succeeded: the earlier
    /// DELETE lost its answer, and the repetition finds nothing to delete.
    func isDone(by fault: CallFault) -> Bool { method == "DELETE" && fault.problem?.code == .notFound }
}

/// The relay's answer to a call.
public struct RelayReply: Sendable, Equatable {
    /// The HTTP status.
    public var status: Int
    /// The header fields, with names in lower case.
    public var fields: [String: String]
    /// The bytes of the body; empty if there is none.
    public var body: [UInt8]

    /// Creates an answer. Names of fields become lower case.
    public init(status: Int, fields: [String: String] = [:], body: [UInt8] = []) {
        self.status = status
        self.fields = [:]
        for (name, value) in fields { self.fields[name.lowercased()] = value }
        self.body = body
    }

    /// The media type of the body, in lower case and without parameters.
    var mediaType: String? {
        fields["content-type"]?.split(separator: ";", omittingEmptySubsequences: false).first
            .map { $0.trimmed.lowercased() }
    }

    /// The body as a JSON object; nil if it is none.
    var object: JSONObject? { (try? JSONReader.read(body))?.object }
}

/// The carrier of calls to the relay: HTTP/2 over TLS with the website's client certificate, and a clock for
/// pauses.
///
/// `HTTP2Carrier` is the implementation of this library. A website that has its own HTTP client
/// can wrap that instead. It must neither follow redirects nor use a proxy of the environment, and
/// it must send `RelayCall.path` as it stands.
public protocol Carrier: Sendable {
    /// Sends a call and returns the relay's answer, refusals included.
    ///
    /// If there is no answer, it throws `.unreached` if the relay has certainly not processed the
    /// call, and `.unanswered` if it may have. If the task is cancelled, it throws `.cancelled` at
    /// once.
    func send(_ call: RelayCall) async throws(CallFault) -> RelayReply

    /// Returns when the time is over or the task is cancelled.
    func pause(for duration: Duration) async
}
