import Bytes
import Crypto
import Glibc
import TestSupport
import Testing
import World

@testable import Phone

/// Phones whose certificates come from an authority outside of the installation, with the built
/// programs: over EST, and from a command that `twoefay-keys` runs.
@Suite(.timeLimit(.minutes(15))) struct OutsideAuthorityProgramTests {
    private let place: TemporaryDirectory

    init() throws {
        place = try TemporaryDirectory()
        // The command runs with the rights of this user, but other users may not look for it.
        chmod(place.path, 0o755)
    }

    private func write(_ bytes: [UInt8], _ name: String, mode: mode_t = 0o600) throws -> String {
        try TextFile.write(bytes, to: place(name))
        chmod(place(name), mode)
        return place(name)
    }

    /// Binds a phone and has it get, use and renew its certificates.
    private func live(_ relay: RunningRelay, _ authority: CertificateAuthority) async throws -> (CurlCaller, Owner) {
        let (shop, owner) = try await relay.enrolled()
        // The phone did not know its name, for which the authority is asked.
        #expect(try owner.kept().certificate == nil)
        let renewed = try await owner.phone("change", "--renew")
        #expect(renewed.status == 0 && renewed.errors == "", "\(renewed)")
        let first = try #require(try owner.kept().certificate, "\(relay.log)")
        #expect(first.issuer == authority.certificate.subject)
        #expect(first.uris == ["twoefay:device:\(try #require(try owner.kept().device))"])
        // TLS accepts it: without DPoP, the phone has no other proof.
        #expect(try await owner.phone("change", "--name", "Blue").status == 0)
        let device = try #require(try owner.kept().device)
        let shown = try await relay.operate("device", "show", device, "--json")
        #expect(shown.output.contains("\"Blue\""), "\(shown)")

        #expect(try await owner.phone("change", "--renew").status == 0)
        let second = try #require(try owner.kept().certificate)
        #expect(second.serial != first.serial && second.spkiThumbprint == first.spkiThumbprint)
        #expect(try owner.kept().openRequests.isEmpty)
        #expect(try relay.count("SELECT count(*) AS value FROM certificate WHERE tag IS NULL") == 2)

        #expect(try await relay.operate("website", "edit", "shop", "--certificate-tags", "sign").status == 0)
        let tagged = try await owner.phone("certificate", "sign")
        #expect(tagged.status == 0, "\(tagged) \(relay.log)")
        let key = try #require(try owner.kept().documentKey("sign"))
        #expect(key.certificate.issuer == authority.certificate.subject)
        return (shop, owner)
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func phonesGetCertificatesOverEST(kind: StoreKind) async throws {
        let server = try await TestESTServer()
        let (root, trusted) = (
            try write(server.authority.certificatePEM(), "outside-ca.pem"), try write(server.trusted, "est-ca.pem")
        )
        let password = try write(Array("open sesame\n".utf8), "est.password")
        let relay = try await RunningRelay.start(kind) { settings in
            try settings.set("tls.phones", to: root)
            try settings.set("est.url", to: server.url("phones"))
            try settings.set("est.documents", to: server.url("documents"))
            try settings.set("est.ca", to: trusted)
            try settings.set("est.username", to: "Aladdin")
            try settings.set("est.password_file", to: password)
        }
        let checked = try await BuiltProgram.twoefayd("--config", relay.settings, "--check")
        #expect(checked.status == 0 && !checked.output.contains("Warning: est.url"), "\(checked)")
        #expect(checked.output.contains("The EST server \(server.url("phones")) issues"), "\(checked)")

        let (_, owner) = try await live(relay, server.authority)
        #expect(
            server.operations == [
                "phones/cacerts", "phones/simpleenroll", "phones/simplereenroll", "documents/simpleenroll",
            ])
        // RFC 7617, section 2.
        #expect(server.authorizations == ["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="])

        // A change is kept while the server decides, and the phone repeats its request as it was.
        server.refuse(202)
        #expect(try await owner.phone("change", "--renew", "--name", "Green").status == 0)
        #expect(try owner.kept().name == "Green")
        let later = try await owner.phone("change", "--renew")
        #expect(later.status != 0 && later.errors.contains("503"), "\(later)")
        let open = try #require(try owner.kept().openRequests.own)
        let request = try SigningRequest(pem: Array(open.utf8))
        let sent = server.bodies.map { body in
            Base64.decode(String(decoding: body.filter { ![10, 13].contains($0) }, as: UTF8.self))
        }
        #expect(sent.contains(request.der))
        try await relay.logged("event=device.certificate")
        #expect(await relay.stop().status == 0)
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func phonesGetCertificatesFromACommand(kind: StoreKind) async throws {
        let authority = try CertificateAuthority.create(commonName: "outside", days: 1000, at: SystemTime().now())
        let root = try write(authority.certificatePEM(), "outside-ca.pem", mode: 0o644)
        let secret = try write(authority.keyPEM().reveal(), "outside-ca.key")
        // As an operator writes it: the names are those of the request, all else is the profile.
        let script = """
            #!/bin/sh
            set -eu
            umask 077
            profile=$(mktemp) && trap 'rm -f "$profile"' EXIT
            case $TWOEFAY_USAGE in
                clientAuth) echo 'extendedKeyUsage = clientAuth' ;;
                documentSigning) echo 'extendedKeyUsage = 1.3.6.1.5.5.7.3.36' ;;
            esac > "$profile"
            openssl x509 -req -in /dev/stdin -CA '\(root)' -CAkey "$1" -days 60 -copy_extensions copy -extfile "$profile"
            """
        let command = try write(Array(script.utf8), "issue", mode: 0o755)
        let relay = try await RunningRelay.start(kind)
        await relay.stop()
        try relay.change { settings in
            try settings.set("key_service", to: "unix:keys/socket")
            try settings.set("tls.phones", to: root)
            try settings.set("phone_ca.command", to: "[\(command), \(secret)]")
            try settings.set("phone_ca.timeout", to: "7")
            try settings.set("phone_ca.documents", to: "on")
        }
        try #require(mkdir(relay.file("keys"), 0o700) == 0)
        let alone = try await BuiltProgram.keys("--config", relay.settings, "--check")
        #expect(alone.status == 0 && alone.output.contains("\(command) issues the certificates"), "\(alone)")
        let keys = try await KeyProcess.start(relay.settings)
        // The key of the phones' authority is nowhere in the installation.
        try #require(unlink(relay.file("device-ca.key")) == 0)
        let checked = try await BuiltProgram.twoefayd("--config", relay.settings, "--check")
        #expect(checked.status == 0 && checked.output.contains("runs \(command) for the certificates"), "\(checked)")
        try await relay.restart()

        let (_, owner) = try await live(relay, authority)
        let device = try #require(try owner.kept().device)
        try await keys.logged("level=info event=keys.command device=\(device) process=\(relay.pid)", number: 3)
        // The process with the keys is restricted all the same.
        if !Sanitizer.isOn {
            #expect(try TextFile.read("/proc/\(keys.pid)/status").contains("Seccomp:\t2\n"))
        }
        #expect(await relay.stop().status == 0)
        #expect(await keys.end(SIGTERM).status == 0)
    }

    /// Settings with which the process does not start, by what the operator is told.
    @Test(arguments: [
        ("/nowhere/issue", "phone_ca.command: /nowhere/issue: No such file or directory"),
        ("plain", "is not executable for the user"), ("open", "can be changed by other users: chmod go-w"),
        ("directory", "is not a file"),
    ])
    func commandThatMustNotRunIsRefused(program: String, says: String) async throws {
        _ = try write(Array("#!/bin/sh\n".utf8), "plain", mode: 0o644)
        _ = try write(Array("#!/bin/sh\n".utf8), "open", mode: 0o757)
        try #require(mkdir(place("directory"), 0o755) == 0)
        let relay = try await RunningRelay.start()
        await relay.stop()
        try relay.change { settings in
            try settings.set("key_service", to: "unix:socket")
            try settings.set("phone_ca.command", to: "[\(program.hasPrefix("/") ? program : place(program))]")
        }
        for arguments in [["--check"], []] {
            let ended = try await Child.run(
                try BuiltProgram.keys.path, ["--config", relay.settings] + arguments)
            #expect(ended.status == 1 && ended.errors.contains(says), "\(ended)")
        }
    }
}
