import Daemon
import Glibc
import Storage
import World

/// A file of `twoefay audit export`, read line by line: it can be larger than the memory.
struct AuditExportFile {
    let path: String
    /// The rows between two reports of progress.
    private static let many = 1000

    /// Checks each line, so that nothing is changed for a file with a fault.
    init(_ path: String, _ progress: ProgressLines) throws(Failure) {
        self.path = path
        var count = 0
        try each { _ in
            count += 1
            if count % Self.many == 0 { progress.show("\(count) rows of the export read") }
        }
        guard count > 0 else {
            throw Failure(
                .failed, "--since: \(path) has no rows",
                next: "Nothing was changed. Give a file of 'twoefay audit export', or leave --since out.")
        }
    }

    /// Calls `body` with each row.
    func each(_ body: (ExportedEvent) throws(Failure) -> Void) throws(Failure) {
        guard let file = fopen(path, "re") else {
            throw Failure(
                errno == ENOENT ? .notFound : .failed, "--since: \(path): \(String(cString: strerror(errno)))",
                next: "Nothing was changed. Give a file of 'twoefay audit export'.")
        }
        defer { fclose(file) }
        var line: UnsafeMutablePointer<CChar>?
        var capacity = 0
        defer { free(line) }
        var number = 0
        while case let length = getline(&line, &capacity, file), length > 0, let line {
            number += 1
            let bytes = UnsafeRawBufferPointer(start: line, count: length)
            let text = bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...]
            let row: ExportedEvent
            do throws(ExportedEvent.Malformed) {
                row = try ExportedEvent(line: text)
            } catch {
                throw Failure(
                    .failed, "\(path):\(number): this line is not a row of the audit: \(error.reason)",
                    next:
                        "Each line is an object, as 'twoefay audit export' writes it. If the end of the file was cut, "
                        + "remove the last line. Otherwise find out who changed the file.")
            }
            try body(row)
        }
        guard ferror(file) == 0 else {
            throw Failure(
                .failed, "--since: \(path) cannot be read to its end",
                next: "Give a file of 'twoefay audit export' that can be read, and run the command again.")
        }
    }
}
