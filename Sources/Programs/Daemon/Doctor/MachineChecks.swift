import EventLoop
import Glibc
import Hardening
import KeyService
import Storage
import World

/// The checks of this machine: descriptors, disks, clock, randomness, kernel and units.
struct MachineChecks: Sendable {
    let settings: Settings
    let facts: HostFacts

    var all: [Check] {
        [
            Check("descriptors") { [descriptors()] }, Check("disk") { disks() }, Check("clock") { [clock()] },
            Check("randomness") { [randomness()] }, Check("kernel") { [kernel()] }, Check("systemd") { [unit()] },
            Check("ports") { ports() }, Check("control") { control() },
        ]
    }

    /// The limit that a relay needs for the connections that the settings ask for. A relay raises
    /// its soft limit to the hard one.
    private func descriptors() -> Finding {
        let limits = facts.unit("twoefayd.service")?["LimitNOFILE"].flatMap { Int($0) }
        let hard = limits ?? facts.descriptors().hard
        let place = limits == nil ? "of this shell" : "of twoefayd.service"
        let connections = ConnectionLimits.total(settings.connections.limit, descriptors: hard)
        let measured = "the limit of open files \(place) is \(hard), so \(connections) connections"
        let remedy = "Raise LimitNOFILE= of the unit, or the hard limit (ulimit -Hn); docs/operators/limits.md."
        if settings.connections.limit > connections {
            return Finding(
                "descriptors", .failure, "\(measured); connections.limit is \(settings.connections.limit)",
                remedy: remedy)
        }
        // Fewer are soon used up by the phones of one website.
        if hard < 4096 { return Finding("descriptors", .warning, measured, remedy: remedy) }
        return Finding("descriptors", .ok, measured)
    }

    // MARK: Disks

    private func disks() -> [Finding] {
        var paths: [(name: String, path: String)] = []
        if case .sqlite(let path)? = try? settings.storageURL() {
            paths.append(("disk.store", Files.directory(of: path)))
        }
        if case .file(let heads) = settings.auditHeads {
            paths.append(("disk.audit", Files.directory(of: settings.path(of: heads))))
        }
        for path in ["/var/log/journal", "/var/log"] where Files.exists(path) {
            paths.append(("disk.log", path))
            break
        }
        return paths.map { disk($0.name, $0.path) }
    }

    private func disk(_ name: String, _ path: String) -> Finding {
        guard let space = facts.space(path) else {
            return Finding(name, .failure, "\(path) does not exist", remedy: "Create it, or correct the settings.")
        }
        let share = space.all == 0 ? 0 : space.free * 100 / space.all
        let inodes = Int(space.freeInodes * 100)
        let measured = "\(path): \(Self.size(space.free)) free, \(share) %; \(inodes) % of inodes"
        let remedy = "Free space, or move it to a larger disk. A full disk stops every change."
        if space.free < 100 << 20 || inodes < 1 { return Finding(name, .failure, measured, remedy: remedy) }
        if space.free < 1 << 30 || share < 10 || inodes < 10 {
            return Finding(name, .warning, measured, remedy: remedy)
        }
        return Finding(name, .ok, measured)
    }

