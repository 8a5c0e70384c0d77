import Daemon
import EventLoop
import HTTP
import HTTP1
import JSON
import Log
import World

extension Demo {
    /// Runs the demo as pages for a browser, until a signal ends it.
    public static func runDashboard(
        _ options: Options, randomness: any Randomness = SystemRandomness()
    ) throws(Failure) -> Report {
        try run { loop, signals in await runDashboard(options, on: loop, signals, randomness) }
    }

    private static func runDashboard(
        _ options: Options, on loop: EventLoop, _ signals: Signals, _ randomness: any Randomness
    ) async -> Result<Report, Failure> {
        let narration = Narration(loop: loop, isShown: options.narrates)
        narration.chapter("Twoefay in a browser, on this machine")
        let session = DashboardSession(options, loop: loop, narration: narration, randomness: randomness)
        let completion = Completion<Result<Void, Failure>>()
        let (shared, sharedCompletion) = (LoopBound(session, on: loop), LoopBound(completion, on: loop))
        loop.spawn {
            _ = await signals.next()
            let isOpen = shared.value.isOpen
            sharedCompletion.value.complete(isOpen ? .success(()) : .failure(interrupted))
        }
        loop.spawn {
            do throws(Failure) {
                let opened = try await shared.value.open()
                tell(opened, narration, options)
            } catch {
                sharedCompletion.value.complete(.failure(error))
            }
        }
        let ended = await completion.isComplete()
        await session.close()
        let directory = session.directory ?? ""
        narration.done(
            options.keepsFiles
                ? "Everything has ended. The directory is kept: remove \(directory) when you no longer need it."
                : "Everything has ended, and the directory of this run is removed.")
        return ended.map {
            Report(
                "", json: ["event": "ended", "directory": .string(directory), "kept": .bool(options.keepsFiles)])
        }
    }

    private static func tell(_ opened: DashboardSession.Opened, _ narration: Narration, _ options: Options) {
        guard options.narrates else { return Program.say("\(JSONWriter.text(.object(opened.json)))\n") }
        narration.chapter("Open this address in a browser on this machine")
        narration.lines([("start here", opened.dashboard)])
        narration.say("The page shows the first steps. The website and the phones also have pages of their own:")
        narration.lines([
            ("the website", opened.website), ("a phone", opened.phone), ("a second phone", opened.secondPhone),
        ])
        narration.say(
            "The addresses contain a secret for this run, so nobody else on this machine gets in. Ctrl-C ends the demo"
                + (options.keepsFiles ? "." : " and leaves nothing behind."))
    }
}

/// The servers and processes of a dashboard demo. It must be used on its loop only.
final class DashboardSession {
    struct Opened {
        let dashboard: String
        let website: String
        let phone: String
        let secondPhone: String
        let relay: String
        let pid: Int64
        let directory: String
        let mail: UInt16
        let text: UInt16

        var json: JSONObject {
            [
                "event": "ready", "dashboard": .string(dashboard), "website": .string(website), "phone": .string(phone),
                "phone_2": .string(secondPhone), "relay": .string(relay), "pid": .integer(pid),
                "directory": .string(directory), "mail": .string("smtp://127.0.0.1:\(mail)"),
                "sms": .string("http://127.0.0.1:\(text)/sms"),
            ]
        }
    }

    /// The policies of the demo's website. Short deadlines show the cascade and a lock within a
    /// minute, and high limits let a visitor try freely.
    static let policies = [
        (name: "number", text: "2"), (name: "push-deadline", text: "10"), (name: "code-deadline", text: "20"),
        (name: "guesses", text: "3"), (name: "push-limit", text: "100"), (name: "login-limit", text: "1000"),
        (name: "recovery-check", text: "on"),
    ]

    private let options: Demo.Options
    private let loop: EventLoop
    private let narration: Narration
    private let randomness: any Randomness
    private let log = Log(minimum: .error)
    private let feed: ActivityFeed
    private let phoneInbox: PhoneInbox
    private let scannedCode = ScannedCode()
    private var sandbox: Sandbox?
    private var servers: [HTTP1Server] = []
    private var mails: MailCatcher?
    private(set) var isOpen = false

    init(_ options: Demo.Options, loop: EventLoop, narration: Narration, randomness: any Randomness) {
        self.options = options
        self.loop = loop
        self.narration = narration
        self.randomness = randomness
        feed = ActivityFeed(loop: loop)
        phoneInbox = PhoneInbox(loop: loop, feed: feed, randomness: randomness)
    }

    var directory: String? { sandbox?.directory?.path }

