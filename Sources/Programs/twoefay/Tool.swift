import Commands
import Daemon

extension Tool {
    static let subcommands: [Subcommand] =
        [demo, fakeAPNs, fakeFCM, connect, initialise, addWebsite, editWebsite] + ofWebsites + [
            renewWebsite, revokeWebsiteKey,
            disableWebsite, enableWebsite, removeWebsite, listRevoked, renewServer, statePins, switchServer,
            finishServer,
            replaceAuthority, finishAuthority, webhookCommand,
        ] + ofUsers + ofDevices + ofPhones + [importTokens] + ofDirectories + [
            testDirectory, syncDirectory, testMail, testSMS, showTemplates,
        ] + ofOutbox + [migrate, backup, restore, rekey] + ofKeys + [verifyRows, adoptRow, verifyAudit] + ofAudit + [
            doctor, reloadRelay, status, printCompletion, printManPage,
        ]

    private static let ofPhones: [Subcommand] = [
        enrolPhone,
        listPhones, showPhone, watchPhone, approveOnce, denyOnce, reportFraud, changePhone, phoneStatus, phoneTime,
        showPIN, setPIN, changePIN, resetPIN, unlockPIN, phoneCode, certifyPhone, signDocument,
        phoneNotices, listRecoveries, stopRecovery, unbindPhone, revokePhone,
    ]

    static let reader = CommandLineReader(
        program: "twoefay", about: "Creates and manages an installation of Twoefay; twoefayd runs it.",
        shared: [Settings.configOption] + Program.sharedOptions,
        commands: subcommands.map { subcommand in
            var command = subcommand.command
            command.examples = examples(of: command.name)
            return withOptions(command)
        })

    static func run(_ arguments: [String]) -> Int32 {
        Program.run(reader, arguments) { invocation throws(Failure) in
            guard let subcommand = subcommands.first(where: { $0.command.words == invocation.command.words }) else {
                // Our own bug: the reader accepts only the commands of this very list.
                fatalError("a command without a function: \(invocation.command.name)")
            }
            if let report = try performedByRelay(invocation) { return report }
            return try subcommand.run(invocation)
        }
    }
}
