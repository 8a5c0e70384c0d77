import EventLoop
import Glibc
import Measuring
import World

/// A process that another program started.
struct Process: Sendable {
    let pid: Int32
    /// The loop on which the methods pause.
    let loop: EventLoop

    /// Returns the memory of the process, in bytes, when it no longer changes.
    func settledMemory() async throws -> Int {
        var last = try memory()
        while true {
            await loop.pause(.milliseconds(500))
            let now = try memory()
            if abs(now - last) <= 64 * 1024 { return now }
            last = now
        }
    }

    private func memory() throws -> Int {
        let text = String(decoding: try read("/proc/\(pid)/status"), as: UTF8.self)
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("RssAnon:") }),
            let kilobytes = line.split(whereSeparator: { !$0.isNumber }).first.flatMap({ Int($0) })
        else { throw Unmeasured("process \(pid) has ended") }
        return kilobytes * 1024
    }

    /// Returns the share of a core that the process uses during `duration`.
    func busy(for duration: Duration) async throws -> Double {
        let time = SystemTime()
        let (began, before) = (time.instant(), try ticks())
        await loop.pause(duration)
        let seconds = Double((time.instant() - began).wholeNanoseconds) / 1e9
        return Double(try ticks() - before) / Double(sysconf(Int32(_SC_CLK_TCK))) / seconds
    }

    private func ticks() throws -> Int {
        let text = String(decoding: try read("/proc/\(pid)/stat"), as: UTF8.self)
        // The name in parentheses may contain any characters.
        let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
        guard fields.count > 13, let user = Int(fields[12]), let system = Int(fields[13]) else {
            throw Unmeasured("process \(pid) has ended")
        }
        return user + system
    }
}

extension EventLoop {
    /// Pauses without blocking, because the caller may be on the loop of the connections.
    func pause(_ duration: Duration) async { await perform { await self.sleep(for: duration) } }
}
