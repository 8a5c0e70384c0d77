import CLinux
import EventLoop
import Glibc
import Storage

/// A place for heads of the audit outside of the store. Its functions block the thread.
protocol AuditHeadsSink: Sendable {
    /// The place, for messages.
    var name: String { get }
    /// Writes heads.
    ///
    /// - Returns: whether a new file has begun, which needs all heads.
    func write(_ heads: [AuditHead]) throws(AuditHeadsFault) -> Bool
}

/// The reason why heads cannot be written.
struct AuditHeadsFault: Error {
    let text: String
}

/// The heads in a file. They are on the disk when `write` returns.
struct AuditHeadsFile: AuditHeadsSink {
    let name: String

    func write(_ heads: [AuditHead]) throws(AuditHeadsFault) -> Bool {
        // The line break ends a line that was cut, by a full disk or the end of a process.
        let lines = "\n" + heads.map { $0.line + "\n" }.joined()
        do throws(Files.Problem) {
            return try Files.appendDurably(heads.isEmpty ? [] : Array(lines.utf8), to: name)
        } catch {
            throw AuditHeadsFault(text: error.text)
        }
    }
}

/// The heads at the syslog service of this machine, one message for each.
///
/// The messages have the form of `syslog(3)`: services that listen at `/dev/log`, such as journald,
/// expect it there, and not that of RFC 5424. The time of the message is left out, so the service
/// sets it.
///
/// Failures: the service does not run, or does not read for a second. A datagram is not acknowledged, so
/// nobody knows whether the service has stored it.
struct AuditHeadsSyslog: AuditHeadsSink {
    static let tag = "twoefay-audit"
    private static let notice = 5
    private static let patience = timeval(tv_sec: 1, tv_usec: 0)

    let target: SyslogTarget
    var name: String { target.socket }

    func write(_ heads: [AuditHead]) throws(AuditHeadsFault) -> Bool {
        do throws(SystemFailure) {
            // A connection would not outlive a restart of the service.
            let fd = try DatagramSocket.connect(to: target.socket, patience: Self.patience)
            defer { close(fd) }
            for head in heads { try DatagramSocket.send(message(head), to: fd) }
            return false
        } catch {
            throw AuditHeadsFault(text: "\(target.socket): \(error)")
        }
    }

    private func message(_ head: AuditHead) -> [UInt8] {
        Array("<\(target.number * 8 + Self.notice)>\(Self.tag)[\(getpid())]: \(head.line)".utf8)
    }
}

extension Settings {
    /// Returns the place of the heads; nil if the settings name none.
    var auditHeadsSink: (any AuditHeadsSink)? {
        switch auditHeads {
        case nil: nil
        case .file(let file): AuditHeadsFile(name: path(of: file))
        case .syslog(let target): AuditHeadsSyslog(target: target)
        }
    }

    /// Writes the head of a command, which may have run without a relay. The place must exist: a new file
    /// must begin with the heads of all writers, which a relay writes.
    ///
    /// An account that may not write there leaves it to the next relay, as without this function. So
    /// does a command whose write takes longer than `AuditHeadsExport.limit`.
    func writeHead(_ head: AuditHead, complain: (String) -> Void = Program.printError) {
        guard let sink = auditHeadsSink else { return }
        let isDone = BoundedWork.run("audit-head", within: AuditHeadsExport.limit) {
            if Files.exists(sink.name) { _ = try? sink.write([head]) }
            return true
        }
        guard isDone == nil else { return }
        complain(
            "warning: audit.heads: \(sink.name) does not answer within \(AuditHeadsExport.limit.components.seconds) s. "
                + "The command is done, and its head is in the store: the next relay that reaches the place writes it. "
                + "Look at its file system or syslog service.")
    }
}
