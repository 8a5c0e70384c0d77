import JSON
import World

extension RelayClient {
    /// A short text for a user, which the user's phones show. It asks nothing.
    public struct Message: Sendable, Equatable {
        /// The author of a message.
        public enum Author: String, Sendable {
            case website, `operator`
        }

        /// The id of the message.
        public let id: String
        /// The author: this website or an operator.
        public let author: Author
        /// The title, one line.
        public let title: String
        /// The text of the message.
        public let text: String
        /// The time at which the message was left.
        public let createdAt: Timestamp
        /// The time when a phone of the user fetched it first; nil if none has.
        public let readAt: Timestamp?

        init(_ object: JSONObject) throws(CallFault) {
            id = try object.text("message")
            guard let author = Author(rawValue: try object.text("from")) else {
                throw .odd("from is neither website nor operator")
            }
            self.author = author
            title = try object.text("title")
            text = try object.text("text")
            createdAt = try object.timestamp("created_at")
            readAt = try object.timestamp(ifAny: "read_at")
        }
    }

    /// Leaves a message for a user.
    ///
    /// - Parameters:
    ///   - title: one line of 1 to 64 characters.
    ///   - text: up to 1000 characters; `\n` separates lines.
    /// - Returns: the id of the message.
    @discardableResult
    public func leaveMessage(_ title: String, _ text: String, for username: String) async throws(CallFault) -> String {
        try await call(
            "POST", Self.path(username, "messages"), ["title": .string(title), "text": .string(text)]
        ).text("message")
    }

    /// Returns the messages for a user, the newest first.
    public func messages(for username: String) async throws(CallFault) -> [Message] {
        var messages: [Message] = []
        for object in try await call("GET", Self.path(username, "messages")).objects("messages") {
            messages.append(try Message(object))
        }
        return messages
    }

    /// Deletes a message that this website has left.
    public func deleteMessage(_ id: String, for username: String) async throws(CallFault) {
        try await call("DELETE", Self.path(username, "messages", id))
    }
}