    static func size(_ bytes: Int64) -> String {
        for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] where bytes >= 1 << shift {
            let tenths = (bytes * 10) >> shift
            return "\(tenths / 10).\(tenths % 10) \(unit)"
        }
        return "\(bytes) bytes"
    }

    // MARK: Clock, randomness, kernel

    private func clock() -> Finding {
        guard facts.isClockSynchronised() else {
            return Finding(
                "clock", .warning, "the kernel does not know of anything that keeps its clock in time",
                remedy: "Run chrony or systemd-timesyncd: codes, proofs and certificates depend on the time.")
        }
        return Finding("clock", .ok, "the kernel's clock is synchronised; it is \(facts.time.now().rfc3339)")
    }

    private func randomness() -> Finding {
        guard facts.hasRandomness() else {
            return Finding(
                "randomness", .failure, "the kernel has no random bytes yet",
                remedy: "Wait for the end of the boot, or give the machine a source (virtio-rng, haveged).")
        }
        return Finding("randomness", .ok, "the kernel's generator is ready")
    }

    private func kernel() -> Finding {
        let missing = Hardening.missing(in: facts.kernel)
        if settings.hardening == .off {
            return Finding(
                "kernel", .warning, "hardening is off in the settings",
                remedy: "Remove 'hardening: off'; docs/operators/hardening.md.")
        }
        guard missing.isEmpty else {
            let reasons = missing.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key.rawValue): \($0.value)" }
            return Finding(
                "kernel", settings.hardening == .required ? .failure : .warning,
                "hardening is incomplete: \(reasons.joined(separator: "; "))",
                remedy: "Use a kernel that has it; docs/operators/hardening.md says what each measure protects.")
        }
        let version = facts.kernel.landlockVersion.map { " (Landlock \($0))" } ?? ""
        return Finding("kernel", .ok, "all measures of hardening are available\(version)")
    }

    private func unit() -> Finding {
        let name = "twoefayd.service"
        guard let unit = facts.unit(name) else {
            return Finding("systemd", .skipped, "systemd does not run here")
        }
        let state = unit["ActiveState"] ?? "unknown"
        guard unit["LoadState"] == "loaded" else {
            return Finding(
                "systemd", .warning, "\(name) is not installed (\(unit["LoadState"] ?? "unknown"))",
                remedy: "Install deploy/systemd, or the package; docs/operators/running.md#under-systemd.")
        }
        let restarts = Int(unit["NRestarts"] ?? "") ?? 0
        let measured = "\(name) is \(state) (\(unit["SubState"] ?? "unknown")), restarted \(restarts) times"
        if state == "failed" {
            return Finding("systemd", .failure, measured, remedy: "journalctl -u \(name) says why.")
        }
        return restarts > 0
            ? Finding("systemd", .warning, measured, remedy: "journalctl -u \(name) says why it ended.")
            : Finding("systemd", .ok, measured)
    }

    // MARK: Ports

    private func ports() -> [Finding] {
        var all = [port("port.listen", "listen", settings.listen)]
        if let phone = settings.phone.listen { all.append(port("port.phone", "phone.listen", phone)) }
        if let metrics = settings.metrics { all.append(port("port.metrics", "metrics.listen", metrics.place)) }
        return all
    }

    /// Connects to the control socket, and sends nothing. Nothing is found if there is none.
    private func control() -> [Finding] {
        guard let socket = settings.control.socket else { return [] }
        let path = settings.path(of: socket)
        do throws(Failure) {
            _ = try ControlGroups(settings.control)
            try ControlListener.requireDirectory(of: path)
        } catch {
            return [Finding("control", .failure, error.message, remedy: error.next)]
        }
        do throws(SystemFailure) {
            close(try UnixSocket.connect(path, waitingSeconds: 2))
            return [Finding("control", .ok, "a relay listens at \(path), and all groups of 'control' exist")]
        } catch {
            return [
                Finding(
                    "control", .warning, "\(path) (control.socket): \(error)",
                    remedy: error.code == EACCES
                        ? "Run the command as root or as the user of the relay, who may connect without a role."
                        : "Start the relay. Only a restart makes the socket: a reload does not.")
            ]
        }
    }

    /// Connects to a port of this machine; if nobody listens, tries whether a relay could.
    private func port(_ name: String, _ key: String, _ place: HostPort) -> Finding {
        guard let address = SocketAddress(host: place.host, port: place.port) else {
            return Finding(
                name, .failure, "\(place.settingsText) is not an address", remedy: "Correct '\(key)' in the settings.")
        }
        let isAny = ["0.0.0.0", "::"].contains(place.host)
        let host = isAny ? (place.host == "::" ? "::1" : "127.0.0.1") : place.host
        if case .success = EndConnection.open(host, place.port, until: facts.time.instant() + .seconds(3), facts.time) {
            return Finding(name, .ok, "a program listens on \(place.settingsText)")
        }
        do throws(SystemFailure) {
            try Socket.requireFree(address)
        } catch {
            return Finding(
                name, .failure, "nobody answers on \(place.settingsText), and it cannot be used: \(error)",
                remedy: "Free the port, give the relay the right to it, or correct '\(key)'.")
        }
        return Finding(
            name, .warning, "nobody listens on \(place.settingsText), which is free",
            remedy: "Start the relay: twoefayd, or systemctl start twoefayd.")
    }
}
