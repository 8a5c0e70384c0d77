import Crypto
import JSON
import World

/// The reading of a report that the phone has signed: a `twoefay-status+jwt`.
///
/// The time in `iat` orders the reports of a phone: the store keeps the latest one. It must agree
/// with the relay's clock. Otherwise a phone whose clock was once far ahead could not report for
/// years, and a report that was kept back for days would count as new.
extension DeviceReport {
    public static let type = "twoefay-status+jwt"
    /// The greatest difference between `iat` and the relay's clock.
    public static let clockTolerance = Duration.seconds(300)

    /// The reason why a report is refused.
    public enum Fault: Error, Equatable {
        /// It is no report that this phone has signed for this website at this relay.
        case statement
        /// Its time differs too much from the relay's clock.
        case clock
        /// The value of a claim is wrong. The message begins with a verb.
        case claim(String, LocalizedText)
    }

    /// Reads a report. Unknown claims are ignored, because a newer app may report more.
    ///
    /// - Parameter now: the time at which the relay received the report.
    public init(
        _ compact: String, of device: DeviceID, key: P256PublicKey, audience: String, at now: Timestamp
    ) throws(Fault) {
        guard let object = try? JWS.parse(compact, maxBytes: 8192), object.type == Self.type,
            object.keyID == device.text, object.verify(key),
            let claims = (try? JSONReader.read(object.payload))?.object,
            claims["v"]?.integer == 1, claims["aud"]?.string == audience,
            let iat = claims["iat"]?.integer
        else { throw .statement }
        let tolerance = Self.clockTolerance.components.seconds
        guard (now.seconds - tolerance...now.seconds + tolerance).contains(iat) else { throw .clock }
        self.init(reportedAt: Timestamp(seconds: iat), receivedAt: now)
        os = try Self.line("os", in: claims, limit: DeviceReportLimits.word)
        osVersion = try Self.line("os_version", in: claims, limit: DeviceReportLimits.word)
        patchLevel = try Self.number("patch_level", in: claims, DeviceReportLimits.patchLevel)
        appVersion = try Self.line("app_version", in: claims, limit: DeviceReportLimits.word)
        model = try Self.line("model", in: claims, limit: DeviceReportLimits.model)
        battery = try Self.number("battery", in: claims, DeviceReportLimits.battery)
        hasScreenLock = try Self.flag("screen_lock", in: claims)
        isRooted = try Self.flag("rooted", in: claims)
    }

    private static func line(_ name: String, in claims: JSONObject, limit: Int) throws(Fault) -> String? {
        guard let value = claims[name], !value.isNull else { return nil }
        guard let text = value.string else {
            throw .claim(name, LocalizedText("must be a string", de: "muss ein String sein"))
        }
        if let complaint = FieldRule.line(text, limit: limit) { throw .claim(name, complaint) }
        return text
    }

    private static func number(_ name: String, in claims: JSONObject, _ range: ClosedRange<Int>) throws(Fault) -> Int? {
        guard let value = claims[name], !value.isNull else { return nil }
        guard let number = value.integer.flatMap({ Int(exactly: $0) }), range.contains(number) else {
            let (low, high) = (range.lowerBound, range.upperBound)
            throw .claim(
                name,
                LocalizedText(
                    "must be a whole number from \(low) to \(high)",
                    de: "muss eine ganze Zahl zwischen \(low) und \(high) sein"))
        }
        return number
    }

    private static func flag(_ name: String, in claims: JSONObject) throws(Fault) -> Bool? {
        guard let value = claims[name], !value.isNull else { return nil }
        guard let flag = value.bool else {
            throw .claim(name, LocalizedText("must be true or false", de: "muss true oder false sein"))
        }
        return flag
    }
}
