import Daemon
import EventLoop
import Glibc

/// Lines of standard input and the size of the screen. A separate thread reads the lines. It is
/// used only on its loop.
final class Keyboard {
    /// Whether standard input is a terminal.
    static var isTerminal: Bool { isatty(0) == 1 }

    /// The width of the terminal in columns; 80 if there is no terminal.
    static var columns: Int {
        var size = winsize()
        guard ioctl(1, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }

    /// Asks a question and returns the line that the person types; nil at the end of the input.
    /// Text that was typed before the question is discarded.
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
    private var hidden: HiddenInput?

    init(loop: EventLoop) throws(SystemFailure) {
        self.loop = loop
        thread = try WorkerThread(name: "keyboard")
    }

    /// Returns the next line; nil at the end of the input, and when `giveUp` is called. At a
    /// terminal, text that was typed before the question is discarded. A program may write its
    /// answers ahead.
    ///
    /// - Parameters:
    ///   - isHidden: whether a terminal does not show what is typed.
    ///   - ask: prints the question.
    func line(isHidden: Bool = false, _ ask: () -> Void = {}) async -> String? {
        hidden = isHidden ? HiddenInput(takesInterrupts: true) : nil
        defer { showAgain() }
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

    /// Ends the wait for a line; `line` returns nil.
    func giveUp() {
        // The program may end before the waiting task goes on.
        showAgain()
        waiting?.resume(returning: nil)
        waiting = nil
    }

    private func showAgain() {
        hidden?.end()
        hidden = nil
    }

    /// Whether all input was read.
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
