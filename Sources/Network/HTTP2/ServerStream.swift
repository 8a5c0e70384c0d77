import HTTP
import World

/// A request and its answer.
final class ServerStream: BodySource {
    let id: Int32
    private var method: String
    private let isHead: Bool
    private var path: String
    private var query: String?
    private(set) var fields: Fields
    /// When the first byte of its head came.
    let began: Instant
    var body: [UInt8] = []
    /// Whether the request is complete.
    var isWhole = false
    /// Whether the rest of the request is dropped, because it has been answered already.
    var isDiscarded = false
    /// The number of body bytes dropped after that.
    var dropped = 0
    /// Whether we have reset it or are about to.
    var isReset = false
    var isAnswered = false
    var isSentToTheEnd = false
    var exchange: Exchange?
    /// Whether the rest of the request is awaited.
    var isAwaited: Bool { !isWhole && !isSentToTheEnd && !isReset }
    /// Whether the rest of the request is read and dropped after its answer.
    var isDropping: Bool { !isWhole && isSentToTheEnd && !isReset }

    init(id: Int32, head: HeaderBlock, began: Instant) {
        self.id = id
        method = head.method
        isHead = head.isHead
        path = head.path
        query = head.query
        fields = head.fields
        self.began = began
    }

    /// Keeps the body of the answer, unless the request is HEAD or the status allows no body. Over
    /// HTTP/1.1, the client would take such a body for its next answer.
    func prepare(_ response: Response) {
        if !isHead, response.mayHaveContent { outgoing = response.body }
    }

    /// Makes the request, once it is complete. Its parts move into it, because a request may be held
    /// for long without them. So call this only once.
    func takeRequest(certificate: ClientCertificate?, remote: String) -> Request {
        let request = Request(
            method: method, path: path, query: query, fields: fields, body: body, certificate: certificate,
            remote: remote)
        method = ""
        path = ""
        query = nil
        fields = Fields()
        if !body.isEmpty { body = [] }
        return request
    }
}
