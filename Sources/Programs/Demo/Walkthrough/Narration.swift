import EventLoop
import JSON
import Synchronization
import World

/// The report of a demo: printed to the terminal as it happens, and kept for JSON output. Tested in
/// `NarrationTests.swift`.
final class Narration: Sendable {
    private struct State {
        var steps: [JSONValue] = []
    }

    private let screen: LoopBound<Screen>?
    private let loop: EventLoop
    private let start: Instant
    private let state = Mutex(State())

    private static let margin = String(repeating: " ", count: 12)
    private static let width = 116

    /// Creates a report. It must be used on its loop only.
    init(loop: EventLoop, isShown: Bool) {
        self.loop = loop
        start = loop.time.instant()
        screen = isShown ? LoopBound(Screen(), on: loop) : nil
    }

    var elapsed: Duration { loop.time.instant() - start }
    var steps: [JSONValue] { state.withLock { $0.steps } }

    func chapter(_ title: String) {
        show { screen in
            screen.line()
            screen.line(screen.styled(title, .bold))
        }
    }

    /// Prints an action of a person, or an explanation for a newcomer.
    func say(_ text: String) {
        keep(["at": seconds, "text": .string(text)])
        show { screen in
            for line in Self.wrapped(text) { screen.line(Self.margin + line) }
        }
    }

    /// Prints names with values. Values are for copying, so they are never wrapped.
    func lines(_ lines: [(name: String, text: String)]) {
        show { screen in
            for (name, text) in lines {
                let gap = String(repeating: " ", count: max(1, 18 - name.count))
                screen.line("  " + screen.styled(name, .dim) + gap + screen.styled(text, .bold))
            }
        }
    }

    /// Prints an action of the demo itself, with its time.
    func done(_ text: String) {
        keep(["at": seconds, "text": .string(text)])
        let moment = moment
        show { screen in
            for (number, line) in Self.wrapped(text).enumerated() {
                screen.line((number == 0 ? screen.styled(moment, .dim) : Self.margin) + line)
            }
        }
    }

    func message(_ message: Message) {
        let body = message.body.isEmpty ? "" : JSONWriter.text(JSONValue.object(message.body).shortened)
        keep([
            "at": seconds, "from": .string(message.from.rawValue), "to": .string(message.to.rawValue),
            "head": .string(message.head), "body": JSONValue.object(message.body).shortened,
        ])
        let moment = moment
        show { screen in
            let way = "\(message.from.rawValue) → \(message.to.rawValue)"
            let gap = String(repeating: " ", count: max(1, 24 - way.count))
            let who = screen.styled(way, Self.style(of: message.from)) + gap
            screen.line(screen.styled(moment, .dim) + who + screen.styled(message.head, .bold))
            let indent = Self.margin + String(repeating: " ", count: 24)
            for field in message.fields { screen.line(indent + screen.styled(field, .dim)) }
            for line in Self.wrapped(body, at: ",", indent: 24) { screen.line(indent + line) }
        }
    }

    /// Prints the result of a login.
    func verdict(_ text: String, isAsExpected: Bool) {
        show { screen in
            screen.line("  " + screen.styled(isAsExpected ? "✔" : "✘", isAsExpected ? .green : .red) + " " + text)
        }
    }

    func passing(_ text: String) { show { $0.passing(Self.margin + $0.styled(text, .dim)) } }

    private func show(_ body: (Screen) -> Void) {
        if let screen { body(screen.value) }
    }

    private func keep(_ step: JSONObject) { state.withLock { $0.steps.append(.object(step)) } }

    private var seconds: JSONValue { .number(Double(elapsed.wholeMilliseconds) / 1000) }

    private var moment: String {
        let text = elapsed.inSeconds
        return String(repeating: " ", count: max(0, 10 - text.count)) + text + "  "
    }

    private static func style(of party: Message.Party) -> Screen.Style {
        switch party {
        case .website: .blue
        case .relay: .cyan
        case .pushService, .mailServer, .textGateway: .magenta
        case .phone: .green
        }
    }

    /// Wraps a text to the width, after `separator` if possible.
    static func wrapped(_ text: String, at separator: Character = " ", indent: Int = 0) -> [String] {
        let width = width - margin.count - indent
        var lines: [String] = []
        var line = ""
        for piece in text.split(separator: separator, omittingEmptySubsequences: false) {
            let next = line.isEmpty ? String(piece) : line + String(separator) + piece
            if next.count <= width || line.isEmpty {
                line = next
            } else {
                lines.append(separator == " " ? line : line + String(separator))
                line = String(piece)
            }
        }
        return line.isEmpty ? lines : lines + [line]
    }
}

extension Duration {
    /// The duration as a text, such as `1.234 s`.
    var inSeconds: String {
        let milliseconds = max(0, wholeMilliseconds)
        let fraction = String(milliseconds % 1000)
        return "\(milliseconds / 1000).\(String(repeating: "0", count: 3 - fraction.count))\(fraction) s"
    }
}
