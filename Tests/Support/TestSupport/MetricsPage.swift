import Testing

/// The metrics page of a running relay.
public enum MetricsPage {
    /// - Returns: `127.0.0.1:PORT`.
    public static func address(of relay: RunningRelay) async throws -> String {
        let line = try await relay.logged("event=metrics.started")
        let address = line.split(separator: " ").first { $0.hasPrefix("address=") }
        return String(try #require(address).dropFirst("address=".count))
    }

    public static func curl(_ address: String, _ path: String, _ arguments: String...) async throws -> Child.Ended {
        try await Child.run(
            "curl",
            ["--silent", "--show-error", "--include", "--max-time", "60"] + arguments + ["http://\(address)\(path)"])
    }

    /// Returns the sum of all series whose names begin like this.
    public static func number(_ beginning: String, _ page: Child.Ended) -> Int? {
        let values = page.output.split(separator: "\r\n").last?.split(separator: "\n")
            .filter { $0.hasPrefix(beginning) }.map { $0.split(separator: " ").last.flatMap { Int($0) } }
        return values?.isEmpty == false ? values?.reduce(0) { sum, value in value.flatMap { (sum ?? 0) + $0 } } : nil
    }
}
