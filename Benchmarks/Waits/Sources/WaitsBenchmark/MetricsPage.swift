import EventLoop
import Glibc
import Measuring

/// The reader of the relay's counters.
struct MetricsPage {
    let port: UInt16
    let loop: EventLoop

    func wait(for series: String, toBe number: Int, unless: () throws -> Void) async throws {
        for _ in 0..<3000 {
            try unless()
            if try value(of: series) == number { return }
            await loop.pause(.milliseconds(10))
        }
        throw Unmeasured("\(series) never was \(number), but \(try value(of: series) ?? -1)")
    }

    private func value(of series: String) throws -> Int? {
        String(decoding: try page(), as: UTF8.self).split(whereSeparator: \.isNewline).lazy
            .filter { $0.hasPrefix("\(series) ") }.compactMap { Int($0.dropFirst(series.count + 1)) }.first
    }

    private func page() throws -> [UInt8] {
        let line = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(line) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(line, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        let question = Array("GET /metrics HTTP/1.1\r\nHost: localhost:\(port)\r\nConnection: close\r\n\r\n".utf8)
        guard isConnected, send(line, question, question.count, 0) == question.count else {
            throw Unmeasured("no metrics on port \(port)")
        }
        var page: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case let count = recv(line, &buffer, buffer.count, 0), count > 0 { page += buffer[..<count] }
        return page
    }
}
