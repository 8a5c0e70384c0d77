import Bytes
import CLDAP
import CLinux
import EventLoop
import Glibc
import World

/// A connection to an LDAP server, over libldap.
///
/// libldap blocks, so a connection belongs to one thread that is no loop. Each wait has a limit:
/// libldap's own for connecting, handshakes and results, and the socket's for a peer that stops in
/// the middle of a message. All of them together have one, too, which a watchdog keeps. Every
/// option is set here, because libldap would otherwise take it from `ldap.conf` or from the
/// environment. Referrals are not followed: the password would go to a server that an answer chose.
///
/// TLS begins with the first byte, and the certificate is verified before libldap parses a message.
/// StartTLS parses some earlier, and libldap ends the process for a notice that has no name (in
/// version 2.5, an assertion of `try_read1msg`). Anybody on the path could send that notice.
///
/// Tested with slapd in `LDAPSourceTests.swift`, and with hostile servers in
/// `HostileServerTests.swift`.
final class LDAPConnection {
    private let handle: OpaquePointer
    private let server: LDAPServer
    private let limits: LDAPLimits
    private let time: any TimeSource
    /// The time at which all searches must have ended.
    private let end: Instant
    private let watchdog = LDAPWatchdog()
    private let callbacks: UnsafeMutablePointer<ldap_conncb>

    init(_ server: LDAPServer, limits: LDAPLimits, time: any TimeSource) throws(LDAPFailure) {
        // A server that closes its connection must not end this process.
        signal(SIGPIPE, SIG_IGN)
        for url in server.urls {
            if let fault = LDAPServer.fault(of: url, isPlain: server.isPlain) {
                throw LDAPFailure(.unreachable, "url \(fault)")
            }
        }
        var made: OpaquePointer?
        guard ldap_initialize(&made, server.urls.joined(separator: " ")) == LDAP_SUCCESS, let made else {
            throw LDAPFailure(.unreachable, "libldap does not accept \(server.urls.joined(separator: " "))")
        }
        handle = made
        self.server = server
        self.limits = limits
        self.time = time
        end = time.instant() + limits.total
        callbacks = .allocate(capacity: 1)
        callbacks.initialize(
            to: ldap_conncb(
                lc_add: connectionBegins, lc_del: connectionEnds, lc_arg: Unmanaged.passUnretained(watchdog).toOpaque())
        )
        do throws(SystemFailure) {
            try watchdog.start(limits.total)
        } catch {
            throw LDAPFailure(.unreachable, "the time limit cannot be kept: \(error)")
        }
        try configure()
        try connect()
        try bind()
    }

    deinit {
        // The watchdog limits this, too: libldap writes to the server.
        ldap_unbind_ext_s(handle, nil, nil)
        watchdog.stop()
        callbacks.deallocate()
    }

    private func configure() throws(LDAPFailure) {
        var version = LDAP_VERSION3
        var (never, always) = (Int32(LDAP_DEREF_NEVER), Int32(LDAP_OPT_X_TLS_DEMAND))
        var wait = timeval(tv_sec: Int(server.timeout.components.seconds), tv_usec: 0)
        var oldest = Int32(3 << 8 | 3)
        var (unlimited, client) = (Int32(0), Int32(0))
        var isSet =
            ldap_set_option(handle, LDAP_OPT_PROTOCOL_VERSION, &version) == LDAP_SUCCESS
            && ldap_set_option(handle, LDAP_OPT_DEREF, &never) == LDAP_SUCCESS
            && ldap_set_option(handle, LDAP_OPT_SIZELIMIT, &unlimited) == LDAP_SUCCESS
            && ldap_set_option(handle, LDAP_OPT_TIMELIMIT, &unlimited) == LDAP_SUCCESS
            && ldap_set_option(handle, LDAP_OPT_NETWORK_TIMEOUT, &wait) == LDAP_SUCCESS
            && ldap_set_option(handle, LDAP_OPT_TIMEOUT, &wait) == LDAP_SUCCESS
            && ldap_set_option(handle, LDAP_OPT_CONNECT_CB, callbacks) == LDAP_SUCCESS
            && cldap_refuse_referrals(handle) == LDAP_SUCCESS
            && cldap_limit_message(handle, ber_len_t(limits.message)) == 1
        isSet =
            isSet
            && ldap_set_option(handle, LDAP_OPT_X_TLS_CACERTFILE, server.authority ?? Self.machinesTrust)
                == LDAP_SUCCESS
            && ldap_set_option(handle, LDAP_OPT_X_TLS_REQUIRE_CERT, &always) == LDAP_SUCCESS
            && ldap_set_option(handle, LDAP_OPT_X_TLS_PROTOCOL_MIN, &oldest) == LDAP_SUCCESS
            // The context is made from these options now, and a file that cannot be read fails here.
            && ldap_set_option(handle, LDAP_OPT_X_TLS_NEWCTX, &client) == LDAP_SUCCESS
        guard isSet else {
            throw LDAPFailure(
                .certificate, "the authority cannot be used: \(server.authority ?? Self.machinesTrust)")
        }
    }

