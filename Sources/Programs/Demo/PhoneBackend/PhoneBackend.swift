import EventLoop
import HTTP
import HTTP1
import JSON

/// The server behind the phone's page. It forwards the page's signed requests to the relay, and
/// delivers pushes and messages to the page.
///
/// Invariant: it holds no key of a phone and cannot sign anything itself.
final class PhoneBackend: Pages {
    private let responder: PageResponder
    private let origin: String
    private let run: String
    private let relayProxy: RelayProxy
    private let phoneInbox: PhoneInbox
    private let scannedCode: ScannedCode
    private let feed: ActivityFeed

    /// Creates the server.
    ///
    /// - Parameters:
    ///   - origin: the relay's origin, which phones put into their signatures.
    ///   - run: the id of this run of the demo. Data that a browser stored in another run is
    ///     invalid.
    init(
        responder: PageResponder, origin: String, run: String, relayProxy: RelayProxy, phoneInbox: PhoneInbox,
        scannedCode: ScannedCode, feed: ActivityFeed
    ) {
        self.responder = responder
        self.origin = origin
        self.run = run
        self.relayProxy = relayProxy
        self.phoneInbox = phoneInbox
        self.scannedCode = scannedCode
        self.feed = feed
    }

    static let files: [PageFile] = [
        .baseCSS, .phoneCSS, .iconSVG, .phoneJS, .activationJS, .notificationsJS, .bytesJS, .callsJS, .contextJS,
        .deviceJS,
        .elementsJS, .keyringJS, .requestsJS, .signingJS, .totpJS, .textsJS, .screenAccountsJS, .screenCodesJS,
        .screenEnrolJS, .screenMessagesJS, .screenQuestionJS, .screenSettingsJS,
    ]

    func answer(_ request: Request) async -> Response {
        switch (request.method, request.path) {
        case ("GET", "/"): return responder.page(PageFile.phoneHTML.text)
        case ("GET", "/about"): return about(phone(FormText(query: request.query)["phone"]))
        case ("GET", "/messages"): return await messages(FormText(query: request.query))
        case ("POST", "/scan"):
            guard let uri = scannedCode.seen else { return responder.json(["code": "nothing"], status: 404) }
            return responder.json(["uri": .string(uri)])
        case ("POST", let path) where path.hasPrefix("/relay/"):
            let route = String(path.dropFirst("/relay".count))
            guard Self.routes.contains(route) else { return responder.json(["code": "not_found"], status: 404) }
            return await carry(request, to: route)
        default: return responder.file(for: request) ?? responder.refusal(404, "This page does not exist.")
        }
    }

    private func phone(_ text: String?) -> Int {
        text.flatMap { Int($0) }.flatMap { PhoneInbox.phones.contains($0) ? $0 : nil } ?? PhoneInbox.phones.lowerBound
    }

    private func about(_ phone: Int) -> Response {
        responder.json([
            "run": .string(run), "origin": .string(origin), "phone": .integer(Int64(phone)),
            "push_token": .string(phoneInbox.pushTokens[phone - PhoneInbox.phones.lowerBound]),
        ])
    }

    /// Returns new messages for the phone, and holds the request until there are some.
    private func messages(_ query: FormText) async -> Response {
        let phone = phone(query["phone"])
        let after = query["after"].flatMap { Int64($0) } ?? 0
        let events = phoneInbox.longPoll.events
        let isKnown = query["offline"].map { ($0 == "true") != phoneInbox.isOnline } ?? true
        if isKnown, phoneInbox.messages(for: phone, after: after).messages.isEmpty {
            await phoneInbox.longPoll.next(after: events)
        }
        let (messages, last) = phoneInbox.messages(for: phone, after: after)
        return responder.json([
            "messages": .array(messages), "last": .integer(last), "offline": .bool(!phoneInbox.isOnline),
        ])
    }

    // MARK: The relay

    /// The routes of the relay that a phone uses.
    private static let routes = ["/verify", "/pending", "/success", "/failure", "/device", "/revoke"]
    private static let there = [
        "content-type", "dpop", "authorization", "prefer", "accept-language", "accept-user-language",
        "idempotency-key",
    ]
    private static let back = [
        "content-type", "date", "dpop-nonce", "preference-applied", "request-id", "retry-after", "www-authenticate",
    ]
    /// The fields that the feed shows beside the body. A DPoP proof is long and part of every
    /// request, so it is left out.
    private static let shown = ["prefer", "dpop-nonce", "retry-after", "www-authenticate"]

    private func carry(_ request: Request, to route: String) async -> Response {
        guard phoneInbox.isOnline else { return responder.json(["code": "offline"], status: 503) }
        let phone = phone(request.fields["x-phone"])
        // Pages can only send POST to this HTTP/1.1 server, so a field names the real method.
        let method = route == "/device" && request.fields["x-method"] == "DELETE" ? "DELETE" : "POST"
        let fields = Self.fields(request.fields, Self.there)
        feed.add(Self.message(.phone, .relay, "\(method) \(route)", fields, request.body, phone))
        guard let answer = await relayProxy.carry(method, route, fields, method == "DELETE" ? [] : request.body) else {
            return responder.json(["code": "unreached"], status: 502)
        }
        feed.add(Self.message(.relay, .phone, String(answer.status), answer.fields, answer.body, phone))
        // If the phone went offline meanwhile, the answer does not reach it.
        guard phoneInbox.isOnline else { return responder.json(["code": "offline"], status: 503) }
        return responder.bytes(answer.body, status: answer.status, fields: Self.fields(answer.fields, Self.back).all)
    }

    private static func fields(_ fields: Fields, _ names: [String]) -> Fields {
        Fields(names.compactMap { name in fields[name].map { .init(name, $0) } })
    }

    private static func message(
        _ from: Message.Party, _ to: Message.Party, _ head: String, _ fields: Fields, _ body: [UInt8], _ phone: Int
    ) -> Message {
        Message(
            from, to, head, fields: Self.fields(fields, shown).all.map { "\($0.name): \($0.value)" },
            body: (try? JSONReader.read(body))?.object ?? [:], phone: phone)
    }
}
