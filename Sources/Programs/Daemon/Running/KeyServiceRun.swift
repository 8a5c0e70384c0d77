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

/// The keys that `twoefay-keys` holds: the keys derived from the master key, and the key of the
/// phones' authority.
///
/// It never returns the master key or the authority's key. A reload replaces all files or none.
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
        guard let phones = materials.phones else {
            guard request == .unwrap else { return .refused("the phones' authority is outside of the installation") }
            log.notice("keys.unwrapped", [.process: Int(process), .count: materials.data.sealing.count])
            return .keys(materials.data)
        }
        switch request {
        case .request: return .refused("no command is set in phone_ca.command")
        case .unwrap:
            log.notice("keys.unwrapped", [.process: Int(process), .count: materials.data.sealing.count])
            return .keys(materials.data)
        case .issue(let device, let key):
            return issue(to: device, process, log) { () throws(CertificateFailure) in
                try phones.phoneCertificate(for: key, of: device, at: SystemTime().now())
            }
        case .issueTagged(let device, let tag, let key):
            return issue(to: device, process, log) { () throws(CertificateFailure) in
                try phones.signerCertificate(for: key, tag: tag, of: device, at: SystemTime().now())
            }
        case .revocationList(let revoked):
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
