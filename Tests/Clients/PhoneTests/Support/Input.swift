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

    /// Closes the input.
    func end() {
        writer.withLock { writer in
            if writer >= 0 { close(writer) }
            writer = -1
        }
    }
}
