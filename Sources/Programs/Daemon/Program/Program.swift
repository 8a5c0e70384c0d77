import CLinux
import Crypto
import Glibc
import JSON

/// The common part of each program: it reads arguments, prints the result, and ends with the exit
/// status.
public enum Program {
    public static let version = "0.1.0"

    public static let sharedOptions: [Command.Option] = [
        .init("json", .nothing, "Print results and errors as JSON, for programs."),
        .init("version", .nothing, "Print the version."),
    ]

    /// The option of commands that change something.
    public static let reasonOption = Command.Option(
        "reason", .one("TEXT"), "The reason for the change, for the audit.")

    /// Runs the command. Results go to standard output, failures to standard error. Returns the
    /// exit status.
    ///
    /// - Parameter complain: writes to standard error.
    public static func run(
        _ reader: CommandLineReader, _ arguments: [String], complain: (String) -> Void = Program.printError,
        work: (Invocation) throws(Failure) -> Report
    ) -> Int32 {
        CryptoAtExit.keepUsable()
        // Files of the programs are private unless a call sets other permissions.
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
                let text = printed(report, asJSON: invocation.has("json"))
                if !text.isEmpty { print(text) }
                return report.code.rawValue
            }
        } catch {
            complain(arguments.contains("--json") ? line(error.json) : "\(reader.program): \(error.text)")
            return error.code.rawValue
        }
    }

    /// Returns what is printed of a result.
    static func printed(_ report: Report, asJSON: Bool) -> String {
        if report.isPrinted { return "" }
        return asJSON ? line(report.json) : report.text
    }

    private static func line(_ value: JSONValue) -> String {
        String(decoding: JSONWriter.write(value), as: UTF8.self)
    }

    /// Writes progress to standard error at once, beside the result on standard output.
    public static func printProgress(_ text: String) { printError(text) }

    public static func printError(_ text: String) { write(text + "\n") { Int(clinux_write_stderr($0, $1)) } }

    /// Writes to standard error with a deadline, for a service. If the reader stalls, the process
    /// can still end.
    static func printErrorWithinDeadline(_ text: String) {
        write(text + "\n") { bytes, count in
            var ready = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
            guard poll(&ready, 1, 2000) > 0 else { return 0 }
            // A pipe that is ready takes this much without blocking.
            return Int(clinux_write_stderr(bytes, min(count, Int(PIPE_BUF))))
        }
    }

    /// Writes to standard output at once, for commands that report events as they happen.
    public static func say(_ text: String) { write(text) { Glibc.write(1, $0, $1) } }

    private static func write(_ text: String, with write: (UnsafeRawPointer?, Int) -> Int) {
        var text = text
        text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while !rest.isEmpty {
                let count = write(rest.baseAddress, rest.count)
                if count < 0 && errno == EINTR { continue }
                // A reader that has closed the pipe needs no more output.
                if count <= 0 { return }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
        }
    }
}
