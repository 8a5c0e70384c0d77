import Crypto
import Curl
import HTTP
import KeyService
import Pushes
import TLS
import World

/// The checks of the other ends: the relay itself, its metrics, its key process, and every server
/// that the settings name.
struct ReachChecks: Sendable {
    let settings: Settings
    let facts: HostFacts

    var all: [Check] {
        var checks = [Check("relay", needsNetwork: true) { relay() }]
        if let metrics = settings.metrics {
            checks.append(Check("relay.process", needsNetwork: true) { [process(metrics.place)] })
        }
        if let socket = settings.keys {
            checks.append(Check("key_service") { [keyService(socket)] })
        }
        checks += ends.map { end in Check(end.check, needsNetwork: true) { end.findings(facts) } }
        return checks
    }

    // MARK: The relay

    private func relay() -> [Finding] {
        let origin = settings.origin.settingsText
        let visit: Probe.Visit
        let begun = facts.time.now()
        do throws(Failure) {
            visit = try Probe.visit(
                settings, authority: (try? Files.read(settings.path(of: settings.tls.authority))) ?? [])
        } catch {
            return [Finding("relay", .failure, error.message, remedy: error.next)]
        }
        var findings: [Finding] = []
        switch visit.answer {
        case .silent(let reason):
            return [
                Finding(
                    "relay", .warning, "\(origin) does not answer: \(reason)",
                    remedy: "Start the relay, or correct 'origin'. Check name, port, balancer and firewalls.")
            ]
        case .notReady(let dependencies), .ready(let dependencies):
            let faults = dependencies.filter { $0.value != "ok" }.sorted { $0.key < $1.key }
            var isReady = false
            if case .ready = visit.answer { isReady = true }
            let measured =
                "\(origin) is \(isReady ? "ready" : "not ready")"
                + (faults.isEmpty ? "" : ": " + faults.map { "\($0.key): \($0.value)" }.joined(separator: "; "))
            findings.append(
                Finding(
                    "relay", isReady ? (faults.isEmpty ? .ok : .warning) : .failure, measured,
                    remedy: faults.isEmpty ? nil : "docs/operators/running.md#health explains each dependency."))
        }
        if let date = visit.date {
            findings.append(
                ClockDifference.finding(
                    "clock.relay", "the relay's", date, between: begun, facts.time.now(), resolution: .seconds(1)))
        }
        return findings + shown()
    }

    /// Compares the certificate that the relay shows with the one in the file: they differ if nobody
    /// has reloaded it after a renewal.
    private func shown() -> [Finding] {
        let origin = settings.origin
        guard let pem = try? Files.read(settings.path(of: settings.tls.authority)),
            let chain = try? Files.read(settings.path(of: settings.tls.certificate)),
            let file = (try? Certificate.all(pem: chain))?.first,
            let context = try? TLSClientContext(roots: .systemAnd(pem)),
            case .success(let connection) = EndConnection.open(
                origin.host, origin.port ?? 443, until: facts.time.instant() + ReachedEnd.usualPatience, facts.time),
            case .success(let shown) = connection.secure(context, host: origin.host)
        else { return [] }
        guard shown != file else {
            return [Finding("relay.certificate", .ok, "the relay shows the certificate of tls.certificate")]
        }
        return [
            Finding(
                "relay.certificate", .warning,
                "the relay shows a certificate that ends at \(shown.notAfter.rfc3339), and the file has another one",
                remedy: "Reload the relay (SIGHUP), so that it reads the file. Behind a balancer, reload all relays.")
        ]
    }

    /// Reads the figures of the relay's process from its metrics page.
    private func process(_ place: HostPort) -> Finding {
        let end = facts.time.instant() + ReachedEnd.usualPatience
        let name = "relay.process"
        guard case .success(let connection) = EndConnection.open(place.host, place.port, until: end, facts.time),
            connection.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        else {
            return Finding(
                name, .warning, "\(place.settingsText) (metrics.listen) does not answer",
                remedy: "Start the relay. Without its metrics, nobody is warned of what it counts.")
        }
        var figures: [String: Int64] = [:]
        var version: String?
        while let line = connection.line() {
            let parts = line.split(separator: " ")
            guard parts.count == 2 else { continue }
            figures[String(parts[0])] = Int64(parts[1])
            if parts[0].hasPrefix("twoefay_build_info{") {
                version = parts[0].split(separator: "\"").dropFirst().first.map(String.init)
            }
        }
        guard let open = figures["process_open_fds"], let limit = figures["process_max_fds"] else {
            return Finding(
                name, .warning, "\(place.settingsText) does not answer with the metrics of a relay",
                remedy: "Another program may listen there: correct metrics.listen.")
        }
        let measured = "\(open) of \(limit) descriptors are open, version \(version ?? "unknown")"
        if open * 10 > limit * 8 {
            return Finding(
                name, .failure, measured, remedy: "Raise LimitNOFILE=; docs/operators/limits.md says who uses them.")
        }
        if let version, version != Program.version {
            return Finding(
                name, .warning, "\(measured); this program is \(Program.version)",
                remedy: "Restart the relay, if the package was updated.")
        }
        return Finding(name, .ok, measured)
    }

    private func keyService(_ socket: SocketName) -> Finding {
        let path = settings.path(of: socket)
        guard let fault = KeyServiceClient(path: path).fault else {
            return Finding("key_service", .ok, "twoefay-keys accepts connections at \(path)")
        }
        return Finding(
            "key_service", .failure, fault, remedy: "Start twoefay-keys; docs/operators/key-service.md.")
    }
}

