import Bytes
import Crypto
import Domain
import EventLoop
import Glibc
import KeyService
import Log
import Relay
import Synchronization
import World

/// The keys that `twoefay-keys` holds: the keys derived from the master key, and the keys of the
/// authorities.
///
/// It never returns the master key or the key of an authority. A reload replaces all files or none.
/// Tested in `KeyProcessTests.swift`.
final class KeyHolder: Sendable {
    private let settings: Settings
    private let files: Mutex<KeyFiles>

    init(_ settings: Settings, _ files: KeyFiles) {
        self.settings = settings
        self.files = Mutex(files)
    }

    func answer(_ request: KeyRequest, of process: pid_t, log: Log) -> KeyReply {
        let materials = files.withLock { $0 }
        switch (request, materials.phones) {
        case (.unwrap, _):
            log.notice("keys.unwrapped", [.process: Int(process), .count: materials.data.sealing.count])
            return .keys(materials.data)
        case (.issueWebsite(let name, let key), _):
            return issue(to: name, key, by: materials.websites, process, log)
        case (_, nil): return .refused("the phones' authority is outside of the installation")
        case (.request, _): return .refused("no command is set in phone_ca.command")
        case (.issue(let device, let key), let phones?):
            return issue(to: device, process, log) { () throws(CertificateFailure) in
                try phones.phoneCertificate(for: key, of: device, at: SystemTime().now())
            }
        case (.issueTagged(let device, let tag, let key), let phones?):
            return issue(to: device, process, log) { () throws(CertificateFailure) in
                try phones.signerCertificate(for: key, tag: tag, of: device, at: SystemTime().now())
            }
        case (.revocationList(let revoked), let phones?):
            do throws(CertificateFailure) {
                let list = try phones.phoneRevocationList(revoked, at: SystemTime().now())
                log.info("keys.crl", [.process: Int(process), .count: revoked.count])
                return .revocationList(list)
            } catch {
                log.error("keys.crl", [.process: Int(process), .error: "\(error)"])
                return .refused("the revocation list cannot be made")
            }
        }
    }

    private func issue(
        to device: DeviceID, _ process: pid_t, _ log: Log, _ make: () throws(CertificateFailure) -> String
    ) -> KeyReply {
        do throws(CertificateFailure) {
            let certificate = try make()
            log.info("keys.issued", [.device: device.text, .process: Int(process)])
            return .certificate(certificate)
        } catch {
            log.error("keys.issue", [.device: device.text, .error: "\(error)"])
            return .refused("the certificate cannot be issued")
        }
    }

    private func issue(
        to website: String, _ key: P256PublicKey, by authority: CertificateAuthority?, _ process: pid_t, _ log: Log
    ) -> KeyReply {
        guard let authority else {
            return .refused("twoefay-keys was started without tls.websites_renewal: restart it")
        }
        do {
            let pem = try authority.websiteCertificate(for: website, key: key, at: SystemTime().now()).pem()
            log.info("keys.issued", [.website: website, .process: Int(process)])
            return .certificate(String(decoding: pem, as: UTF8.self))
        } catch {
            log.error("keys.issue", [.website: website, .error: "\(error)"])
            return .refused("the certificate cannot be issued")
        }
    }

    /// Reads the files again. If one of them is wrong, everything stays as it was, and the reason is
    /// returned.
    func reload(log: Log) -> Failure? {
        do throws(Failure) {
            let token = files.withLock { $0.token }
            let new = try KeyFiles.load(settings, at: SystemTime().now(), token: token)
            files.withLock { $0 = new }
            log.notice("keys.reloaded", [.count: new.data.sealing.count])
            return nil
        } catch {
            log.error("keys.reload", [.error: error.message])
            return error
        }
    }
}

/// The run of `twoefay-keys` on the calling thread, from listening to the stop signal.
enum KeyServiceRun {
    static func run(
        _ settings: Settings, _ holder: KeyHolder, _ listener: KeyListener, _ supervisor: Supervisor,
        launcher: Int32?, users: Set<uid_t>
    ) throws(Failure) {
        try MainThread.run(settings.log) { main, signals, written async throws(Failure) in
            let log = written.log
            let commands = launcher.map {
                CommandService(loop: main, launcher: $0, timeout: .seconds(settings.command.seconds), log: log)
            }
            let server = KeyServer(loop: main, listener: listener, users: users, log: log, commands: commands) {
                request, process in
                holder.answer(request, of: process, log: log)
            }
            do throws(SystemFailure) {
                try server.start()
            } catch {
                throw Failure(
                    .failed, "keys: \(error)", next: "The machine is out of threads or file descriptors.")
            }
            log.notice("keys.started", [.path: listener.path])
            let status = "Serves at \(listener.path)."
            supervisor.ready(status)
            supervisor.watch([main], on: main)
            while case .reload = await signals.next() {
                supervisor.reloading(at: SystemTime().instant())
                let failure = holder.reload(log: log)
                supervisor.ready(failure?.reloadStatus ?? status)
            }
            supervisor.stopping()
            server.stop()
            log.notice("keys.stopped")
        }
    }
}
