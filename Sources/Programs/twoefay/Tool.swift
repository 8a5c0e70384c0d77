import Daemon

/// The operator's tool `twoefay`: its commands, and the function that runs each.
enum Tool {
    struct Subcommand: Sendable {
        let command: Command
        let run: @Sendable (Invocation) throws(Failure) -> Report
    }

    static let subcommands: [Subcommand] = [
        demo, fakeAPNs, initialise, addWebsite, editWebsite, listWebsites, showWebsite, renewWebsite, revokeWebsiteKey,
        disableWebsite, enableWebsite, removeWebsite, websiteUsage, listRevoked, renewServer, statePins, switchServer,
        finishServer,
        replaceAuthority, finishAuthority, webhookCommand,
        listUsers, searchUsers, findUser, showUser, userLogins, exportUser, deleteUser,
        lockUser, unlockUser, enableUser, expireUser, listExpiring, activateUser, confirmIdentity, recoverUser,
        approveRecovery, cancelRecovery, temporaryCode, removeFactor, listDevices, showDevice,
        suspendDevice, resumeDevice, renameDevice, verifyDevice, revokeDevice, unlockCode, leaveNotice, listNotices,
        withdrawNotice,
        enrolPhone,
        listPhones, showPhone, watchPhone, approveOnce, denyOnce, reportFraud, changePhone, phoneStatus, phoneTime,
        showPIN, setPIN, changePIN, resetPIN, unlockPIN, phoneCode, certifyPhone, signDocument,
        phoneNotices, listRecoveries, stopRecovery, unbindPhone, revokePhone, importTokens, listDirectories,
        testDirectory, syncDirectory, testMail, testSMS,
        showTemplates, listOutbox, replayOutbox, dropOutbox, migrate, backup, restore,
        rekey, listKeys, rollKey, verifyRows, adoptRow, verifyAudit,
        tailAudit, searchAudit, exportAudit,
        doctor, status, printCompletion, printManPage,
    ]

    static let reader = CommandLineReader(
        program: "twoefay", about: "Creates and manages an installation of Twoefay; twoefayd runs it.",
        shared: [Settings.configOption] + Program.sharedOptions,
        commands: subcommands.map { subcommand in
            var command = subcommand.command
            command.examples = examples(of: command.name)
            if recordedCommands.contains(command.name) { command.options.append(Program.reasonOption) }
            return command
        })

    static func run(_ arguments: [String]) -> Int32 {
        Program.run(reader, arguments) { invocation throws(Failure) in
            guard let subcommand = subcommands.first(where: { $0.command.words == invocation.command.words }) else {
                // Our own bug: the reader accepts only the commands of this very list.
                fatalError("a command without a function: \(invocation.command.name)")
            }
            return try subcommand.run(invocation)
        }
    }
}
