import CMariaDB

/// The translation of MariaDB's error codes.
enum MariaDBFailure {
    static func of(_ code: UInt32, _ message: String) -> SessionFailure {
        let text = "MariaDB \(code): \(message)"
        switch code {
        case deadlock, recordChanged: return .conflict(text)
        case lockWait: return .locked(text)
        case diskFull, writeFailed, recordFileFull, tableFull, outOfMemory, engineError, accessToDatabase, access,
            unknownDatabase, accessByPlugin:
            return .refused(text)
        case notPrepared, notCommitted, shutdown, killed, interrupted, readOnly, readOnlyMode, tooManyConnections,
            tooManyOfUser,
            unknownHandle, mustPrepareAgain, packetTooLarge, 1158...1161, 0, 2000...2999:
            return .lost(text)
        // For these errors the server repeats the statement or names in it, but no values.
        case parse, noSuchTable, noSuchColumn: return .statement(text)
        case duplicate:
            // The message contains the existing value, and the key's name at its end.
            let key = message.split(separator: " ").last.map { " for key \($0)" } ?? ""
            return .statement("MariaDB \(code): duplicate entry\(key)")
        default:
            // The message may contain an address of a user, and this text goes to the log.
            return .statement("MariaDB \(code)")
        }
    }

    /// Whether another host may succeed: this host is lost or silent, not in the cluster's
    /// majority, or read-only.
    static func isOfTheHost(_ code: UInt32) -> Bool {
        switch code {
        case notPrepared, notCommitted, readOnly, readOnlyMode, shutdown, 2000...2999: true
        default: false
        }
    }

    private static let deadlock: UInt32 = 1213
    private static let recordChanged: UInt32 = 1020
    private static let lockWait: UInt32 = 1205

    private static let diskFull: UInt32 = 1021
    private static let writeFailed: UInt32 = 1026
    private static let engineError: UInt32 = 1030
    private static let recordFileFull: UInt32 = 1036
    private static let outOfMemory: UInt32 = 1041
    private static let accessToDatabase: UInt32 = 1044
    private static let access: UInt32 = 1045
    private static let unknownDatabase: UInt32 = 1049
    private static let tableFull: UInt32 = 1114
    private static let accessByPlugin: UInt32 = 1698

    private static let tooManyConnections: UInt32 = 1040
    /// The message is "WSREP has not yet prepared node for application use".
    private static let notPrepared: UInt32 = 1047
    private static let shutdown: UInt32 = 1053
    private static let packetTooLarge: UInt32 = 1153
    /// The error of COMMIT if the node lost the majority during it. The other nodes may or may not
    /// have the transaction.
    private static let notCommitted: UInt32 = 1180
    private static let tooManyOfUser: UInt32 = 1203
    private static let unknownHandle: UInt32 = 1243
    private static let readOnly: UInt32 = 1290
    private static let interrupted: UInt32 = 1317
    private static let mustPrepareAgain: UInt32 = 1615
    private static let readOnlyMode: UInt32 = 1836
    private static let killed: UInt32 = 1927

    private static let noSuchColumn: UInt32 = 1054
    private static let duplicate: UInt32 = 1062
    private static let parse: UInt32 = 1064
    private static let noSuchTable: UInt32 = 1146
}
