import CLinux
import Glibc
import JSON

/// What both programs do around their work: read arguments, print what came of it, and end with the right status.
public enum Program {
    public static let version = "0.1.0"

    public static let sharedOptions: [Command.Option] = [
        .init("json", .nothing, "Print results and errors as JSON, for programs."),
        .init("version", .nothing, "Print the version, and do nothing."),
    ]

    /// Results go to standard output, failures to standard error. Returns the exit status.
    ///
    /// - Parameter complain: writes to standard error.
    public static func run(
        _ reader: CommandLineReader, _ arguments: [String], complain: (String) -> Void = Program.printError,
        work: (Invocation) throws(Failure) -> Report
    ) -> Int32 {
        // What the programs write is nobody else's unless they say so.
        umask(0o077)
        if arguments == ["--version"] {
            print(version)
            return ExitCode.ok.rawValue
        }
        do throws(Failure) {
            switch try reader.read(arguments) {
            case .help(let text):
                print(text, terminator: "")
                return ExitCode.ok.rawValue
            case .run(let invocation):
                let report = try work(invocation)
                let text = invocation.has("json") ? line(report.json) : report.text
                if !text.isEmpty { print(text) }
                return report.code.rawValue
            }
        } catch {
            complain(arguments.contains("--json") ? line(error.json) : "\(reader.program): \(error.text)")
            return error.code.rawValue
        }
    }

    private static func line(_ value: JSONValue) -> String {
        String(decoding: JSONWriter.write(value), as: UTF8.self)
    }

    /// On standard error, at once: how far it is, beside the result that goes to standard output.
    public static func tell(_ text: String) { printError(text) }

    public static func printError(_ text: String) { write(text + "\n") { Int(clinux_write_stderr($0, $1)) } }

    /// The same for a service: a reader of standard error that stands still does not keep it from ending.
    static func printErrorWithinDeadline(_ text: String) {
        write(text + "\n") { bytes, count in
            var ready = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
            guard poll(&ready, 1, 2000) > 0 else { return 0 }
            // A pipe that is ready takes this much without waiting.
            return Int(clinux_write_stderr(bytes, min(count, Int(PIPE_BUF))))
        }
    }

    /// On standard output, at once: for commands that tell what happens while it happens.
    public static func say(_ text: String) { write(text) { Glibc.write(1, $0, $1) } }

    private static func write(_ text: String, with write: (UnsafeRawPointer?, Int) -> Int) {
        var text = text
        text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while !rest.isEmpty {
                let count = write(rest.baseAddress, rest.count)
                if count < 0 && errno == EINTR { continue }
                // Who closes the pipe has seen enough.
                if count <= 0 { return }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
        }
    }
}
