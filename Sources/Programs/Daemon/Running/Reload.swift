import APNs
import Bytes
import Crypto
import EventLoop
import HTTP2
import KeyService
import Log
import Relay
import Storage
import TLS
import Templates
import World

extension Daemon {
    /// Reads certificates, keys, the master key, revocation lists, words and the database of places again, for the connections,
    /// the messages and the logins to come; of the settings what stands in `settingsNow`.
    /// If anything is wrong with any file, everything stays as it was.
    public func reload() async {
        do throws(Failure) {
            let (now, isLeft) = try settingsNow()
            try hardening?.requireReach(of: now)
            let materials = try LoadedFiles.load(now, at: SystemTime().now(), waiting: .zero)
            guard materials.authority.spkiThumbprint == pin else {
                throw Failure(
                    .failed,
                    "\(settings.path(of: settings.tls.authority)): has another key, and phones pin the old one",
                    next: "A restart takes it, and phones have to be bound again.")
            }
            let tls = try materials.tls()
            let sealer = try materials.keys.usableSealer()
            let rows = try materials.keys.usableRowAuthenticator()
            let next = try couriers.successors(materials)
            // The last that can fail: nothing has changed until then.
            try adopt(materials.push)
            couriers.activate(next)
            relay.replace(next.ways)
            webhookCourier.replace(materials.webhooks)
            relay.replace(webhookCourier.courier)
            geolocation.replace(materials.geolocation)
            relay.replace(sealer)
            store.use(rows)
            if !Secret.matches(materials.keys.relay.operations.reveal(), operationsKey.reveal()) {
                log.warning("daemon.restart", [.reason: "operations follow from another key after a restart"])
            }
            words.replace(materials.wording)
            certificates.replace(materials.certificates)
            for server in servers { await server.loop.perform { server.value.replace(tls: tls) } }
            if isLeft {
                log.warning("daemon.restart", [.reason: "other settings have changed, and hold from the next start on"])
            }
            log.notice("daemon.reloaded", [.keyID: sealer.currentID])
        } catch {
            log.error("daemon.reload", [.error: error.message])
        }
    }

    /// The settings as they were at the start, but for callbacks, mails, text messages and their words, and for what the push
    /// service knows us by: another key has another id, which stands there. Whether anything else has changed, too.
    private func settingsNow() throws(Failure) -> (Settings, isLeft: Bool) {
        var now = settings
        let new = try reread()
        now.webhooks = new.webhooks
        now.mail = new.mail
        now.templates = new.templates
        now.texts = new.texts
        if now.push.credential != nil, new.push.credential != nil {
            now.push.key = new.push.key
            now.push.keyID = new.push.keyID
            now.push.teamID = new.push.teamID
            now.push.certificate = new.push.certificate
            now.push.certificateKey = new.push.certificateKey
        }
        return (now, now != new)
    }

    /// Pushes to come go out under what was read; those on their way end as they began.
    private func adopt(_ files: LoadedFiles.Push?) throws(Failure) {
        guard let push, let files else { return }
        do {
            try push.replace(credential: files.proof)
        } catch {
            throw Failure(
                .failed, "push.apns: \(error)",
                next: "These files are named under 'push.apns' in the settings; mend what is wrong.")
        }
    }
}

extension LoadedFiles {
    func tls() throws(Failure) -> TLSServerContext {
        do {
            return try TLSServerContext(
                certificateChainPEM: certificate, privateKeyPEM: key, websitesCA: websites,
                phonesCA: try phones.pem(), crl: revoked)
        } catch {
            throw Failure(
                .failed, "tls: \(error)", next: "These files are named under 'tls' in the settings; mend what is wrong."
            )
        }
    }
}
