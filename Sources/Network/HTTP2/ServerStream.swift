import HTTP
import World

/// One request and its answer.
final class ServerStream: BodySource {
    let id: Int32
    let head: HeaderBlock
    /// When the first byte of its head came.
    let began: Instant
    var body: [UInt8] = []
    /// The request has come to its end.
    var isWhole = false
    /// The rest of the request is not wanted: it has been answered already.
    var isDiscarded = false
    /// Bytes of the body that came after that.
    var dropped = 0
    /// We have reset it, or are about to.
    var isReset = false
    var isAnswered = false
    var isSentToTheEnd = false
    var exchange: Exchange?
    /// True while the rest of a request is waited for.
    var isAwaited: Bool { !isWhole && !isSentToTheEnd && !isReset }
    /// True while the rest of a request is read and dropped behind its answer.
    var isDropping: Bool { !isWhole && isSentToTheEnd && !isReset }

    init(id: Int32, head: HeaderBlock, began: Instant) {
        self.id = id
        self.head = head
        self.began = began
    }

    /// Once, when the request is whole: the body is then the request's.
    func takeRequest(certificate: ClientCertificate?, remote: String) -> Request {
        let request = Request(
            method: head.method, path: head.path, query: head.query, fields: head.fields, body: body,
            certificate: certificate, remote: remote)
        if !body.isEmpty { body = [] }
        return request
    }
}
