import Daemon
import EventLoop
import Glibc

/// Lines of standard input, read on a thread of its own, asked for on a loop, and the screen that goes with it. Lives on
/// that loop.
final class Keyboard {
    /// Whether a person sits there.
    static var isTerminal: Bool { isatty(0) == 1 }

    /// Of the screen before the person; where there is none, as of the screens of old.
    static var columns: Int {
        var size = winsize()
        guard ioctl(1, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }

    /// The line that a person types at this question, and nothing that was typed before it; nil at the end of the input.
    static func ask(_ question: String) -> String? {
        tcflush(0, TCIFLUSH)
        Program.say(question)
        return readLine()
    }

    private let loop: EventLoop
    private let thread: WorkerThread
    private var isReading = false
    private var lines: [String] = []
    private var hasEnded = false
    private var waiting: CheckedContinuation<String?, Never>?

    init(loop: EventLoop) throws(SystemFailure) {
        self.loop = loop
        thread = try WorkerThread(name: "keyboard")
    }

    /// The next line; nil at the end of the input, and when `giveUp` is called. What a person typed before the question
    /// was on the screen is no answer to it; a program may write its answers ahead.
    ///
    /// - Parameter ask: puts the question on the screen.
    func line(_ ask: () -> Void = {}) async -> String? {
        if Self.isTerminal {
            tcflush(0, TCIFLUSH)
            lines = []
        }
        ask()
        start()
        if !lines.isEmpty { return lines.removeFirst() }
        if hasEnded { return nil }
        return await withCheckedContinuation { waiting = $0 }
    }

    /// Nobody needs the line any more that is waited for.
    func giveUp() {
        waiting?.resume(returning: nil)
        waiting = nil
    }

    /// Nothing more will come.
    var isAtEnd: Bool { hasEnded && lines.isEmpty }

    private func start() {
        guard !isReading else { return }
        isReading = true
        let (shared, loop) = (LoopBound(self, on: loop), loop)
        thread.post {
            while let line = readLine() { loop.post { shared.value.take(line) } }
            loop.post { shared.value.end() }
        }
    }

    private func take(_ line: String) {
        guard let asked = waiting else { return lines.append(line) }
        waiting = nil
        asked.resume(returning: line)
    }

    private func end() {
        hasEnded = true
        giveUp()
    }
}
