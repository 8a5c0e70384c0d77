import Glibc

/// A running `twoefay-keys`, which ends when the test releases it.
public final class KeyProcess: Sendable {
    private let child: Child
    private let reaper: ProcessReaper

    public static func start(
        _ settings: String, _ arguments: String..., environment: [String: String] = [:]
    ) async throws -> KeyProcess {
        let child = try Child(
            try BuiltProgram.keys.path, ["--config", settings] + arguments, environment: environment)
        let process = KeyProcess(child, try ProcessReaper(of: child.pid))
        try await process.logged("event=keys.started")
        return process
    }

    private init(_ child: Child, _ reaper: ProcessReaper) {
        self.child = child
        self.reaper = reaper
    }

    deinit {
        child.signal(SIGKILL)
        reaper.dismiss()
    }

    public var pid: pid_t { child.pid }
    public var log: String { child.written.errors }

    @discardableResult public func logged(_ part: String, number: Int = 1) async throws -> String {
        try await child.line(.errors, with: part, number: number)
    }

    public func signal(_ number: Int32) { child.signal(number) }

    /// Sends a signal that ends the process, and waits for its end.
    @discardableResult public func end(_ number: Int32) async -> Child.Ended {
        child.signal(number)
        return await child.ended()
    }
}
