import Crypto
import Glibc
import TLS
import World

/// A server that the relay calls, and how `twoefay doctor` tries to reach it. It sends no message and
/// no password.
struct ReachedEnd: Sendable {
    enum Dialogue: Sendable {
        /// The connection alone, with TLS if `isSecure`.
        case none
        /// A HEAD request, for the date of the answer.
        case http
        /// Greeting, EHLO, and STARTTLS unless TLS begins with the first byte.
        case smtp(name: String, needsLogin: Bool, mayBePlain: Bool)
    }

    let check: String
    /// The key of the setting that names the server.
    let setting: String
    let host: String
    let port: UInt16
    var isSecure = true
    var application = Application.unnamed
    var dialogue = Dialogue.none
    var roots = TLSClientContext.Roots.system
    /// The time that connection and dialogue may take.
    var patience = Self.usualPatience

    static let usualPatience = Duration.seconds(5)
    /// The days before the end of a server's certificate from which its owner should have renewed it.
    private static let soon: Int64 = 14

    private var place: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    func findings(_ facts: HostFacts) -> [Finding] {
        let end = facts.time.instant() + patience
        let connection: EndConnection
        switch EndConnection.open(host, port, until: end, facts.time) {
        case .success(let open): connection = open
        case .failure(let fault): return [failure("cannot be reached: \(fault)")]
        }
        switch dialogue {
        case .smtp(let name, let needsLogin, let mayBePlain):
            return mail(connection, name, needsLogin: needsLogin, mayBePlain: mayBePlain, facts)
        case .none, .http:
            guard isSecure else { return [Finding(check, .ok, "\(place) accepts connections, without TLS")] }
            switch secured(connection, facts) {
            case .failure(let refusal): return [refusal.finding]
            case .success(let certificate):
                return [judged(certificate, "\(place) answers with TLS", facts)] + date(connection, facts)
            }
        }
    }

    // MARK: TLS

    private func secured(_ connection: EndConnection, _ facts: HostFacts) -> Result<Certificate, Refusal> {
        do throws(TLSFailure) {
            let context = try TLSClientContext(roots: roots, application: application)
            switch connection.secure(context, host: host) {
            case .success(let certificate): return .success(certificate)
            case .failure(let fault):
                return .failure(Refusal(failure("the TLS handshake failed: \(fault)\(dates(facts))")))
            }
        } catch {
            return .failure(Refusal(failure("TLS cannot be used: \(error.description)")))
        }
    }

    private struct Refusal: Error {
        let finding: Finding
        init(_ finding: Finding) { self.finding = finding }
    }

    /// Returns the dates of a certificate that was refused, if they are the reason.
    private func dates(_ facts: HostFacts) -> String {
        // With STARTTLS the reason of the refusal has to do.
        guard isSecure,
            let context = try? TLSClientContext(roots: roots, dates: .unchecked, application: application),
            case .success(let again) = EndConnection.open(
                host, port, until: facts.time.instant() + patience, facts.time),
            case .success(let certificate) = again.secure(context, host: host)
        else { return "" }
        let now = facts.time.now()
        if certificate.notAfter < now { return "; its certificate expired at \(certificate.notAfter.rfc3339)" }
        return certificate.notBefore > now
            ? "; its certificate is not valid before \(certificate.notBefore.rfc3339)" : ""
    }

    private func judged(_ certificate: Certificate, _ measured: String, _ facts: HostFacts) -> Finding {
        let days = (certificate.notAfter - facts.time.now()).wholeMilliseconds / 86_400_000
        let text = "\(measured); its certificate ends in \(days) days"
        guard days < Self.soon else { return Finding(check, .ok, text) }
        return Finding(
            check, .warning, text, remedy: "Its owner has to renew it. Afterwards the relay cannot send there.")
    }

    private func failure(_ what: String) -> Finding {
        Finding(
            check, .failure, "\(place): \(what)",
            remedy: "Check '\(setting)' in the settings, the other end, and the firewalls in between.")
    }

    // MARK: HTTP

    /// Compares the clocks, if the server tells its own.
    private func date(_ connection: EndConnection, _ facts: HostFacts) -> [Finding] {
        guard case .http = dialogue else { return [] }
        let begun = facts.time.now()
        guard connection.send("HEAD / HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n") else { return [] }
        while let line = connection.line(), !line.isEmpty {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, parts[0].lowercased() == "date",
                let date = ClockDifference.time(httpDate: String(parts[1].drop { $0 == " " }))
            else { continue }
            return [
                ClockDifference.finding(
                    "clock.\(check)", "the server's", date, between: begun, facts.time.now(), resolution: .seconds(1))
            ]
        }
        return []
    }

    // MARK: Mail

    private func mail(
        _ connection: EndConnection, _ name: String, needsLogin: Bool, mayBePlain: Bool, _ facts: HostFacts
    ) -> [Finding] {
        var certificate: Certificate?
        if isSecure {
            switch secured(connection, facts) {
            case .failure(let refusal): return [refusal.finding]
            case .success(let shown): certificate = shown
            }
        }
        guard let greeting = reply(connection) else { return [failure("no greeting")] }
        guard greeting.code == 220 else { return [failure("the greeting is \(greeting.code) \(greeting.text)")] }
        guard var hello = asked("EHLO \(name)", connection), hello.code == 250 else {
            return [failure("EHLO is refused")]
        }
        if !isSecure, hello.lines.contains(where: { $0.uppercased() == "STARTTLS" }) {
            guard asked("STARTTLS", connection)?.code == 220 else { return [failure("STARTTLS is refused")] }
            switch secured(connection, facts) {
            case .failure(let refusal): return [refusal.finding]
            case .success(let shown): certificate = shown
            }
            guard let again = asked("EHLO \(name)", connection) else { return [failure("no answer to EHLO under TLS")] }
            hello = again
        }
        _ = connection.send("QUIT\r\n")
        guard certificate != nil || mayBePlain else { return [failure("the server does not offer STARTTLS")] }
        if needsLogin, !hello.lines.contains(where: { $0.uppercased().hasPrefix("AUTH ") }) {
            return [failure("the server offers no login, but the settings have a user name")]
        }
        guard let certificate else {
            return [Finding(check, .ok, "\(place) answers EHLO, without TLS on this machine")]
        }
        return [judged(certificate, "\(place) answers EHLO under TLS", facts)]
    }

    private struct Reply {
        let code: Int
        let lines: [String]
        var text: String { String(lines.joined(separator: " ").prefix(200)) }
    }

    private func asked(_ command: String, _ connection: EndConnection) -> Reply? {
        connection.send(command + "\r\n") ? reply(connection) : nil
    }

    /// Reads a reply of SMTP, which may have several lines.
    private func reply(_ connection: EndConnection) -> Reply? {
        var lines: [String] = []
        while lines.count < 100, let line = connection.line() {
            guard let code = Int(line.prefix(3)) else { return nil }
            lines.append(String(line.dropFirst(4)))
            if line.dropFirst(3).first != "-" { return Reply(code: code, lines: lines) }
        }
        return nil
    }
}
