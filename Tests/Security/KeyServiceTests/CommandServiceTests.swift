import Crypto
import Domain
import Glibc
import Relay
import TestSupport
import Testing
import World

@testable import KeyService

/// Certificates from a command, through the launcher, the key server, its client and the checks.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CommandServiceTests {
    private let place: TemporaryDirectory
    private let authority: CertificateAuthority
    private let key: P256PrivateKey
    private let device: DeviceID
    private let time = SystemTime()

    init() throws {
        place = try TemporaryDirectory()
        authority = try CertificateAuthority.create(commonName: "outside", days: 1000, at: time.now())
        key = try P256PrivateKey.generate()
        device = try #require(ServedKeys.device())
    }

    private func order(tag: String? = nil, renews: Bool = false) throws -> CertificateOrder {
        let tag = try tag.map { try #require(CertificateTag($0[...])) }
        return try .signed(of: device, key: key, tag: tag, renews: renews)
    }

    private func right(
        _ order: CertificateOrder? = nil, _ change: (inout CertificateRequest) -> Void = { _ in }
    ) throws -> Certificate {
        let order = try order ?? self.order()
        return try authority.certificate(
            for: try #require(order.request), usage: order.tag == nil ? .clientAuth : .documentSigning, change)
    }

    /// Has a command run for an order, and returns the checked certificate or the failure.
    private func outcome(
        _ command: [String], _ order: CertificateOrder? = nil, timeout: Duration = .seconds(60)
    ) async throws -> (result: Result<Certificate, CertificateFailure>, log: String) {
        // Both ends wait for longer than the command may run: the launcher's start takes time, too.
        var limits = KeyServer.Limits()
        limits.request = .seconds(60)
        let served = try await ServedKeys(limits: limits, command: command, timeout: timeout)
        let issuer = try CommandIssuer(served.client, issuesTagged: true, timeout: .seconds(60), time: time)
        let outside = OutsideAuthority(issuer, root: authority.certificate, time: time)
        let order = try order ?? self.order()
        let issued: Result<String, CertificateFailure>
        do throws(CertificateFailure) {
            issued = .success(try await outside.certificate(order, at: time.now()))
        } catch {
            issued = .failure(error)
        }
        issuer.close()
        await served.stop()
        let log = served.sink.lines.joined(separator: "\n")
        switch issued {
        case .success(let pem): return (.success(try Certificate(pem: Array(pem.utf8))), log)
        case .failure(let failure): return (.failure(failure), log)
        }
    }

    private func writing(_ bytes: [UInt8]) throws -> [String] {
        try TextFile.write(bytes, to: place("answer"))
        return ["/bin/cat", place("answer")]
    }

    private func script(_ text: String) -> [String] { ["/bin/sh", "-c", text] }

    @Test(arguments: [nil, "sign", "legacy:raw"]) func certificateIsIssued(tag: String?) async throws {
        let order = try order(tag: tag)
        let certificate = try right(order)
        let (found, log) = try await outcome(try writing(try certificate.pem()), order)
        #expect(try found.get() == certificate)
        #expect(log.contains("level=info event=keys.command device=\(device.text)"), "\(log)")
    }

    /// In the forms in which programs write them.
    @Test func everyFormIsRead() async throws {
        let certificate = try right()
        let chain = [authority.certificate, certificate]
        let message = CertsOnly.message(chain.map(\.der))
        try TextFile.write(message, to: place("message"))
        let pem = try await Child.run("openssl", ["pkcs7", "-inform", "DER", "-in", place("message")])
        try #require(pem.status == 0 && pem.output.contains("BEGIN PKCS7"), "\(pem)")
        for form in [
            try chain.flatMap { try $0.pem() }, Array("Certificate:\n    Data:\n".utf8) + (try certificate.pem()),
            message, CertsOnly.base64(chain), Array(pem.output.utf8),
        ] {
            #expect(try await outcome(try writing(form)).result.get() == certificate)
        }
    }

    /// A lying command, by what the log must say about it.
    @Test(arguments: [
        "no certificate for the key of the request", "name: ", "name: its names are none", "purpose: it is the",
        "purpose: its extended", "validity: ", "path: ", "2 certificates for the key",
        "wrote no certificates (9 bytes)",
        "wrote no certificates (0 bytes)", "wrote no certificate for the key",
    ])
    func lieIsRefused(says: String) async throws {
        let other = try P256PrivateKey.generate().publicKey
        let stranger = try CertificateAuthority.create(commonName: "outside", days: 1000, at: time.now())
        let order = try order()
        let request = try #require(order.request)
        let now = time.now()
        let lie: [UInt8] =
            switch says {
            case "no certificate for the key of the request": try right { $0.key = other }.pem()
            case "name: ": try right { $0.names = [.uri("twoefay:device:00")] }.pem()
            case "name: its names are none": try right { $0.names = [] }.pem()
            case "purpose: it is the": try right { $0.isAuthority = true }.pem()
            case "purpose: its extended": try right { $0.usages = [.clientAuth, .serverAuth] }.pem()
            case "validity: ":
                try right {
                    $0.notBefore = now - .seconds(7200)
                    $0.notAfter = now - .seconds(3600)
                }.pem()
            case "path: ": try stranger.certificate(for: request, usage: .clientAuth).pem()
            case "2 certificates for the key": try right().pem() + right { $0.notAfter = now + .seconds(86_400) }.pem()
            case "wrote no certificates (9 bytes)": Array("no bytes\n".utf8)
            case "wrote no certificates (0 bytes)": []
            default: try authority.certificatePEM()
            }
        let (found, _) = try await outcome(try writing(lie))
        guard case .failure(.failed(let reason)) = found else {
            Issue.record("\(found)")
            return
        }
        #expect(reason.contains(says), "\(reason)")
    }

    @Test func endOfTheCommandHasItsMeaning() async throws {
        let ends: [(String, CertificateFailure)] = [
            ("exit 75", .later("the key service says: the command ended with status 75", .seconds(3600))),
            ("echo 120; exit 75", .later("the key service says: the command ended with status 75", .seconds(120))),
            ("echo 0; exit 75", .later("the key service says: the command ended with status 75", .seconds(1))),
            ("echo soon; exit 75", .later("the key service says: the command ended with status 75", .seconds(3600))),
            (
                "echo 99999999999; echo wait >&2; exit 75",
                .later("the key service says: the command ended with status 75: wait", .seconds(86_400))
            ),
            ("exit 69", .unavailable("the key service says: the command ended with status 69")),
            ("kill -15 $$", .unavailable("the key service says: the command was ended by signal 15")),
            ("echo no >&2; exit 1", .failed("the key service says: the command ended with status 1: no")),
            ("exec cat /dev/zero", .failed("the key service says: the command wrote more than 65536 bytes")),
        ]
        for (text, failure) in ends {
            let (found, log) = try await outcome(script(text))
            #expect(found == .failure(failure), "\(text)")
            #expect(log.contains("level=warning event=keys.command device=\(device.text)"), "\(log)")
        }
        let (hung, _) = try await outcome(script("exec tail -f /dev/null"), timeout: .milliseconds(50))
        #expect(hung == .failure(.unavailable("the key service says: the command did not end within 50 ms")))
        let (missing, _) = try await outcome([place("nothing")])
        guard case .failure(.failed(let reason)) = missing else {
            Issue.record("\(missing)")
            return
        }
        #expect(reason.contains("cannot be started"), "\(reason)")
    }

    /// Four runs are under way, so a fifth is refused at once, by the same relay or for another one.
    /// The end of the server ends them all.
    @Test func runsAtOnceAreLimited() async throws {
        try #require(mkfifo(place("begun"), 0o600) == 0)
        // Opened for writing, too, so that no end is read while a command begins.
        let begun = open(place("begun"), O_RDWR)
        defer { close(begun) }
        let served = try await ServedKeys(command: script("printf x > '\(place("begun"))'; exec tail -f /dev/null"))
        let issuers = try (0..<2).map { _ in
            try CommandIssuer(served.client, issuesTagged: true, timeout: .seconds(60), time: time)
        }
        let order = try order()
        let request = try #require(order.request)
        @Sendable func ask(_ issuer: CommandIssuer) async -> CertificateFailure? {
            do throws(CertificateFailure) {
                _ = try await issuer.issue(order, request)
                return nil
            } catch {
                return error
            }
        }
        async let waiting = withTaskGroup(of: CertificateFailure?.self) { group in
            for _ in 0..<CommandLauncher.mostAtOnce { group.addTask { await ask(issuers[0]) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        var byte: UInt8 = 0
        for _ in 0..<CommandLauncher.mostAtOnce { #expect(read(begun, &byte, 1) == 1) }
        #expect(
            await ask(issuers[0]) == .later("too many phones ask for certificates at once", .seconds(10)))
        #expect(
            await ask(issuers[1])
                == .later("the key service says: 4 commands run already", .seconds(10)))
        await served.stop()
        let ends = await waiting
        #expect(ends.count == CommandLauncher.mostAtOnce)
        for end in ends {
            guard case .unavailable = end else {
                Issue.record("\(String(describing: end))")
                continue
            }
        }
        for issuer in issuers { issuer.close() }
    }

    /// A command hangs, and phones that come one after the other do not wait for it.
    @Test func slowCommandHoldsUpNoOther() async throws {
        try #require(mkfifo(place("begun"), 0o600) == 0)
        let begun = open(place("begun"), O_RDWR)
        defer { close(begun) }
        let served = try await ServedKeys(
            command: script(
                "mkdir '\(place("first"))' 2> /dev/null || exit 3; printf x > '\(place("begun"))'; "
                    + "exec tail -f /dev/null"))
        let issuer = try CommandIssuer(served.client, issuesTagged: true, timeout: .seconds(60), time: time)
        let order = try order()
        let request = try #require(order.request)
        let slow = Task { try await issuer.issue(order, request) }
        var byte: UInt8 = 0
        #expect(read(begun, &byte, 1) == 1)
        for _ in 0..<2 * CommandLauncher.mostAtOnce {
            await #expect(throws: CertificateFailure.failed("the key service says: the command ended with status 3")) {
                try await issuer.issue(order, request)
            }
        }
        await served.stop()
        await #expect(throws: CertificateFailure.self) { try await slow.value }
        issuer.close()
    }

    /// A last line with noncharacters, which are no I-JSON, frees the place of its run, too.
    @Test func everyLastLineFreesThePlace() async throws {
        let served = try await ServedKeys(command: script(#"printf '\357\277\276no\357\267\220\n' >&2; exit 1"#))
        let issuer = try CommandIssuer(served.client, issuesTagged: true, timeout: .seconds(60), time: time)
        let order = try order()
        for _ in 0...CommandLauncher.mostAtOnce {
            let expected = "the key service says: the command ended with status 1: no"
            await #expect(throws: CertificateFailure.failed(expected)) {
                try await issuer.issue(order, try #require(order.request))
            }
        }
        issuer.close()
        await served.stop()
    }

    /// A signal for `twoefay-keys` may be sent to all processes of this name.
    @Test func signalsDoNotEndTheLauncher() async throws {
        let certificate = try right()
        try TextFile.write(try certificate.pem(), to: place("answer"))
        let (found, log) = try await outcome(
            script("for name in HUP INT TERM USR1 USR2; do kill -s $name $PPID; done; exec cat '\(place("answer"))'"))
        #expect(try found.get() == certificate)
        #expect(!log.contains("keys.launcher"), "\(log)")
        // The command itself has the default effect.
        let (ended, _) = try await outcome(script("kill -s HUP $$; exec tail -f /dev/null"))
        #expect(ended == .failure(.unavailable("the key service says: the command was ended by signal 1")))
    }

    @Test func endOfTheLauncherIsReported() async throws {
        let served = try await ServedKeys(command: script("kill -9 $PPID"))
        let issuer = try CommandIssuer(served.client, issuesTagged: true, timeout: .seconds(60), time: time)
        let order = try order()
        for _ in 0..<2 {
            let failure = await #expect(throws: CertificateFailure.self) {
                try await issuer.issue(order, try #require(order.request))
            }
            guard case .unavailable(let reason)? = failure else {
                Issue.record("\(String(describing: failure))")
                return
            }
            #expect(reason.contains("the launcher of the command has ended"))
        }
        await served.sink.lines(of: "keys.launcher", count: 1)
        issuer.close()
        await served.stop()
    }

    /// Code of an attacker in the relay can have certificates made for phones only.
    @Test func requestForAnotherNameIsRefused() async throws {
        let served = try await ServedKeys(command: script("echo ran > '\(place("ran"))'"))
        let stranger = try P256PrivateKey.generate()
        for request in [
            try SigningRequest(commonName: "login.example.com", key: stranger),
            try SigningRequest(CertificateName(uri: "twoefay:device:ff"), key: stranger),
            try #require(order(tag: "sign").request),
        ] {
            let order = CertificateOrder(of: device, key: request.key, request: request)
            #expect(throws: KeyServiceFailure.self) {
                try served.client.request(order, request, until: time.instant() + .seconds(60))
            }
        }
        await served.sink.lines(of: "keys.malformed", count: 3)
        #expect(access(place("ran"), F_OK) != 0)
        await served.stop()
    }

    @Test func keyServerWithoutCommandRefuses() async throws {
        let served = try await ServedKeys()
        let order = try order()
        #expect(throws: KeyServiceFailure.refused("the key service says: there is no command")) {
            try served.client.request(order, try #require(order.request), until: time.instant() + .seconds(60))
        }
        await served.stop()
    }
}
