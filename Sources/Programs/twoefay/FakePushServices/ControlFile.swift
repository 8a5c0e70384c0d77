import Daemon
import FakePushServices

/// A control file, and its contents when it was read last.
struct ControlFile {
    let path: String
    private let kind: FakeServiceKind
    private(set) var control: Control
    private var mark: FileMark

    init(_ path: String, of kind: FakeServiceKind) throws(Failure) {
        self.path = path
        self.kind = kind
        control = Control(of: kind)
        mark = FileMark(path)
        try read()
    }

    func hasChanged() -> Bool { FileMark(path) != mark }

    /// Reads the file. After a failure the earlier contents stay in force, and the failure is not
    /// reported again until the file changes again.
    mutating func read() throws(Failure) {
        // The mark is taken first, so that a write during the read is detected at the next check.
        mark = FileMark(path)
        let bytes: [UInt8]
        do throws(Files.Problem) { bytes = try Files.read(path) } catch {
            throw Failure(.notFound, error.text, next: "To create one: twoefay \(kind.command) --example > \(path)")
        }
        do throws(ControlReader.Problems) { control = try ControlReader.read(bytes, file: path, for: kind) } catch {
            throw Failure(
                .failed, error.description,
                next: "'twoefay \(kind.command) --example' prints a valid one with explanations.")
        }
    }
}

extension FakeServiceKind {
    /// The command that runs the service.
    var command: String { self == .apns ? "fake-apns" : "fake-fcm" }
}
