import Domain
import Glibc
import KeyService
import Log
import Relay
import Storage
import World

/// The performing of commands for callers of the control socket, on threads that block.
struct ControlRunner: Sendable {
    /// A command of a caller, ready to run.
    struct Job: Sendable {
        let fd: Int32
        let caller: ControlCaller
        let command: ControlCommand
        let isColored: Bool
        let showsProgress: Bool
    }

    let resources: ControlResources
    let commands: any ControlCommands
    let log: Log
    let stop = ControlStop()
    /// Reloads the relay, and waits for the outcome.
    let reload: @Sendable (Actor) throws(Failure) -> ReloadOutcome

    var groups: ControlGroups { resources.groups }
    var limits: Settings.ControlSettings { resources.settings.control }

    /// Reads the request of a caller.
    func read(_ line: [UInt8], of caller: ControlCaller, _ fd: Int32) throws(Failure) -> Job {
        let request = try ControlRequest(line)
        let command = try commands.read(request.arguments)
        return Job(
            fd: fd, caller: caller, command: command, isColored: request.isColored,
            showsProgress: request.showsProgress)
    }

    /// Performs a command and sends its answer.
    func perform(_ job: Job) {
        let reply = ControlReply(job.fd, stop: stop)
        let name = job.command.invocation.command.name
        let account = Account.name(of: job.caller.user)
        guard isPerson(job.caller.user) else {
            log.warning("control.refused", [.subject: account, .name: name, .reason: "no such account"])
            return reply.end(
                Failure(
                    .failed, "the machine's list of accounts has no number \(job.caller.user)",
                    next: "Nothing was done. Use an account that has a name: the audit tells who did what."))
        }
        guard let role = job.caller.role(for: job.command) else {
            let roles = ControlRole.list(job.command.roles)
            let own = ControlRole.list(job.caller.roles)
            log.warning("control.refused", [.subject: "\(own) \(account)", .name: name, .reason: "needs \(roles)"])
            record(
                name, "refused", Actor.account(role: own, name: account, reason: nil),
                about: (try? find(job.command.subject)) ?? AuditSubject())
            return reply.end(
                Failure(
                    .failed, "\(name) needs the role \(roles), and your account has \(own)",
                    next: "Nothing was done. The settings control.auditors, control.helpdesk and control.operators "
                        + "name the groups that have roles."))
        }
        var subject = AuditSubject()
        let outcome = Result { () throws(Failure) in
            let reason = try Settings.reason(job.command.invocation)
            subject = try find(job.command.subject)
            let actor = Actor.account(role: role.rawValue, name: account, reason: reason)
            // A read leaves its row first: parts of the answer leave while it runs.
            guard job.command.isChange || record(job.command.note, "begun", actor, about: subject) else {
                throw Failure(
                    .unavailable, "the audit cannot be written",
                    next: "Nothing was read. The relay's log says what the store lacks.")
            }
            return try Actor.runBlocking(actor) { () throws(Failure) in
                try run(job, reply, as: actor)
            }
        }
        let code =
            switch outcome {
            case .success(let report): report.code
            case .failure(let failure): failure.code
            }
        // The audit comes before the answer: a caller sees nothing that leaves no trace.
        if job.command.isChange {
            let actor = Actor.account(role: role.rawValue, name: account, reason: nil)
            record(job.command.note, code.word, actor, about: subject)
        }
        log.info("control.command", [.name: name, .subject: "\(role.rawValue) \(account)", .outcome: code.word])
        switch outcome {
        case .success(let report):
            let text = Program.printed(report, asJSON: job.command.invocation.has("json"))
            if !text.isEmpty { reply.say(text + "\n") }
            reply.end(code)
        case .failure(let failure): reply.end(failure)
        }
    }

    private func run(_ job: Job, _ reply: ControlReply, as actor: Actor) throws(Failure) -> Report {
        var invocation = job.command.invocation
        invocation.host = CommandHost(
            settings: resources.settings, store: resources.store, keys: resources.keys, isColored: job.isColored,
            showsProgress: job.showsProgress, stop: stop, caller: reply
        ) { () throws(Failure) in
            try reload(actor)
        }
        return try job.command.run(invocation)
    }

    /// Whether the account is one of the machine's. A user namespace gives an account many numbers
    /// more, all with its groups: each would have limits of its own, and no name in the audit.
    private func isPerson(_ user: uid_t) -> Bool { user == 0 || user == geteuid() || Account.isListed(user) }

    /// Looks up whom or what a command is about, before it runs: a user whom it deletes is gone then.
    private func find(_ named: AuditSubject.Named?) throws(Failure) -> AuditSubject {
        guard let named else { return AuditSubject() }
        do throws(StoreFailure) {
            return try resources.store.runBlocking(AuditSubject.find(named))
        } catch {
            throw Failure(store: error)
        }
    }

    /// Records every command in the audit, also one that only reads: an address that somebody looked
    /// up is gone. A store that fails is reported by its lane, and by the command itself.
    @discardableResult private func record(
        _ note: String, _ outcome: String, _ actor: Actor, about subject: AuditSubject = AuditSubject()
    ) -> Bool {
        let operation = Operations(key: resources.keys.relay.operations, randomness: SystemRandomness()).new()
        let query = ProgramEvents.record(
            "control.command", about: subject, outcome: outcome, note: note, at: SystemTime().now(), as: operation)
        return Actor.runBlocking(actor) { () throws(Never) in
            do throws(StoreFailure) {
                try resources.store.runBlocking(query)
                return true
            } catch {
                return false
            }
        }
    }
}
