import Domain
import JSON
import Relay

/// Notify: short texts that a website leaves for a user, and that the user's phones show.
enum Notices {
    typealias P = Parameters

    static let routes = [
        Route(
            "leaveMessage", "POST", "/user/{username}/messages",
            "Leaves a short text for a user, which the user's phones show",
            Form(
                .website(leave), [P.title.required, P.text.required],
                answers: [Answer(201, "The message is left", .object(["message": .id, "created_at": .time]))],
                problems: [.conflict: "the user has too many messages"])),
        Route(
            "listUserMessages", "GET", "/user/{username}/messages", "Returns the messages for a user, the newest first",
            Form(
                .website(list),
                answers: [
                    Answer(200, "The messages", .object(["messages": .list(of: .userNotice.named("UserMessage"))]))
                ])),
        Route(
            "deleteMessage", "DELETE", "/user/{username}/messages/{message}", "Deletes a message for a user",
            Form(.website(withdraw), answers: [Answer(204, "The message is deleted, also from the archive")])),
        Route(
            "listMessages", "GET", "/messages", "Returns the messages that no phone of the user has fetched",
            Form(
                .phone { call, phone async throws(Refusal) in try await list(call, phone, inArchive: false) },
                answers: [Answer(200, "The messages", .noticeList(of: .notice.named("Message")))])),
        Route(
            "listArchive", "GET", "/messages/archive", "Returns the messages that a phone of the user has fetched",
            Form(
                .phone { call, phone async throws(Refusal) in try await list(call, phone, inArchive: true) },
                answers: [
                    Answer(
                        200, "The messages",
                        .noticeList(of: .notice.adding(["read_at": .time.orNull]).named("ArchivedMessage")))
                ])),
        Route(
            "fetchMessage", "GET", "/messages/{message}", "Returns a message, signed, and moves it to the archive",
            Form(
                .phone(fetch),
                answers: [
                    Answer(200, "The message", .object(["statement": .jws.about("A twoefay-message+jwt")]))
                ])),
    ]

    @Sendable static func leave(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let left = try await call.relay.leave(
            title: try call.required(P.title), text: try call.required(P.text), for: try Enrol.username(call),
            by: website, as: call.operation)
        return .answer(
            APIResponse(201, ["message": .string(left.id.text), "created_at": .timestamp(left.at)]))
    }

    @Sendable static func list(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        let notices = try await call.relay.notices(ofUser: try Enrol.username(call), of: website)
        let list = notices.map { notice -> JSONValue in
            var object = head(notice)
            object.set("text", .string(notice.text))
            object.set("read_at", .timestamp(notice.readAt))
            return .object(object)
        }
        return .answer(APIResponse(200, ["messages": .array(list)]))
    }

    @Sendable static func withdraw(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        try await call.relay.withdraw(try notice(call), ofUser: try Enrol.username(call), by: website)
        return .answer(.noContent)
    }

    private static func list(
        _ call: VerbCall, _ phone: PhoneCredential, inArchive: Bool
    ) async throws(Refusal) -> VerbOutcome {
        let found = try await call.relay.notices(for: phone, inArchive: inArchive)
        let list = found.notices.map { notice -> JSONValue in
            var object = head(notice)
            if inArchive { object.set("read_at", .timestamp(notice.readAt)) }
            return .object(object)
        }
        return .answer(
            APIResponse(
                200,
                [
                    "messages": .array(list), "unread": .integer(Int64(found.unread)),
                    "archived": .integer(Int64(found.archived)),
                ]))
    }

    @Sendable static func fetch(_ call: VerbCall, _ phone: PhoneCredential) async throws(Refusal) -> VerbOutcome {
        let (statement, unread) = try await call.relay.fetch(try notice(call), by: phone)
        var answer = APIResponse(200, ["statement": .string(statement)])
        answer.messageCount = unread
        return .answer(answer)
    }

    private static func head(_ notice: Notice) -> JSONObject {
        [
            "message": .string(notice.id.text), "from": .word(notice.author), "title": .string(notice.title),
            "created_at": .timestamp(notice.createdAt),
        ]
    }

    private static func notice(_ call: VerbCall) throws(Refusal) -> NoticeID {
        guard let id = NoticeID(try call.place("message")) else { throw .notFound }
        return id
    }
}