    func open() async throws(Failure) -> Opened {
        let origins = try Origins(port: options.port, loop: loop, randomness: randomness, log: log)
        servers += origins.servers
        let (feed, inbox, scanned) = (feed, phoneInbox, scannedCode)
        let texts = textCatcher()
        let textPort = try serve(texts)
        let mailPort = try catchMails()
        let plan = Sandbox.Plan(
            storage: options.storage, keepsFiles: options.keepsFiles, policies: Self.policies,
            catchers: (mailPort, textPort))
        let sandbox = Sandbox(
            loop: loop, narration: narration, plan: plan, randomness: randomness, onPush: { inbox.deliver($0) },
            onRequest: { feed.add($0) })
        self.sandbox = sandbox
        let access = try await sandbox.setUp()
        narration.done(
            "A mail server on 127.0.0.1:\(mailPort) and an SMS gateway on 127.0.0.1:\(textPort) deliver to the phones.")
        let switches = LoopBound(FaultSwitches(sandbox: sandbox, feed: feed, phoneInbox: inbox, texts: texts), on: loop)
        do {
            let shop = try Shop(
                access, responder: origins.website.responder, port: origins.website.port, loop: loop,
                randomness: randomness,
                observer: { feed.add($0) }, shown: { scanned.shows($0) })
            sandbox.onTearDown { await shop.close() }
            let proxy = try RelayProxy(loop: loop, relay: access.relay, authority: access.authority)
            sandbox.onTearDown { await proxy.close() }
            let phones = PhoneBackend(
                responder: origins.phone.responder, origin: access.relay.text, run: origins.run, relayProxy: proxy,
                phoneInbox: inbox,
                scannedCode: scanned, feed: feed)
            let dashboard = Dashboard(
                responder: origins.dashboard.responder, website: origins.website.origin, phone: origins.phone.origin,
                feed: feed,
                switches: switches)
            try origins.open(dashboard: dashboard, website: shop, phone: phones)
        } catch {
            throw Failure(.failed, "the pages cannot be served: \(error)", next: Sandbox.remedy)
        }
        isOpen = true
        return Opened(
            dashboard: origins.address(of: origins.dashboard), website: origins.address(of: origins.website),
            phone: origins.address(of: origins.phone), secondPhone: origins.address(of: origins.phone, "/?phone=2"),
            relay: access.relay.text, pid: Int64(sandbox.relay?.pid ?? 0), directory: directory ?? "",
            mail: mailPort, text: textPort)
    }

    /// Closes everything that is running by now.
    func close() async {
        isOpen = false
        feed.longPoll.notifyWaiters()
        phoneInbox.longPoll.notifyWaiters()
        for server in servers { server.stop() }
        await sandbox?.tearDown()
        mails?.stop()
    }

    private func textCatcher() -> SMSCatcher {
        let (feed, inbox) = (feed, phoneInbox)
        return SMSCatcher(
            loop: loop,
            taken: { text, isSlow in
                feed.add(
                    Message(
                        .relay, .textGateway, "POST /sms",
                        body: ["to": .string(text.to), "from": .string(text.from), "text": .string(text.text)]))
                if isSlow { feed.add(.textDelayed) }
            },
            arrived: { text in
                inbox.deliver("sms", from: text.from, to: text.to, text: text.text, by: .textGateway)
            })
    }

    private func serve(_ texts: SMSCatcher) throws(Failure) -> UInt16 {
        do throws(SystemFailure) {
            let server = try HTTP1Server(loop: loop, address: try Origins.address(port: 0), pages: texts, log: log)
            servers.append(server)
            try server.start()
            return server.port
        } catch {
            throw Failure(.failed, "the SMS gateway cannot be started: \(error)", next: Sandbox.remedy)
        }
    }

    private func catchMails() throws(Failure) -> UInt16 {
        let (feed, inbox) = (feed, phoneInbox)
        do throws(SystemFailure) {
            let catcher = try MailCatcher(loop: loop) { mail in
                feed.add(
                    Message(
                        .relay, .mailServer, "SMTP",
                        body: [
                            "from": .string(mail.from), "to": .string(mail.to), "subject": .string(mail.subject),
                            "text": .string(mail.text),
                        ]))
                inbox.deliver(
                    "mail", from: mail.from, to: mail.to, subject: mail.subject, text: mail.text, by: .mailServer)
            }
            mails = catcher
            return catcher.port
        } catch {
            throw Failure(.failed, "the mail server cannot be started: \(error)", next: Sandbox.remedy)
        }
    }
}
