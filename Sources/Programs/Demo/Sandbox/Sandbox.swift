import Bytes
import Crypto
import Daemon
import EventLoop
import FakePushServices
import HTTP
import Log
import Storage
import World

/// The temporary environment of a demo: an installation, its relay, a push service and a registered
/// website. It must be used on its loop only.
///
/// Invariant: after `tearDown`, no process and (unless `keepsFiles` is set) no file remains,
/// whatever failed before. If the demo itself is killed, `CleanupProcess` does the same.
final class Sandbox {
    /// The next step after a failure of a part that the demo makes for itself.
    static let remedy =
        "The demo needs ports of 127.0.0.1, descriptors, and room in TMPDIR. Free what the message names, and start it again."

    /// The configuration of this run's installation.
    struct Plan {
        var storage: StorageText
        /// Whether the files are kept at `tearDown`.
        var keepsFiles: Bool
        /// The policies of the website, as on the command line.
        var policies: [(name: String, text: String)] = []
        /// The ports of the servers that catch mails and text messages; nil if none are sent.
        var catchers: (mail: UInt16, text: UInt16)?
    }

    enum RelayState: String {
        case starting, up, down
    }

    private(set) var directory: ScratchDirectory?
    private(set) var relay: RelayProcess?
    private(set) var relayState = RelayState.down
    private(set) var pushService: FakePushService?
    private(set) var origin = WebAddress(secure: true, host: "127.0.0.1", port: nil)
    /// Called when the relay process has ended, except when `tearDown` ended it.
    var relayIsGone: (() -> Void)?

    static let website = "shop"
    /// The website's name on phones.
    private static let displayName = "The Shop"

    let loop: EventLoop
    let narration: Narration
    private let plan: Plan
    let randomness: any Randomness
    private let onPush: @Sendable (ReceivedPush) -> Void
    private let onRequest: @Sendable (RecordedRequest) -> Void
    private var cleanup: CleanupProcess?
    private var closers: [() async -> Void] = []
    private var settingsPath = ""
    private(set) var settings: Settings?
    private var isStruck = false
    private var isBusy = false
    private var idle: CheckedContinuation<Void, Never>?
    /// The relay's port, reserved until the relay listens on it.
    private var reserved: ReservedPort?

    /// Creates a sandbox, in which nothing runs until `setUp`.
    ///
    /// - Parameters:
    ///   - onPush: called on the loop for every push that the push service accepts.
    ///   - onRequest: called for every request to the push service, whatever its answer.
    init(
        loop: EventLoop, narration: Narration, plan: Plan, randomness: any Randomness,
        onPush: @escaping @Sendable (ReceivedPush) -> Void,
        onRequest: @escaping @Sendable (RecordedRequest) -> Void = { _ in }
    ) {
        self.loop = loop
        self.narration = narration
        self.plan = plan
        self.randomness = randomness
        self.onPush = onPush
        self.onRequest = onRequest
    }

    func setUp() async throws(Failure) -> WebsiteAccess {
        let program = try RelayProcess.program()
        let cleanup = try CleanupProcess()
        self.cleanup = cleanup
        let directory = try ScratchDirectory()
        self.directory = directory
        if !plan.keepsFiles { cleanup.removes(directory.path) }
        let reserved = try ReservedPort()
        self.reserved = reserved

        let installation = try NewInstallation(
            directory: directory.path, storage: plan.storage,
            listen: HostPort(host: "127.0.0.1", port: reserved.number), hosts: ["127.0.0.1"])
        let randomness = randomness
        try await onThread { () throws(Failure) in
            try installation.create(randomness: randomness, log: Log(minimum: .warning))
        }
        origin = installation.settings.origin
        settingsPath = installation.settingsPath
        narration.done(
            "A new installation in \(directory.path): settings, keys, certificates and an empty store "
                + "(\(plan.storage.written)), as made by: twoefay init DIR")

        let team = try await startPushService()
        let settings = try write(team, into: installation)
        self.settings = settings
        let credentials = try await addWebsite(settings)
        try await startRelay(program)
        return try access(credentials, settings)
    }

    /// Registers work that must be done before the relay ends.
    func onTearDown(_ close: @escaping () async -> Void) { closers.append(close) }

    /// Ends all processes, and removes the files unless they are to be kept.
    func tearDown() async {
        isStruck = true
        // Work on another thread must end first, so that it writes no file after the removal.
        if isBusy { await withCheckedContinuation { idle = $0 } }
        for close in closers { await close() }
        await relay?.end()
        await pushService?.stop()
        if !plan.keepsFiles { directory?.remove() }
        cleanup?.dismiss()
    }

    // MARK: The relay

    /// Kills the relay, as a power failure would. It can be started again.
    func killRelay() { relay?.kill() }

    func startRelayAgain() async throws(Failure) {
        guard relayState == .down else { return }
        try await startRelay(try RelayProcess.program())
    }

    private func startPushService() async throws(Failure) -> FakeTeam {
        do {
            let team = try FakeTeam(names: ["127.0.0.1"], at: loop.time.now(), randomness: randomness)
            let service = FakePushService(
                loop: loop, tls: try team.tls(), topic: team.topic, authentication: team.tokenAuthentication,
                randomness: randomness, log: Log(minimum: .error), onPush: onPush, onRequest: onRequest)
            pushService = service
            let port = try await service.start()
            narration.done(
                "A push service on 127.0.0.1:\(port), in place of Apple's. It checks every push as Apple does, "
                    + "with a .p8 key that was made for this run.")
            return team
        } catch {
            throw Failure(.failed, "the push service cannot be started: \(error)", next: Sandbox.remedy)
        }
    }

