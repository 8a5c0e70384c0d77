import HTTP
import World

/// One request and its answer.
final class ServerStream: BodySource {
    let id: Int32
    let head: HeaderBlock
    let began: Instant
    var body: [UInt8] = []
    /// The request has come to its end.
    var isWhole = false
    /// The rest of the request is not wanted: it has been answered already.
    var isDiscarded = false
    var isAnswered = false
    var isSentToTheEnd = false
    var exchange: Exchange?

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
