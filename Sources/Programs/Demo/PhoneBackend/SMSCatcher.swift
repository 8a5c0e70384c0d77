import EventLoop
import HTTP
import HTTP1
import JSON
import Synchronization

/// A gateway that accepts every text message without a password, and sends none.
final class SMSCatcher: Pages {
    struct Text: Sendable {
        let to: String
        let from: String
        let text: String
    }

    /// Returns the gateway's entry in the settings of the relay. The relay replaces the names in
    /// braces.
    static func settings(port: UInt16) -> String {
        #"[{name: catcher, kind: http, url: "http://127.0.0.1:\#(port)/sms", content_type: application/json, "#
            + #"body: '{"to": "{to}", "from": "{from}", "text": "{text}", "id": "{id}"}'}]"#
    }

    /// The delay of a slow message.
    static let slowness = Duration.seconds(20)

    private let loop: EventLoop
    private let taken: @Sendable (Text, _ isSlow: Bool) -> Void
    private let arrived: @Sendable (Text) -> Void
    private let isSlow = Mutex(false)

    /// Creates a gateway.
    ///
    /// - Parameters:
    ///   - taken: called on the loop when the relay has submitted a message.
    ///   - arrived: called on the loop when the message reaches the phone.
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
