import Bytes
import Crypto
import Daemon
import EventLoop
import FakeAPNs
import HTTP
import Log
import Storage
import World

/// What the play needs: a throw-away installation, the relay that runs it, a push service, and a website that is known.
/// Lives on its loop. Whatever became of it, `strike` leaves nothing behind.
final class Stage {
    private(set) var directory: ScratchDirectory?
    private(set) var relay: RelayProcess?
    private(set) var pushService: FakeAPNs?
    private(set) var website: Website?
    private(set) var origin = WebAddress(secure: true, host: "127.0.0.1", port: nil)

    /// What phones call the website.
    private static let displayName = "The Shop"

    let loop: EventLoop
    let story: Story
    private let storage: StorageText
    private let keeps: Bool
    private let randomness: any Randomness
    private var caretaker: Caretaker?
    private var phones: [Handset] = []
    private var isStruck = false
    private var isBusy = false
    private var idle: CheckedContinuation<Void, Never>?
    /// Until the relay has it.
    private var reserved: ReservedPort?

    /// - Parameter keeps: what was written stays when the stage is struck.
    init(loop: EventLoop, story: Story, storage: StorageText, keeps: Bool, randomness: any Randomness) {
        self.loop = loop
        self.story = story
        self.storage = storage
        self.keeps = keeps
        self.randomness = randomness
    }

    /// - Parameter relayIsGone: called if the relay ends before it is told to.
    func set(relayIsGone: @escaping () -> Void) async throws(Failure) -> Website {
        let program = try RelayProcess.program()
        let caretaker = try Caretaker()
        self.caretaker = caretaker
        let directory = try ScratchDirectory()
        self.directory = directory
        if !keeps { caretaker.removes(directory.path) }
        let reserved = try ReservedPort()
        self.reserved = reserved

        let installation = try NewInstallation(
            directory: directory.path, storage: storage, listen: HostPort(host: "127.0.0.1", port: reserved.number),
            hosts: ["127.0.0.1"])
        let randomness = randomness
        try await aside { () throws(Failure) in
            try installation.create(randomness: randomness, log: Log(minimum: .warning))
        }
        origin = installation.settings.origin
        story.done(
            "A new installation in \(directory.path): settings, keys, certificates, and an empty store "
                + "(\(storage.written)). An operator makes one with: twoefay init DIR")

        let team = try await startPushService()
        let settings = try write(team, into: installation)
        let credentials = try await addWebsite(settings)
        try await startRelay(program, settings: installation.settingsPath, relayIsGone)
        return try makeWebsite(credentials, settings)
    }

    func makePhone() -> Handset {
        let story = story
        let phone = Handset(loop: loop, randomness: randomness) { story.message($0) }
        phones.append(phone)
        return phone
    }

    /// Ends what runs and, unless it is to be kept, removes what was written.
    func strike() async {
        isStruck = true
        // Nothing may be written behind us any more.
        if isBusy { await withCheckedContinuation { idle = $0 } }
        await website?.close()
        for phone in phones { phone.close() }
        await relay?.end()
        await pushService?.stop()
        if !keeps { directory?.remove() }
        caretaker?.dismiss()
    }

    private func startPushService() async throws(Failure) -> FakeTeam {
        do {
            let team = try FakeTeam(names: ["127.0.0.1"], at: loop.time.now(), randomness: randomness)
            let story = story
            let service = FakeAPNs(
                loop: loop, tls: try team.tls(), topic: team.topic, authentication: team.tokenAuthentication,
                randomness: randomness, log: Log(minimum: .error)
            ) { push in
                story.message(
                    Message(.relay, .pushService, "POST /3/device/\(push.deviceToken.prefix(12))…", body: push.payload))
            }
            pushService = service
            let port = try await service.start()
            story.done(
                "A push service on 127.0.0.1:\(port), in place of Apple's: it checks every push as Apple does, "
                    + "and trusts the .p8 key that was made for this run.")
            return team
        } catch {
            throw Failure(.failed, "the push service cannot be started: \(error)", next: "Try again.")
        }
    }

    /// The installation's settings once more, with the push service in them.
    private func write(_ team: FakeTeam, into installation: NewInstallation) throws(Failure) -> Settings {
        var settings = installation.settings
        settings.push.endpoint = WebAddress(secure: true, host: "127.0.0.1", port: pushService?.port)
        settings.push.topic = team.topic
        settings.push.key = FileName("AuthKey_\(team.keyID).p8")
        settings.push.keyID = team.keyID
        settings.push.teamID = team.teamID
        settings.push.authority = FileName("push-ca.pem")
        let directory = installation.directory
        do {
            try Files.create(
                Files.resolve("AuthKey_\(team.keyID).p8", in: directory), try team.key.pem().reveal(), mode: 0o600)
            try Files.create(
                Files.resolve("push-ca.pem", in: directory), try team.authority.certificatePEM(), mode: 0o644)
            Files.remove(installation.settingsPath)
            try Files.create(
                installation.settingsPath, Array(SettingsExample.annotated(settings).utf8), mode: 0o600)
        } catch {
            throw Failure(.failed, "the settings cannot be written: \(error)", next: "Is the disk full?")
        }
        return settings
    }

    private func addWebsite(_ settings: Settings) async throws(Failure) -> NewWebsite.Credentials {
        let website = try NewWebsite(
            name: "shop", displayName: Self.displayName, policies: [("number", "2")])
        let credentials = try await aside { () throws(Failure) in
            let store = try settings.openStore()
            defer { store.close() }
            return try website.add(to: store, settings: settings, directory: settings.directory)
        }
        story.done(
            "The website \"shop\" is made known, and gets its client certificate, as by: twoefay website add shop")
        return credentials
    }

    /// What waits for a disk or a database waits on a thread of its own: signals are still heard meanwhile.
    private func aside<Value: Sendable>(
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

    private func startRelay(
        _ program: String, settings: String, _ isGone: @escaping () -> Void
    ) async throws(Failure) {
        guard !isStruck else { throw Demo.interrupted }
        let process = try RelayProcess(
            program, ["--config", settings], log: Files.resolve("twoefayd.log", in: directory?.path ?? ""), on: loop)
        relay = process
        caretaker?.ends(process.pid)
        guard await process.says("event=daemon.started") else {
            throw Failure(
                .failed, "the relay did not start:\n" + process.tail.joined(separator: "\n"),
                next: "Its last words are above.")
        }
        process.onEnd = isGone
        reserved = nil
        story.done("The relay, \(origin.settingsText): twoefayd as process \(process.pid)")
    }

    private func makeWebsite(
        _ credentials: NewWebsite.Credentials, _ settings: Settings
    ) throws(Failure) -> Website {
        let story = story
        do {
            let website = try Website(
                "shop", displayName: Self.displayName, loop: loop, relay: origin,
                authority: try Files.read(settings.path(of: settings.tls.authority)),
                certificate: try Files.read(credentials.certificatePath),
                key: Secret(try Files.readPrivate(credentials.keyPath)), randomness: randomness
            ) { story.message($0) }
            self.website = website
            return website
        } catch {
            throw Failure(.failed, "the website's certificate does not work: \(error)", next: "Try again.")
        }
    }
}
