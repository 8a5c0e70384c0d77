import Bytes
import Crypto
import HTTP
import JSON
import World

/// A notice for the person: a short text from the website or the relay's operator. It asks nothing,
/// and the phone shows it apart from challenges, as plain text without links.
public struct Notice: Sendable, Equatable {
    public enum Author: String, Sendable {
        case website, `operator`
    }

    public let id: String
    public let author: Author
    public let title: String
    /// Lines that are separated by `\n`.
    public let text: String
    public let createdAt: Timestamp

    /// The reason why the phone does not show the notice.
    struct Malformed: Error, Equatable {
        let description: String

        static let unsigned = Malformed(description: "it is not signed by the relay's certificate")
    }

    /// Checks the relay's statement.
    ///
    /// - Parameters:
    ///   - statement: the JWS from the relay.
    ///   - certificate: the relay's certificate in the connection of the request.
    ///   - id: the notice that the phone asked for.
    init(
        _ statement: String, by certificate: Certificate, id: String, for enrolment: Enrolment
    ) throws(Malformed) {
        guard let signed = certificate.verified(statement), signed.type == "twoefay-message+jwt",
            signed.header["x5t#S256"]?.string == Base64URL.encode(certificate.thumbprint)
        else { throw .unsigned }
        guard let claims = (try? JSONReader.read(signed.payload))?.object, claims["v"]?.integer == 1,
            claims["aud"]?.string == enrolment.audience, claims["id_token"]?.string == enrolment.token,
            claims["message"]?.string == id
        else { throw Malformed(description: "it is for another user, website or request") }
        guard let author = claims["from"]?.string.flatMap({ Author(rawValue: $0) }),
            let title = claims["title"]?.string, let text = claims["text"]?.string,
            let createdAt = claims["created_at"]?.string.flatMap({ Timestamp(rfc3339: $0) })
        else { throw Malformed(description: "a part of it is missing") }
        self.id = id
        self.author = author
        self.title = title
        self.text = text
        self.createdAt = createdAt
    }
}

/// An entry of a list of notices. Only the fetched notice is signed.
public struct NoticeEntry: Sendable, Equatable {
    public let id: String
    public let author: Notice.Author
    public let title: String
    public let createdAt: Timestamp
    /// The time when a phone of the user fetched it first; nil if none has.
    public let readAt: Timestamp?

    init(_ value: JSONValue, of answer: RelayAnswer) throws(CallFailure) {
        guard let object = value.object, let id = object["message"]?.string, RelayAnswer.isID(id),
            let author = object["from"]?.string.flatMap({ Notice.Author(rawValue: $0) }),
            let title = object["title"]?.string,
            let createdAt = object["created_at"]?.string.flatMap({ Timestamp(rfc3339: $0) })
        else { throw answer.odd("with an invalid message") }
        self.id = id
        self.author = author
        self.title = title
        self.createdAt = createdAt
        readAt = object["read_at"]?.string.flatMap { Timestamp(rfc3339: $0) }
    }
}

extension RelayAnswer {
    /// The number of notices that no phone of the user has fetched. An answer without the field
    /// means that there are none.
    var messageCount: Int {
        guard let text = fields["x-messagecount"], text.utf8.count <= 9, let count = Int(text) else { return 0 }
        return max(0, count)
    }
}

extension Responder {
    /// Returns the notices that no phone of the user has fetched, or those in the archive, the newest
    /// first.
    public func notices(inArchive: Bool = false) async throws(CallFailure) -> [NoticeEntry] {
        let answer = try await send(.init(inArchive ? "/messages/archive" : "/messages", method: "GET"))
        guard let entries = try answer.accepted()["messages"]?.array else { throw answer.odd("without messages") }
        var notices: [NoticeEntry] = []
        for entry in entries { notices.append(try NoticeEntry(entry, of: answer)) }
        return notices
    }

    /// Fetches a notice, which moves it to the archive.
    ///
    /// A relay that has a new certificate signs with it also for connections that have the old one.
    /// Such a statement is fetched once more over a new connection; the archive still has the
    /// notice.
    public func fetch(_ id: String) async throws(CallFailure) -> Notice {
        guard RelayAnswer.isID(id) else { throw .unable("\(ScreenText.visible(id)) is not the id of a message") }
        var hasReconnected = false
        while true {
            let answer = try await send(.init("/messages/\(id)", method: "GET"))
            let statement = try answer.text("statement")
            guard let certificate = line.serverCertificate else {
                throw .ambiguous("the connection ended before its certificate was read")
            }
            do throws(Notice.Malformed) {
                return try Notice(statement, by: certificate, id: id, for: enrolment)
            } catch {
                guard error == .unsigned, !hasReconnected else {
                    throw answer.odd("with a message that cannot be shown: \(error.description)")
                }
                hasReconnected = true
                line.disconnect()
            }
        }
    }
}