    private static let machinesTrust = "/etc/ssl/certs/ca-certificates.crt"

    private func connect() throws(LDAPFailure) {
        try check(ldap_connect(handle), "cannot connect", otherwise: .unreachable)
        try limitSocket()
    }

    /// Limits each read and write, also within a message, where libldap itself would wait for ever.
    private func limitSocket() throws(LDAPFailure) {
        var descriptor: Int32 = -1
        var wait = timeval(tv_sec: Int(server.timeout.components.seconds), tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        guard ldap_get_option(handle, LDAP_OPT_DESC, &descriptor) == LDAP_SUCCESS,
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &wait, size) == 0,
            setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &wait, size) == 0
        else { throw LDAPFailure(.unreachable, "the socket cannot be limited") }
    }

    private func bind() throws(LDAPFailure) {
        let status =
            if let account = server.account {
                // A simple bind without a password is an anonymous one (RFC 4513 §5.1.2).
                account.password.withBytes { bytes in
                    bytes.isEmpty
                        ? LDAP_INVALID_CREDENTIALS
                        : cldap_bind(handle, account.dn, bytes.baseAddress, ber_len_t(bytes.count))
                }
            } else {
                cldap_bind(handle, "", nil, 0)
            }
        try check(status, "the bind failed", otherwise: .credentials)
    }
}

/// The search, page by page (RFC 2696).
extension LDAPConnection {
    /// Calls `each` for every entry below `base`. It returns only after the server has reported the
    /// end of the last page; whatever ends a search earlier is a failure.
    func search(
        _ filter: String, below base: String, attributes: [String], pageSize: Int,
        each: (LDAPEntry) throws(LDAPFailure) -> Void
    ) throws(LDAPFailure) {
        var names: [UnsafeMutablePointer<CChar>?] = attributes.map { strdup($0) } + [nil]
        defer { for name in names { free(name) } }
        var page = LDAPPage()
        repeat {
            let control = try page.control(handle, size: pageSize)
            defer { ldap_control_free(control) }
            var id: Int32 = 0
            try check(
                cldap_search(handle, base, filter, &names, control, &id), "the search cannot be sent",
                otherwise: .refused)
            try readPage(id, into: &page, each: each)
        } while page.isMore
    }

    private func readPage(
        _ id: Int32, into page: inout LDAPPage, each: (LDAPEntry) throws(LDAPFailure) -> Void
    ) throws(LDAPFailure) {
        while true {
            guard time.instant() < end else { throw overdue }
            var wait = timeval(tv_sec: Int(server.timeout.components.seconds), tv_usec: 0)
            var message: OpaquePointer?
            let kind = ldap_result(handle, id, LDAP_MSG_ONE, &wait, &message)
            defer { if let message { ldap_msgfree(message) } }
            guard kind > 0, let message else {
                if kind == 0 { throw LDAPFailure(.timeout, "the server stopped answering in the middle of the search") }
                throw failure(lastStatus, "the connection ended in the middle of the search", .unreachable)
            }
            if cldap_is_entry(message) != 0 {
                page.count += 1
                guard page.count <= limits.entries else {
                    throw LDAPFailure(.tooLarge, "the directory has more than \(limits.entries) entries")
                }
                try each(try LDAPEntry(message, of: handle, limits))
            } else if cldap_is_result(message) != 0 {
                return try endPage(message, &page)
            }
            // Other messages are references to other servers, which are not followed.
        }
    }