    /// Writes the installation's settings again, with the push service and the catchers.
    private func write(_ team: FakeTeam, into installation: NewInstallation) throws(Failure) -> Settings {
        var settings = installation.settings
        settings.push.endpoint = WebAddress(secure: true, host: "127.0.0.1", port: pushService?.port)
        settings.push.topic = team.topic
        settings.push.key = FileName("AuthKey_\(team.keyID).p8")
        settings.push.keyID = team.keyID
        settings.push.teamID = team.teamID
        settings.push.authority = FileName("push-ca.pem")
        settings.geolocation = FileName("places.mmdb")
        if let catchers = plan.catchers {
            let caught = try self.caught(by: catchers, installation)
            settings.mail = caught.mail
            settings.texts = caught.texts
        }
        let directory = installation.directory
        do {
            try Files.create(
                Files.resolve("AuthKey_\(team.keyID).p8", in: directory), try team.key.pem().reveal(), mode: 0o600)
            try Files.create(
                Files.resolve("push-ca.pem", in: directory), try team.authority.certificatePEM(), mode: 0o644)
            let places = LoopbackLocation.database(at: loop.time.now().seconds)
            try Files.create(Files.resolve("places.mmdb", in: directory), places, mode: 0o644)
            Files.remove(installation.settingsPath)
            try Files.create(
                installation.settingsPath, Array(SettingsExample.annotated(settings).utf8), mode: 0o600)
        } catch {
            throw Failure(.failed, "the settings cannot be written: \(error)", next: "Is the disk full?")
        }
        return settings
    }

    /// Returns settings that send mails and text messages to the catchers.
    private func caught(
        by catchers: (mail: UInt16, text: UInt16), _ installation: NewInstallation
    ) throws(Failure) -> Settings {
        let text = """
            origin: \(origin.settingsText)
            listen: \(installation.settings.listen.settingsText)
            storage: \(plan.storage.settingsText)
            mail:
              url: smtp://127.0.0.1:\(catchers.mail)
              from: login@shop.example
            sms:
              allow: ["+"]
              from: TheShop
              limits: {user_hour: 1000, user_day: 1000}
              gateways: \(SMSCatcher.settings(port: catchers.text))

            """
        do {
            return try SettingsReader.read(Array(text.utf8), file: installation.settingsPath)
        } catch {
            throw Failure(.failed, "the catchers' settings are wrong: \(error.description)", next: "This is a bug.")
        }
    }

    private func addWebsite(_ settings: Settings) async throws(Failure) -> NewWebsite.Credentials {
        let website = try NewWebsite(
            name: Self.website, displayName: Self.displayName, policies: plan.policies)
        let credentials = try await onThread { () throws(Failure) in
            let store = try settings.openStore()
            defer { store.close() }
            return try website.add(to: store, settings: settings, directory: settings.directory)
        }
        narration.done(
            "The website \"shop\" with its client certificate, as added by: twoefay website add shop")
        return credentials
    }

    /// Runs work that blocks on a disk or a database on its own thread, so that the loop still
    /// handles signals.
    func onThread<Value: Sendable>(
        _ work: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        guard !isStruck else { throw Demo.interrupted }
        let thread: WorkerThread
        do {
            thread = try WorkerThread(name: "aside")
        } catch {
            throw Failure(.failed, error.description, next: "The machine is out of threads.")
        }
        defer { thread.stop() }
        isBusy = true
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Value, Failure>, Never>) in
            thread.post {
                continuation.resume(returning: Result { () throws(Failure) in try work() })
            }
        }
        isBusy = false
        idle?.resume()
        idle = nil
        return try result.get()
    }

    private func startRelay(_ program: String) async throws(Failure) {
        guard !isStruck else { throw Demo.interrupted }
        let process = try RelayProcess(
            program, ["--config", settingsPath], log: Files.resolve("twoefayd.log", in: directory?.path ?? ""),
            on: loop)
        relayState = .starting
        relay = process
        cleanup?.ends(process.pid)
        guard await process.says("event=daemon.started") else {
            relayState = .down
            throw Failure(
                .failed, "the relay did not start:\n" + process.tail.joined(separator: "\n"),
                next: "The last lines of its log are above.")
        }
        relayState = .up
        process.onEnd = { [weak self] in
            self?.relayState = .down
            self?.cleanup?.forgetsRelay()
            self?.relayIsGone?()
        }
        reserved = nil
        narration.done("The relay, \(origin.settingsText): twoefayd as process \(process.pid)")
    }

    private func access(
        _ credentials: NewWebsite.Credentials, _ settings: Settings
    ) throws(Failure) -> WebsiteAccess {
        do {
            return WebsiteAccess(
                name: Self.website, displayName: Self.displayName, relay: origin,
                authority: try Files.read(settings.path(of: settings.tls.authority)),
                certificate: try Files.read(credentials.certificatePath),
                key: Secret(try Files.readPrivate(credentials.keyPath)))
        } catch {
            throw Failure(.failed, "the website's certificate cannot be read: \(error)", next: Sandbox.remedy)
        }
    }
}
