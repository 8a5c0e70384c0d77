import Bytes
import Crypto
import EventLoop
import HTTP2
import KeyService
import Log
import Pushes
import Relay
import Storage
import Synchronization
import Templates
import World

extension Daemon {
    /// Reads certificates, keys, the master key, revocation lists, the roots of attestations,
    /// templates and the geolocation database again, for later connections, messages and logins. Of
    /// the settings it takes only those that `Settings.taking` returns.
    ///
    /// Purpose: SIGHUP renews certificates and rotates keys without a restart; open connections
    /// stay.
    ///
    /// Invariant: all or nothing. Every step that can fail comes before the first change; replacing
    /// the push credential is the last of them. If any file is wrong, the log gets `daemon.reload`
    /// and the daemon continues with everything it had. A broken list of revoked attestation keys is
    /// no such file: the former list stays in use.
    ///
    /// Failure modes: a path outside the Landlock rules cannot be opened, so the reload is refused
    /// before anything is read. A new key of the server's authority is refused, because phones pin
    /// the old key, unless a statement of that key names the new one. A new oldest master key takes
    /// effect only after a restart; the log gets `daemon.restart`.
    ///
    /// `ReloadTests.swift`, `CourierReloadTests.swift`, `HardeningTests.swift` and
    /// `KeyProcessTests.swift` test it.
    ///
    /// - Parameter actor: who asked for it at the control socket; nil for a signal.
    @discardableResult public func reload(by actor: Actor? = nil) async -> ReloadOutcome {
        do throws(Failure) {
            let new = try reread()
            let now = settings.taking(new.settings)
            try hardening?.requireReach(of: now, named: new.places)
            let materials = try LoadedFiles.load(now, new.places, at: SystemTime().now(), waiting: .zero)
            try checkNextStart(new, besides: now)
            try checkPins(of: materials, under: now)
            let sealer = try materials.keys.usableSealer()
            let rows = try materials.keys.usableRowAuthenticator()
            let next = try couriers.successors(materials)
            let groups = try ControlGroups(now.control)
            let used = SettingsInUse(now, operationsKey: operationsKey)
            try control?.open(for: groups)
            // Nothing has changed before this step. The later ones check nothing that was not checked above.
            try adopt(materials.fcm)
            try adopt(materials.push)
            couriers.activate(next)
            relay.replace(next.ways)
            webhookCourier.replace(materials.webhooks)
            relay.replace(webhookCourier.courier)
            geolocation.replace(materials.geolocation)
            relay.replace(attestations.replace(now, materials.attestations))
            relay.replace(sealer)
            directories.replace(now, sealer)
            store.use(rows)
            store.use(now.personalSealer(sealer))
            try control?.replace(now, materials.keys, groups)
            if !Secret.matches(materials.keys.relay.operations.reveal(), operationsKey.reveal()) {
                log.warning("daemon.restart", [.reason: "the key of operation ids has changed, and needs a restart"])
            }
            catalog.replace(materials.wording)
            certificates.replace(materials.certificates)
            // The phone checks a statement by the certificate of its connection, so both change
            // together. A connection that is open keeps the old one; its phone then opens another.
            relay.replace(materials.statements)
            if case .authority(let issuer) = materials.issuer { relay.replace(issuer) }
            relay.replace(websites: materials.websites?.certificates(by: keyService))
            relay.replace(
                pin: materials.authority.spkiThumbprint, statement: materials.pins, formerPin: materials.formerPin)
            for server in servers { await server.loop.perform { server.value.replace(tls: materials.tls) } }
            for server in browserServers {
                await server.loop.perform { if let tls = materials.browsers { server.value.replace(tls: tls) } }
            }
            relay.replace(now.policy)
            replaceLimits(now)
            log.use(minimum: now.log.level)
            let left = reportLeft(new, besides: now)
            let difference = inUse.withLock { former in
                defer { former = used }
                return former.difference(to: used)
            }
            await record(
                "daemon.reloaded", note: "sealing key \(sealer.currentID)", changes: difference.values.text, by: actor)
            let names = difference.names.isEmpty ? nil : difference.names.joined(separator: ", ")
            log.notice("daemon.reloaded", [.keyID: sealer.currentID, .setting: names])
            group.loops[0].post { [backgroundWork, relay] in
                backgroundWork.spawn { await relay.sealPersonalValues(afresh: true) }
            }
            return .reloaded(changed: difference.names, restart: left)
        } catch {
            await record("daemon.reload", outcome: "refused", note: error.message, by: actor)
            log.error("daemon.reload", [.error: "\(error.message). \(error.next)"])
            return .refused(error)
        }
    }

    /// Refuses another authority of the server, unless phones know it by a statement of the former
    /// one. Phones that have missed the statement must be bound again.
    private func checkPins(of files: LoadedFiles, under now: Settings) throws(Failure) {
        let (new, present) = (files.authority.spkiThumbprint, relay.authorityPin)
        if new == present { return }
        if let pins = files.pins?.pins, pins.contains(new), pins.contains(present) { return }
        throw Failure(
            .failed,
            "\(now.path(of: now.tls.authority)): has a new key, but phones pin the old one",
            next: "docs/operators/replacing-authorities.md says how phones learn the new one. A restart uses the new "
                + "key, and then every phone must be bound again.")
    }

    /// Refuses settings with which the next start would fail, although this reload does not use
    /// them. Otherwise the fault would be noticed only then, perhaps at night. Files that this
    /// process may not open cannot be checked.
    private func checkNextStart(_ file: SettingsOfFile, besides now: Settings) throws(Failure) {
        let new = file.settings
        guard new != now else { return }
        do throws(Failure) {
            try hardening?.requireReach(of: new, named: file.places)
        } catch {
            log.warning("daemon.restart", [.reason: error.message])
            return
        }
        _ = try LoadedFiles.load(new, file.places, at: SystemTime().now(), waiting: .zero, forStart: true)
        // This process may not ask the kernel any more if it is restricted, but knows the answer.
        if let hardening { try new.requireHardening(hardening) } else { try new.requireHardening() }
    }

    /// Uses the new key of the account for later pushes. Pushes in flight end under the old one.
    private func adopt(_ files: LoadedFiles.FCM?) throws(Failure) {
        guard let fcm, let files else { return }
        do {
            try fcm.replace(account: files.account)
        } catch {
            throw Failure(
                .failed, "push.fcm.account: \(error)",
                next: "Correct the file, or restart the relay to use another project.")
        }
    }

    /// Uses the new credential for later pushes. Pushes in flight end under the old one.
    private func adopt(_ files: LoadedFiles.Push?) throws(Failure) {
        guard let push, let files else { return }
        do {
            try push.replace(credential: files.proof)
        } catch {
            throw Failure(
                .failed, "push.apns: \(error)",
                next: "These files are named under 'push.apns' in the settings; correct them.")
        }
    }
}