    private func endPage(_ message: OpaquePointer, _ page: inout LDAPPage) throws(LDAPFailure) {
        var status: Int32 = 0
        var text: UnsafeMutablePointer<CChar>?
        var controls: UnsafeMutablePointer<UnsafeMutablePointer<LDAPControl>?>?
        let parsed = ldap_parse_result(handle, message, &status, nil, &text, nil, &controls, 0)
        defer {
            ldap_memfree(text)
            ldap_controls_free(controls)
        }
        guard parsed == LDAP_SUCCESS else {
            throw LDAPFailure(.malformed, "the end of the search cannot be read")
        }
        switch status {
        case LDAP_SUCCESS: break
        case LDAP_SIZELIMIT_EXCEEDED, LDAP_TIMELIMIT_EXCEEDED, LDAP_ADMINLIMIT_EXCEEDED, LDAP_PARTIAL_RESULTS:
            throw failure(status, "the server returned only a part of the entries", .incomplete)
        default: throw failure(status, "the search failed", .refused)
        }
        try page.end(handle, controls)
    }
}

/// Errors, with the text of the server.
extension LDAPConnection {
    private var lastStatus: Int32 {
        var status = LDAP_SERVER_DOWN
        ldap_get_option(handle, LDAP_OPT_RESULT_CODE, &status)
        return status
    }

    private func check(_ status: Int32, _ what: String, otherwise kind: LDAPFailure.Kind) throws(LDAPFailure) {
        guard status != LDAP_SUCCESS else { return }
        throw failure(status, what, kind)
    }

    private var overdue: LDAPFailure {
        LDAPFailure(.timeout, "the directory was not read to its end within \(limits.total.components.seconds) seconds")
    }

    private func failure(_ status: Int32, _ what: String, _ otherwise: LDAPFailure.Kind) -> LDAPFailure {
        guard !watchdog.hasFired else { return overdue }
        var kind = otherwise
        var text: UnsafeMutablePointer<CChar>?
        ldap_get_option(handle, LDAP_OPT_DIAGNOSTIC_MESSAGE, &text)
        let detail = text.map { String(cString: $0) } ?? ""
        ldap_memfree(text)
        switch status {
        case LDAP_TIMEOUT: kind = .timeout
        case LDAP_DECODING_ERROR: return LDAPFailure(.malformed, "\(what): the server sent something that is not LDAP")
        case LDAP_INVALID_CREDENTIALS, LDAP_INAPPROPRIATE_AUTH: kind = .credentials
        case LDAP_SERVER_DOWN where !detail.isEmpty: kind = .certificate
        case LDAP_SERVER_DOWN: kind = .unreachable
        default: break
        }
        // libldap has no text for most errors of its TLS library.
        let isKnown = !detail.isEmpty && !detail.contains("unknown error code")
        let reason =
            kind == .certificate && !isKnown ? "the TLS handshake failed" : String(cString: ldap_err2string(status))
        return LDAPFailure(kind, Self.printable("\(what): \(reason)\(isKnown ? " (\(detail))" : "")"))
    }

    /// Returns the text with its control characters replaced, at most 300 characters of it.
    private static func printable(_ text: String) -> String {
        var shown = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(300) {
            let isPlain = (0x20..<0x7f).contains(scalar.value)
            shown.append(isPlain ? scalar : "?")
        }
        return String(shown)
    }
}

// MARK: Callbacks

/// Watches a new connection, before its handshake. A result other than 0 ends the connection.
private nonisolated func connectionBegins(
    _ handle: OpaquePointer?, _ buffer: OpaquePointer?, _ url: UnsafeMutablePointer<LDAPURLDesc>?,
    _ address: UnsafeMutablePointer<sockaddr>?, _ callbacks: UnsafeMutablePointer<ldap_conncb>?
) -> Int32 {
    var descriptor: Int32 = -1
    guard let context = callbacks?.pointee.lc_arg,
        ber_sockbuf_ctrl(buffer, LBER_SB_OPT_GET_FD, &descriptor) == 1
    else { return -1 }
    let watchdog = Unmanaged<LDAPWatchdog>.fromOpaque(context).takeUnretainedValue()
    return (try? watchdog.watch(descriptor)) == nil ? -1 : 0
}

/// Does nothing: the watchdog's descriptor is its own. libldap requires the callback.
private nonisolated func connectionEnds(
    _ handle: OpaquePointer?, _ buffer: OpaquePointer?, _ callbacks: UnsafeMutablePointer<ldap_conncb>?
) {}
