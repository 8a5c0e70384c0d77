import Daemon

/// A number of days on the command line.
public enum DayCount {
    /// Returns the value of an option; nil if it is not given.
    public static func read(_ invocation: Invocation, _ option: String, from least: Int64) throws(Failure) -> Int64? {
        guard let text = invocation.value(option) else { return nil }
        let most: Int64 = 3650
        guard let days = Int64(text), (least...most).contains(days) else {
            throw Failure(
                .usage, "--\(option) must be a whole number of days from \(least) to \(most)",
                next: "Run 'twoefay \(invocation.command.name) --help' for usage.")
        }
        return days
    }
}
