import Bytes
import Crypto
import World

/// The replacement of the server's authority, whose key phones pin.
///
/// Purpose: phones move to another key, and none has to be bound again.
///
/// Three steps. `announce` makes the next authority, and a statement by the present one that names
/// it; phones that take it pin both. `change` issues the server's certificate by the next authority,
/// and sends that authority's certificate as the present one has signed it. So phones with either pin
/// accept the relay, and so do websites with either root. `finish` sends the new authority alone, and
/// states that it is the only one.
///
/// Invariant: from `announce` to `finish` the statement names the same two authorities, and the
/// former one signs it. Phones that pin only the former one could believe no other signer.
///
/// Failure: a phone that was absent between `announce` and `finish` must be bound again. A `change`
/// that was interrupted is repeated; the other steps refuse until then.
/// Tested in `ReplaceServerTests.swift` and `ServerReplacementTests.swift`.
public struct ServerReplacement: Sendable {
    let settings: Settings
    /// The file of the key of the authority in `tls.ca`.
    let keyPath: String

    public static let days: Int64 = 120
    private static let authorityDays = 3650
    private static let finalDays: Int64 = 3650

    public init(_ settings: Settings, keyPath: String?) {
        self.settings = settings
        self.keyPath = keyPath ?? Files.resolve(ServerAuthority.keyName, in: settings.directory)
    }

    public var pinsPath: String {
        settings.tls.pins.map { settings.path(of: $0) } ?? Files.resolve("pins.jwt", in: settings.directory)
    }

    private var nextPath: String { Files.resolve("ca-next.pem", in: settings.directory) }
    private var formerPath: String { Files.resolve("ca-former.pem", in: settings.directory) }
    // Phones trust these keys as well as that of `keyPath`, which may be offline.
    private var nextKeyPath: String { Files.resolve("ca-next.key", in: Files.directory(of: keyPath)) }
    private var formerKeyPath: String { Files.resolve("ca-former.key", in: Files.directory(of: keyPath)) }

    // MARK: Steps

    /// Makes the next authority if there is none, and the statement that names it. After `change`, it
    /// makes a new statement for the same two authorities.
    public func announce(days: Int64, at now: Timestamp) throws(Failure) -> PinStatement {
        try requireNoInterruption()
        let present = try ServerAuthority.load(settings, keyPath: keyPath)
        let end = now + .seconds(days * 86_400)
        if let statement = try underWay(), statement.signer != present.keyThumbprint {
            return try state(statement.pins, by: try former(of: statement, present), until: end, at: now)
        }
        let next: CertificateAuthority
        if Files.exists(nextPath) {
            next = try ServerAuthority.load(certificate: nextPath, key: nextKeyPath)
        } else {
            next = try makeNext(after: present, at: now)
        }
        return try state([present.keyThumbprint, next.keyThumbprint], by: present, until: end, at: now)
    }

    /// States that the present authority is the only one: phones forget the next one, which is
    /// deleted. A later announcement makes another, because this one's key may have been seen.
    public func withdraw(days: Int64, at now: Timestamp) throws(Failure) -> PinStatement {
        try requireNoInterruption()
        let present = try ServerAuthority.load(settings, keyPath: keyPath)
        let announced = try underWay()
        if let announced, announced.signer != present.keyThumbprint {
            throw Failure(
                .conflict, "the next authority is in use, and cannot be withdrawn",
                next: "Nothing was changed. Finish the replacement: twoefay server finish")
        }
        // A phone that takes neither statement must not take the announcement after this one has ended.
        let end = max(now + .seconds(days * 86_400), announced?.expiresAt ?? now)
        let statement = try state([present.keyThumbprint], by: present, until: end, at: now)
        for path in [nextKeyPath, nextPath] {
            Files.remove(path)
            guard Files.exists(path) else { continue }
            throw Failure(
                .failed, "\(path) cannot be deleted", next: "The announcement is withdrawn. Delete both ca-next files.")
        }
        return statement
    }

    /// Issues the server's certificate by the next authority, which becomes the present one.
    public func change(at now: Timestamp) throws(Failure) -> Certificate {
        guard Files.exists(nextPath) else {
            throw Failure(.conflict, "there is no next authority", next: "Announce it first: twoefay server pins")
        }
        let next = try ServerAuthority.load(certificate: nextPath, key: nextKeyPath)
        let present =
            try isInterrupted()
            ? try ServerAuthority.load(certificate: formerPath, key: formerKeyPath)
            : try ServerAuthority.load(settings, keyPath: keyPath)
        guard let statement = try StatementFile.read(pinsPath), statement.signer == present.keyThumbprint,
            statement.pins.contains(next.keyThumbprint), statement.expiresAt > now
        else {
            throw Failure(
                .conflict, "\(pinsPath) does not announce the next authority, or has expired",
                next: "Nothing was changed. Announce it: twoefay server pins")
        }
        let server = try ServerCertificate(settings)
        let names = try server.names([])
        do {
            let cross = try present.crossCertificate(of: next.certificate, at: now)
            try Files.replace(formerPath, try present.certificatePEM(), mode: 0o644)
            try Files.replace(formerKeyPath, try present.keyPEM().reveal(), mode: 0o600)
            let issued = try server.renew(
                by: next, names: names, chain: [cross, present.certificate], keepsKey: false, at: now)
            // The key comes first: `isInterrupted` sees by it that the former one must be loaded.
            try Files.rewrite(keyPath, try next.keyPEM().reveal())
            try Files.rewrite(settings.path(of: settings.tls.authority), try next.certificatePEM())
            Files.remove(nextPath)
            Files.remove(nextKeyPath)
            return issued
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure(.failed, "the authority cannot be changed: \(error)", next: "Repeat the command.")
        }
    }