// MARK: The servers of the settings

extension ReachChecks {
    private var ends: [ReachedEnd] {
        var ends: [ReachedEnd] = []
        if settings.push.topic != nil {
            let endpoint = settings.push.endpoint
            ends.append(
                ReachedEnd(
                    check: "push.apns", setting: "push.apns.endpoint", host: endpoint.host, port: endpoint.port ?? 443,
                    application: .http2, roots: roots(settings.push.authority)))
        }
        ends += fcm
        if let url = settings.mail.url {
            ends.append(
                mail(
                    "mail", "mail.url", url, settings.mail.authority, login: settings.mail.username != nil))
        }
        if let url = settings.est.url?.url {
            ends.append(web("est", "est.url", url, settings.est.authority.map { .only($0) } ?? .system))
        }
        return ends + settings.texts.gateways.all.compactMap(gateway) + settings.directories.all.flatMap(directory)
    }

    /// FCM, and the host that issues access tokens. A file that cannot be read is a finding of
    /// 'settings'.
    private var fcm: [ReachedEnd] {
        guard let file = settings.fcm.account else { return [] }
        let roots = roots(settings.fcm.authority)
        func end(_ setting: String, _ host: String, _ port: UInt16) -> ReachedEnd {
            ReachedEnd(check: "push.fcm", setting: setting, host: host, port: port, application: .http2, roots: roots)
        }
        let endpoint = settings.fcm.endpoint
        let json = try? Files.readSecret(settings.path(of: file))
        let tokens = json.flatMap { try? FCMServiceAccount(json: $0).tokenEndpoint }
        return [end("push.fcm.endpoint", endpoint.host, endpoint.port ?? 443)]
            + (tokens.map { [end("push.fcm.account", $0.host, $0.port)] } ?? [])
    }

    /// The authorities that the relay trusts for a server.
    private enum Trust {
        case system
        case also(FileName)
        case only(FileName)
    }

    private func roots(_ file: FileName?) -> TLSClientContext.Roots { roots(file.map { .also($0) } ?? .system) }

    private func roots(_ trust: Trust) -> TLSClientContext.Roots {
        let read = { (file: FileName) in try? Files.read(settings.path(of: file)) }
        switch trust {
        case .system: return .system
        // A file that cannot be read is a finding of 'settings'.
        case .also(let file): return read(file).map { .systemAnd($0) } ?? .system
        case .only(let file): return read(file).map { .pem($0) } ?? .system
        }
    }

    private func web(_ check: String, _ setting: String, _ url: TransferURL, _ trust: Trust) -> ReachedEnd {
        ReachedEnd(
            check: check, setting: setting, host: url.host, port: url.port ?? (url.secure ? 443 : 80),
            isSecure: url.secure, dialogue: .http, roots: roots(trust))
    }

    private func mail(
        _ check: String, _ setting: String, _ url: SMTPAddress, _ authority: FileName?, login: Bool
    ) -> ReachedEnd {
        let isHere = ["localhost", "::1"].contains(url.host) || url.host.hasPrefix("127.")
        return ReachedEnd(
            check: check, setting: setting, host: url.host, port: url.port ?? (url.isImplicitTLS ? 465 : 25),
            isSecure: url.isImplicitTLS,
            dialogue: .smtp(
                name: settings.origin.host, needsLogin: login, mayBePlain: isHere && !login && authority == nil),
            roots: roots(authority))
    }

    private func gateway(_ gateway: Settings.SMSGatewaySettings) -> ReachedEnd? {
        let (check, setting) = ("sms.\(gateway.name)", "sms.gateways, \(gateway.name)")
        switch gateway.kind {
        case .kannel(let http, _, _, _), .twilio(let http, _, _, _), .plain(let http, _):
            // Only the path and the query can have gaps.
            let base = http.url.prefix { $0 != "{" && $0 != "?" }
            return TransferURL(String(base)).map {
                web(check, setting, $0, http.authority.map { .also($0) } ?? .system)
            }
        case .smpp(let line):
            return ReachedEnd(
                check: check, setting: setting, host: line.host, port: line.port, isSecure: line.isTLS,
                roots: roots(line.authority))
        case .mail(let mailed):
            // Without a server of its own, it uses that of 'mail'.
            return mailed.url.map { mail(check, setting, $0, mailed.authority, login: mailed.username != nil) }
        }
    }

    private func directory(_ directory: Settings.DirectorySettings) -> [ReachedEnd] {
        guard case .ldap(let server) = directory.kind else { return [] }
        let urls = server.urls.compactMap { url -> (host: String, port: UInt16, isSecure: Bool)? in
            let isSecure = url.hasPrefix("ldaps://")
            let place = url.drop { $0 != "/" }.drop { $0 == "/" }
            guard let (host, port) = WebAddress.split(String(place.prefix { $0 != "/" })) else { return nil }
            return (host, port ?? (isSecure ? 636 : 389), isSecure)
        }
        return urls.enumerated().map { index, url in
            ReachedEnd(
                check: "directories.\(directory.name)" + (urls.count > 1 ? ".\(index + 1)" : ""),
                setting: "directories, \(directory.name)", host: url.host, port: url.port, isSecure: url.isSecure,
                roots: roots(server.authority.map { .only($0) } ?? .system))
        }
    }
}
