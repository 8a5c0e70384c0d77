import EventLoop
import HTTP
import HTTP1
import JSON
import Synchronization

/// A gateway for text messages that anybody's code could be handed to: it asks for no password, and sends nothing anywhere.
final class SMSCatcher: Pages {
    struct Text: Sendable {
        let to: String
        let from: String
        let text: String
    }

    /// How it is written in the settings, at that port. What stands in braces the relay fills in.
    static func settings(port: UInt16) -> String {
        #"[{name: catcher, kind: http, url: "http://127.0.0.1:\#(port)/sms", content_type: application/json, "#
            + #"body: '{"to": "{to}", "from": "{from}", "text": "{text}", "id": "{id}"}'}]"#
    }

    /// How long a slow message takes.
    static let slowness = Duration.seconds(20)

    private let loop: EventLoop
    private let taken: @Sendable (Text, _ isSlow: Bool) -> Void
    private let arrived: @Sendable (Text) -> Void
    private let isSlow = Mutex(false)

    /// - Parameters:
    ///   - taken: called on the loop when the relay has handed one over.
    ///   - arrived: when it is to be on the phone.
    init(
        loop: EventLoop, taken: @escaping @Sendable (Text, _ isSlow: Bool) -> Void,
        arrived: @escaping @Sendable (Text) -> Void
    ) {
        self.loop = loop
        self.taken = taken
        self.arrived = arrived
    }

    func setSlow(_ isSlow: Bool) { self.isSlow.withLock { $0 = isSlow } }

    var isSlowNow: Bool { isSlow.withLock { $0 } }

    func answer(_ request: Request) async -> Response {
        guard request.method == "POST", request.path == "/sms" else { return Self.said(404, "not_found") }
        guard let object = (try? JSONReader.read(request.body))?.object, let to = object["to"]?.string,
            let text = object["text"]?.string
        else { return Self.said(400, "malformed") }
        let message = Text(to: to, from: object["from"]?.string ?? "", text: text)
        let isSlow = isSlowNow
        taken(message, isSlow)
        if isSlow {
            loop.schedule(after: Self.slowness) { [arrived] in arrived(message) }
        } else {
            arrived(message)
        }
        return Self.said(200, "queued")
    }

    private static func said(_ status: Int, _ word: String) -> Response {
        Response(
            status: status, fields: Fields([.init("content-type", "application/json")]),
            body: JSONWriter.write(.object(["status": .string(word)])))
    }
}