    /// Sends the new authority alone, states that phones shall trust no other one, and deletes the key
    /// of the former one.
    public func finish(at now: Timestamp) throws(Failure) -> PinStatement {
        try requireNoInterruption()
        let present = try ServerAuthority.load(settings, keyPath: keyPath)
        guard let statement = try underWay() else {
            throw Failure(
                .conflict, "no authority is being replaced",
                next: "Nothing was changed. docs/operators/replacing-authorities.md says how to begin.")
        }
        guard statement.signer != present.keyThumbprint, statement.pins.contains(present.keyThumbprint) else {
            throw Failure(
                .conflict, "the next authority is announced, and not in use yet",
                next: "Nothing was changed. Use it first: twoefay server switch")
        }
        try ServerCertificate(settings).rechain([present.certificate], by: present, at: now)
        let last = try state(
            [present.keyThumbprint], by: present, until: now + .seconds(Self.finalDays * 86_400), at: now)
        Files.remove(formerKeyPath)
        guard !Files.exists(formerKeyPath) else {
            throw Failure(
                .failed, "\(formerKeyPath) cannot be deleted", next: "The replacement is finished. Delete that file.")
        }
        return last
    }

    /// The statement that names two authorities; nil if none is being replaced.
    public func underWay() throws(Failure) -> PinStatement? {
        try StatementFile.read(pinsPath).flatMap { $0.pins.count > 1 ? $0 : nil }
    }

    // MARK: Files

    /// Whether `change` was interrupted: the key is that of the next authority, whose files are still
    /// there.
    private func isInterrupted() throws(Failure) -> Bool {
        guard Files.exists(nextPath), Files.exists(nextKeyPath) else { return false }
        do {
            let keys = try [keyPath, nextKeyPath].map { try P256PrivateKey(pem: Secret(try Files.readPrivate($0))) }
            return keys[0].publicKey == keys[1].publicKey
        } catch {
            throw Failure(
                .failed, "the key of the server's authority cannot be read: \(error)",
                next: "Bring it back, and name it with --authority-key.")
        }
    }

    private func requireNoInterruption() throws(Failure) {
        guard try isInterrupted() else { return }
        throw Failure(
            .conflict, "'twoefay server switch' was interrupted",
            next: "Nothing was changed. Repeat it: twoefay server switch")
    }

    /// The former authority, which alone can sign for phones that have not taken the statement.
    private func former(
        of statement: PinStatement, _ present: CertificateAuthority
    ) throws(Failure) -> CertificateAuthority {
        let former = try ServerAuthority.load(certificate: formerPath, key: formerKeyPath)
        guard former.keyThumbprint == statement.signer, statement.pins.contains(present.keyThumbprint) else {
            throw Failure(
                .conflict, "\(pinsPath) is by another authority than \(formerPath), or does not name the present one",
                next: "Nothing was changed. Restore the files of the authority that is being replaced.")
        }
        return former
    }

    private func makeNext(
        after present: CertificateAuthority, at now: Timestamp
    ) throws(Failure) -> CertificateAuthority {
        do {
            let next = try present.successor(days: Self.authorityDays, at: now)
            try Files.create(nextKeyPath, try next.keyPEM().reveal(), mode: 0o600)
            try Files.create(nextPath, try next.certificatePEM(), mode: 0o644)
            return next
        } catch {
            throw Failure(
                .failed, "the next authority cannot be created: \(error)",
                next: "Move \(nextKeyPath) away if it is not needed.")
        }
    }

    /// Signs a statement with a higher number than the one before.
    private func state(
        _ pins: [[UInt8]], by authority: CertificateAuthority, until end: Timestamp, at now: Timestamp
    ) throws(Failure) -> PinStatement {
        let before = try StatementFile.read(pinsPath)?.sequence ?? 0
        do {
            let key = try P256PrivateKey(pem: try authority.keyPEM())
            // The time is a number that is higher even if the file of the former one is lost.
            let text = try PinStatement.sign(
                pins, sequence: max(before + 1, now.seconds), audience: settings.origin.settingsText, expiresAt: end,
                by: key, at: now)
            // Relays do not start with a file that is no statement.
            let statement = try PinStatement(text)
            try Files.replace(pinsPath, Array((text + "\n").utf8), mode: 0o644)
            return statement
        } catch {
            throw Failure(
                .failed, "the statement cannot be written: \(error)",
                next: "Nothing was announced. If a file is named, make room on its disk, let this account write to "
                    + "it, and run the command again.")
        }
    }
}
