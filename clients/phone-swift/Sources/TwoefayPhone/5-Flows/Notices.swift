/// A notice: a short text of the website or of the relay's operator. It asks nothing. Show it apart
/// from challenges, as plain text without links.
public struct Notice: Sendable, Equatable {
    public enum Author: String, Sendable {
        case website, `operator`
    }

    public let id: String
    public let author: Author
    public let title: String
    /// Lines that `\n` separates.
    public let text: String
    public let createdAt: Timestamp

    package init(_ id: String, _ statement: JWS, for enrolment: Enrolment) throws(PhoneError) {
        let claims = statement.claims
        guard claims.has("aud", enrolment.audience), claims.has("id_token", enrolment.token), claims.has("message", id)
        else { throw .odd("the notice is for another user, website or request") }
        guard let author = claims["from"]?.string.flatMap({ Author(rawValue: $0) }),
            let title = claims["title"]?.string, let text = claims["text"]?.string,
            let createdAt = claims["created_at"]?.string.flatMap({ Timestamp(rfc3339: $0) }),
            title.unicodeScalars.allSatisfy(ScreenText.isVisible), text.unicodeScalars.count <= 1000,
            text.unicodeScalars.allSatisfy({ $0 == "\n" || ScreenText.isVisible($0) })
        else { throw .odd("the notice cannot be shown") }
        self.id = id
        self.author = author
        self.title = title
        self.text = text
        self.createdAt = createdAt
    }
}

/// An entry of a list of notices. It is not signed: it only lets the person choose.
public struct NoticeEntry: Sendable, Equatable {
    public let id: String
    public let author: Notice.Author
    public let title: String
    public let createdAt: Timestamp
}

extension Phone {
    /// Returns the notices that no phone of the user has fetched, or those of the archive, the
    /// newest first. Call it only if `messageCount` has changed.
    public func notices(inArchive: Bool = false) async throws(PhoneError) -> [NoticeEntry] {
        let answer = try await send(RelayRequest("GET", inArchive ? "/messages/archive" : "/messages"))
        guard let entries = try answer.accepted()["messages"]?.array else { throw .odd("messages is missing") }
        // The app leaves out what it cannot show.
        return entries.compactMap { entry in
            guard let object = entry.object, let id = object["message"]?.string, RelayAnswer.isID(id),
                let author = object["from"]?.string.flatMap({ Notice.Author(rawValue: $0) }),
                let title = object["title"]?.string,
                let createdAt = object["created_at"]?.string.flatMap({ Timestamp(rfc3339: $0) })
            else { return nil }
            return NoticeEntry(id: id, author: author, title: ScreenText.visible(title), createdAt: createdAt)
        }
    }

    /// Fetches a notice, which moves it to the archive of all phones of the user.
    public func notice(_ id: String) async throws(PhoneError) -> Notice {
        guard RelayAnswer.isID(id) else { throw .unable("this is no id of a notice") }
        // A relay that has a new certificate signs with it for connections with the old one, too.
        for isFresh in [false, true] {
            let answer = try await send(RelayRequest("GET", "/messages/\(id)"), isFresh: isFresh)
            let text = try answer.text("statement")
            if let statement = JWS.ofRelay(text, as: "twoefay-message+jwt", by: answer.certificate, cryptography) {
                return try Notice(id, statement, for: enrolment)
            }
        }
        throw .odd("the notice is not signed by the relay")
    }
}
