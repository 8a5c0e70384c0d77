import Attestation
import Crypto
import Domain
import Relay
import World

extension Store: WebPhoneStore {
    public func webPhone(_ device: DeviceID) async throws(StoreFailure) -> BoundPage? {
        try await run(
            Query(
                script: Script("web phone", rows: [.webPhone(device)], reads: [webPhoneOfDevice(device: .id(device))])
            ) { rows throws(StoreFailure) in
                try rows[0].first.map(WebPhoneRows.read)
            })
    }

    public func webPhones(of user: UserID) async throws(StoreFailure) -> [DeviceID: BoundPage] {
        try await run(
            Query(
                script: Script("web phones", rows: [.webPhones(of: user)], reads: [webPhonesOfUser(user: .id(user))])
            ) { rows throws(StoreFailure) in
                var phones: [DeviceID: BoundPage] = [:]
                for row in rows[0] { phones[try row.id("web_device")] = try WebPhoneRows.read(row) }
                return phones
            })
    }
}

private let webPhoneOfDevice = Statement("\(WebPhoneRows.select) WHERE w.device_id = :device", since: 3)
private let webPhonesOfUser = Statement("\(WebPhoneRows.select) WHERE w.user_id = :user", since: 3)

/// The claims of phones that are pages: their columns, and the statements of the changes that write
/// them.
enum WebPhoneRows {
    static let select = """
        SELECT w.device_id AS web_device, w.app, w.rp, w.credential, w.public_key, w.is_apart FROM web_phone w
        """

    static func read(_ row: Row) throws(StoreFailure) -> BoundPage {
        let (app, isApart) = (try row.text("app"), try row.bool("is_apart"))
        guard let rp = try row.optionalText("rp"), let id = try row.optionalText("credential"),
            let point = try row.optionalBlob("public_key")
        else { return BoundPage(claims: WebPhone(app: app, passkey: nil), isApart: isApart) }
        guard let key = try? P256PublicKey(x963: point) else { throw .internal("the key of a credential is no point") }
        return BoundPage(claims: WebPhone(app: app, passkey: Passkey(rp: rp, id: id, key: key)), isApart: isApart)
    }

    /// The part of a binding that stores the claims of a page, if the binding has made the phone. Who
    /// has the phone's key and another activation code cannot give it another credential.
    static func inserted(_ device: NewDevice, as operation: Operation) -> [BoundStatement] {
        guard device.platform == .web, let page = device.page else { return [] }
        let passkey = page.claims.passkey
        return [
            insert(
                device: .id(device.id), user: .id(device.user), app: .text(page.claims.app), rp: .text(passkey?.rp),
                credential: .text(passkey?.id), key: .blob(passkey?.key.x963), isApart: .bool(page.isApart),
                now: .timestamp(device.at), operation: .id(operation))
        ]
    }

    /// The rows that `inserted` writes.
    static func rows(of device: NewDevice) -> [SignedRows] {
        device.platform == .web ? [.webPhone(device.id).lenient] : []
    }

    private static let insert = Statement(
        into: .webPhone, once: true,
        """
        INSERT INTO web_phone (device_id, user_id, app, rp, credential, public_key, is_apart, operation)
        SELECT :device, :user, :app, :rp, :credential, :key, :isApart, :operation /*M! FROM DUAL */
        WHERE EXISTS (SELECT 1 FROM device d WHERE d.id = :device AND d.operation = :operation AND d.created_at = :now)
        AND NOT \(Guards.audited)
        """)

    /// Deletes the claims of phones that were deleted or unbound.
    static func dropOrphans(of user: UserID) -> BoundStatement { dropWithoutPhone(user: .id(user)) }

    private static let dropWithoutPhone = Statement(
        """
        DELETE FROM web_phone WHERE user_id = :user
        AND NOT EXISTS (SELECT 1 FROM device d WHERE d.id = web_phone.device_id AND d.state <> 'revoked')
        """, since: 3)
}

/// The searches for the claims of pages.
extension SignedRows {
    static func webPhone(_ device: DeviceID) -> SignedRows { webPhoneByDevice(device: .id(device)) }

    private static let webPhoneByDevice = RowSearch(.webPhone, where: "device_id = :device")

    static func webPhones(of user: UserID) -> SignedRows { webPhonesByUser(user: .id(user)) }

    private static let webPhonesByUser = RowSearch(.webPhone, where: "user_id = :user")
}
