import Glibc
import Synchronization
import World

/// The progress of a long command, on standard error beside the result on standard output.
///
/// Purpose: a person at a terminal sees that the command works, and how far it is. The first line comes
/// after a second, and then at most one in each second, so short work writes none. Scripts and logs get
/// nothing but results and errors: without a terminal, and with `--json`, no line is written.
///
/// `ProgressLinesTests.swift` and `ProgressCommandTests.swift` test it.
public final class ProgressLines: Sendable {
    private static let pause = Duration.seconds(1)

    private let isShown: Bool
    private let time: any TimeSource
    private let write: @Sendable (String) -> Void
    private let last: Mutex<Instant>

    /// - Parameter isShown: whether a person sees the lines.
    public init(
        isShown: Bool, time: any TimeSource = SystemTime(),
        write: @escaping @Sendable (String) -> Void = Program.printProgress
    ) {
        self.isShown = isShown
        self.time = time
        self.write = write
        last = Mutex(time.instant())
    }

    /// Writes a line, unless the last one was less than a second ago.
    public func show(_ text: @autoclosure () -> String) {
        guard isShown else { return }
        let now = time.instant()
        let isDue = last.withLock { last in
            guard now - last >= Self.pause else { return false }
            last = now
            return true
        }
        if isDue { write(text()) }
    }

    /// Writes how much of a known amount is done, such as `200 of 5000 tokens`.
    public func show(_ done: Int, of all: Int, _ things: String) { show("\(done) of \(all) \(things)") }

    /// Writes which part of the whole is done, such as `40 % copied`.
    public func show(_ done: Int64, of all: Int64, percent what: String) {
        show("\(all > 0 ? done * 100 / all : 100) % \(what)")
    }
}

extension Invocation {
    /// Whether the person at the terminal sees progress.
    public var showsProgress: Bool {
        if has("json") { return false }
        return host?.showsProgress ?? (isatty(STDERR_FILENO) == 1)
    }

    /// Returns the lines of progress of this command. For a caller of the control socket, they go to the
    /// caller's terminal.
    public func progress(time: any TimeSource = SystemTime()) -> ProgressLines {
        guard let host else { return ProgressLines(isShown: showsProgress, time: time) }
        return ProgressLines(isShown: showsProgress, time: time) { host.showProgress($0) }
    }
}
