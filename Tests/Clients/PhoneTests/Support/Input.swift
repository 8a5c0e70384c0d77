import CLinux
import Glibc
import Synchronization
import TestSupport

/// The standard input of a program, and its writing end.
final class Input: Sendable {
    /// The reading end. `Child` makes its own copy.
    let child: Int32
    private let writer: Mutex<Int32>

    private init(reader: Int32, writer: Int32) {
        child = reader
        self.writer = Mutex(writer)
    }

    static func pipe() throws -> Input {
        var ends: [Int32] = [0, 0]
        guard pipe2(&ends, O_CLOEXEC) == 0 else { throw Child.Problem(description: "pipe2: errno \(errno)") }
        return Input(reader: ends[0], writer: ends[1])
    }

    /// Opens a pseudo-terminal.
    static func terminal() throws -> Input {
        let person = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var number: Int32 = 0
        var locked: Int32 = 0
        // TIOCSPTLCK and TIOCGPTN, which the headers define by macros that Swift cannot import.
        guard person >= 0, ioctl(person, 0x4004_5431, &locked) == 0, ioctl(person, 0x8004_5430, &number) == 0 else {
            throw Child.Problem(description: "no terminal: errno \(errno)")
        }
        return Input(reader: open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC), writer: person)
    }

    deinit {
        close(child)
        end()
    }

    func write(_ text: String) {
        let bytes = Array(text.utf8)
        writer.withLock { _ = Glibc.write($0, bytes, bytes.count) }
    }

    /// Returns the characters that the terminal has shown so far because the person typed them.
    func echoed() -> String {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = writer.withLock { writer in
            var ready = pollfd(fd: writer, events: Int16(POLLIN), revents: 0)
            return poll(&ready, 1, 0) == 1 ? read(writer, &bytes, bytes.count) : 0
        }
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }

    /// Whether the terminal shows what is typed.
    var isEchoing: Bool {
        var attributes = termios()
        return tcgetattr(child, &attributes) == 0 && attributes.c_lflag & tcflag_t(ECHO) != 0
    }

    /// Closes the input.
    func end() {
        writer.withLock { writer in
            if writer >= 0 { close(writer) }
            writer = -1
        }
    }
}
