import CLinux
import Glibc
import JSON
import Synchronization
import World

/// The answer to one caller of the control socket, as lines of JSON. Its thread waits until the
/// caller has taken each line.
///
/// A line is one of: `{"out": TEXT}` for the output, `{"progress": TEXT}` if the caller wants it,
/// `{"confirm": TEXT}` if a person must confirm, `{"error": {…}}` as `--json` prints it, and
/// `{"status": WORD}`. The last three end the answer.
final class ControlReply: Sendable {
    /// The characters of one line.
    private static let longest = 8192

    private struct State {
        var isGone = false
        var patience: CallerPatience
        /// The consequence that a person must confirm.
        var question: String?
    }

    private let fd: Int32
    private let stop: ControlStop
    private let state: Mutex<State>

    init(_ fd: Int32, patience: CallerPatience = CallerPatience(), stop: ControlStop = ControlStop()) {
        self.fd = fd
        self.stop = stop
        state = Mutex(State(patience: patience))
    }

    /// The longest time after which a wait looks whether the relay stops, in milliseconds.
    private static let longestWait: Int64 = 100

    /// Whether the caller has left, or does not read, or the relay stops a read.
    var isGone: Bool {
        if state.withLock({ $0.isGone }) { return true }
        var end = pollfd(fd: fd, events: 0, revents: 0)
        guard poll(&end, 1, 0) > 0, end.revents & Int16(POLLHUP) != 0 else { return false }
        state.withLock { $0.isGone = true }
        return true
    }

    func ask(_ consequence: String) { state.withLock { $0.question = consequence } }

    func say(_ text: String) {
        var rest = text[...]
        while !rest.isEmpty, !isGone {
            let part = rest.prefix(Self.longest)
            rest = rest[part.endIndex...]
            send(.object(["out": .string(String(part))]))
        }
    }

    func showProgress(_ text: String) { send(.object(["progress": .string(text)])) }

    func end(_ code: ExitCode) { send(.object(["status": .string(code.word)])) }

    /// Ends with a failure, or with the question for which the command was stopped.
    func end(_ failure: Failure) {
        let question = state.withLock { $0.question }
        send(question.map { .object(["confirm": .string($0)]) } ?? failure.json)
    }

    private func send(_ line: JSONValue) {
        let bytes = JSONWriter.write(line) + [UInt8(ascii: "\n")]
        bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty, !isGone {
                let count = Glibc.send(
                    fd, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count,
                    Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
                if count > 0 {
                    rest = rest.dropFirst(count)
                } else if errno != EINTR, errno != EAGAIN || !waits() {
                    state.withLock { $0.isGone = true }
                }
            }
        }
    }

    /// Waits until the caller has read something. Returns false if it does not, or if the relay stops: a
    /// caller that does not read delays no stop.
    private func waits() -> Bool {
        guard let patience = state.withLock({ $0.patience.next }) else { return false }
        let time = SystemTime()
        let begun = time.instant()
        let end = begun + patience
        defer { state.withLock { $0.patience.count(time.instant() - begun) } }
        var writable = pollfd(fd: fd, events: Int16(POLLOUT), revents: 0)
        while true {
            let rest = max(0, Int64(end.nanoseconds) - Int64(time.instant().nanoseconds)) / 1_000_000
            let count = poll(&writable, 1, Int32(min(rest, Self.longestWait)))
            if count > 0 { return true }
            if count < 0, errno != EINTR { return false }
            if stop.hasBegun || rest == 0 { return false }
        }
    }
}
