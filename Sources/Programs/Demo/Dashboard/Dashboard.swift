import EventLoop
import HTTP
import HTTP1
import JSON

/// The page that shows the website and a phone side by side, the messages between all systems, and
/// the fault switches.
final class Dashboard: Pages {
    private let responder: PageResponder
    private let page: String
    private let feed: ActivityFeed
    private let switches: LoopBound<FaultSwitches>

    /// Creates the page.
    ///
    /// - Parameters:
    ///   - website: the website's origin.
    ///   - phone: the phones' origin.
    init(
        responder: PageResponder, website: String, phone: String, feed: ActivityFeed, switches: LoopBound<FaultSwitches>
    ) {
        self.responder = responder
        page = PageFile.dashboardHTML.text.split(separator: "{{", omittingEmptySubsequences: false)
            .map { part in
                if part.hasPrefix("website}}") { return website + part.dropFirst("website}}".count) }
                if part.hasPrefix("phone}}") { return phone + part.dropFirst("phone}}".count) }
                return String(part)
            }.joined()
        self.feed = feed
        self.switches = switches
    }

    static let files: [PageFile] = [
        .baseCSS, .iconSVG, .dashboardExplanationsJS, .dashboardCSS, .dashboardGuideJS, .dashboardJS,
        .dashboardSwitchesJS, .dashboardMessagesCSS, .dashboardMessagesJS, .dashboardTextsJS,
    ]

    func answer(_ request: Request) async -> Response {
        switch (request.method, request.path) {
        case ("GET", "/"): return responder.page(page)
        case ("GET", "/feed"): return await said(after: FormText(query: request.query)["after"])
        case ("POST", "/switch"):
            guard let command = (try? JSONReader.read(request.body))?.object, let name = command["name"]?.string,
                let state = command["state"]?.string, await switches.value.turn(name, to: state)
            else { return responder.json(["code": "unknown"], status: 400) }
            return responder.json(switches.value.json)
        default: return responder.file(for: request) ?? responder.refusal(404, "This page does not exist.")
        }
    }

    /// Returns new entries of the feed, and holds the request until there are some.
    private func said(after text: String?) async -> Response {
        let after = text.flatMap { Int64($0) } ?? 0
        let events = feed.longPoll.events
        // The first request is answered at once with the current state.
        if after > 0, feed.entries(after: after).entries.isEmpty { await feed.longPoll.next(after: events) }
        let (entries, last) = feed.entries(after: after)
        return responder.json([
            "messages": .array(entries), "last": .integer(last), "switches": .object(switches.value.json),
        ])
    }
}
