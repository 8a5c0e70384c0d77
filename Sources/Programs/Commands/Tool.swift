import Daemon

/// The operator's tool `twoefay`: its commands, and the function that runs each. Those that the
/// running relay performs, too, are declared in this module, the others in the tool itself.
public enum Tool {
    public struct Subcommand: Sendable {
        public let command: Command
        public let run: @Sendable (Invocation) throws(Failure) -> Report

        public init(command: Command, run: @escaping @Sendable (Invocation) throws(Failure) -> Report) {
            self.command = command
            self.run = run
        }
    }

    public static let ofWebsites: [Subcommand] = [listWebsites, showWebsite, websiteUsage]

    public static let ofUsers: [Subcommand] = [
        listUsers, searchUsers, findUser, showUser, userLogins, exportUser, deleteUser,
        lockUser, unlockUser, enableUser, expireUser, listExpiring, activateUser, confirmIdentity, recoverUser,
        approveRecovery, cancelRecovery, temporaryCode, removeFactor,
    ]

    public static let ofDevices: [Subcommand] = [
        listDevices, showDevice, suspendDevice, resumeDevice, renameDevice, verifyDevice, revokeDevice, unlockCode,
        leaveNotice, listNotices, withdrawNotice,
    ]

    public static let ofDirectories: [Subcommand] = [listDirectories]
    public static let ofOutbox: [Subcommand] = [listOutbox, replayOutbox, dropOutbox]
    public static let ofKeys: [Subcommand] = [listKeys, rollKey]
    public static let ofAudit: [Subcommand] = [tailAudit, searchAudit, exportAudit]
}
