import Storage

extension StoreOptions {
    /// Options for tests that are not about a slow store. Store deadlines use the machine's clock,
    /// so their usual values would make tests fail on a busy machine.
    public static var patient: StoreOptions {
        var options = StoreOptions()
        options.deadline = .seconds(600)
        return options
    }
}
